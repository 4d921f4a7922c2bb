package ddl

import (
	"testing"

	"seqproxy/statement/lex"
	"seqproxy/test/texts"
)

// readers are all statements that a Reader reads.
var readers = []func(r *Reader){
	func(r *Reader) { r.Create(true, false) },
	func(r *Reader) { r.Create(false, true) },
	(*Reader).Alter,
	func(r *Reader) { r.Drop(false) },
	(*Reader).Name,
	(*Reader).Names,
	(*Reader).NamesIfAny,
	(*Reader).Show,
	func(r *Reader) { r.Proxy(true) },
	func(r *Reader) { r.Proxy(false) },
}

// read runs a reader over a whole text.
func read(sql []byte, mode lex.Mode, with func(r *Reader)) *Reader {
	r := &Reader{Lexer: lex.Lexer{Src: sql, Mode: mode}, Memory: new(lex.Arena), To: new(Sequence)}
	r.Next()
	with(r)
	return r
}

func TestWhatIsLeftOverIsAProblem(t *testing.T) {
	for _, c := range []struct {
		sql  string
		with func(r *Reader)
		want string // a text that must not be executed
	}{
		{"a cache 5", readers[0], ""},
		{"a cache 5; select 1", readers[0], ""},
		{"a cache 5 x", readers[0], "unknown option"},
		{"a", readers[1], "TEMPORARY"},
		{"a", (*Reader).Alter, "nothing to alter"},
		{"a restart", readers[0], "RESTART, which is an option of ALTER SEQUENCE"},
		{"a restart force", (*Reader).Alter, ""},
		{"a, b", (*Reader).Name, "more than one name"},
		{"a, b", (*Reader).Names, ""},
		{"", (*Reader).Names, "a sequence name is missing"},
		{"", (*Reader).NamesIfAny, ""},
		{"like 'a' x", (*Reader).Show, "more than the statement"},
		{"where x = 1", (*Reader).Show, "SHOW SEQUENCES WHERE"},
		{"reload tls", readers[9], ""},
		{"reload now", readers[9], "RELOAD, which may be followed by TLS"},
	} {
		r := read([]byte(c.sql), lex.Mode{}, c.with)
		if got := r.To.Problem + r.To.Unsupported; got != c.want {
			t.Errorf("%q: got %q, want %q", c.sql, got, c.want)
		}
	}
}

// FuzzReader: a statement that a Reader does not read to its end has a Problem, or is Unsupported,
// and each name has the schema that stands before it.
func FuzzReader(f *testing.F) {
	for _, sql := range texts.Corpus {
		f.Add([]byte(sql), byte(0), byte(0))
	}
	for i, sql := range []string{
		"if not exists a.b start with 5 cache default owned by x.y.z as int unsigned", "if exists a restart = 5 force",
		"sequence servers", "add sequence server 'a:1' force above 5 with direct writers stopped", "like 'a%'",
	} {
		f.Add([]byte(sql), byte(i), byte(2))
	}
	f.Fuzz(func(t *testing.T, sql []byte, which, m byte) {
		mode := texts.ModeOf(m)
		if mode.Charset == lex.Unsupported {
			return
		}
		r := read(sql, mode, readers[int(which)%len(readers)])
		if !r.ended() && r.To.Problem == "" && r.To.Unsupported == "" {
			t.Fatalf("%q: ended at %d without a Problem", sql, r.Start)
		}
		if len(r.To.Names) != len(r.To.Schemas) {
			t.Fatalf("%q: %d names and %d schemas", sql, len(r.To.Names), len(r.To.Schemas))
		}
		for i, name := range r.To.Names {
			if schema := r.To.Schemas[i]; schema > 0 && name[schema] != '.' {
				t.Fatalf("%q: no schema of %d bytes is in front of %q", sql, schema, name)
			}
		}
	})
}
