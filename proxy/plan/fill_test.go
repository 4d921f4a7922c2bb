package plan

import (
	"runtime"
	"strings"
	"testing"

	"seqproxy/proxy/state"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// photos has the columns id, which is bound, and a.
var photos = Binding{Table: "photos", Column: "id", Sequence: "p"}

// server answers a test's Needs about tables.
type server struct {
	columns string // of photos, in order
	hidden  string // its invisible columns
	memory  string // what is remembered of them; "": nothing
	auto    string
	modes   state.InsertModes
	schema  string
	silent  bool // does not return the columns
}

func (w *server) answer(f *Facts, s *state.State, n *Need) {
	switch n.What {
	case NeedDatabase:
		s.Schema, s.SchemaUnknown = w.schema, false
	case NeedModes:
		s.Inserts = w.modes
		s.Inserts.Conn = f.Conn
	case NeedColumns, NeedColumnsNow, NeedAuto, NeedAutoOnce:
		of, columns := Columns{Answered: AnswerOf(!w.silent), Now: !w.silent, Auto: w.auto}, w.columns
		if n.What == NeedColumns && w.memory != "" {
			of.Now, columns = false, w.memory
		}
		for _, name := range strings.Fields(columns) {
			of.Names = append(of.Names, []byte(name))
		}
		for _, name := range strings.Fields(w.hidden) {
			of.More = append(of.More, []byte(name))
		}
		*f.TableOf(n.At) = of
	}
}

// fill plans a text, and answers what the plan asks for.
func (w *server) fill(p *Planner, st *statement.Statement, sql []byte, s *state.State) (f *Filling, v Verdict, rounds int) {
	for ; rounds <= Rounds; rounds++ {
		if f, v = p.Fill(st, sql, s); v.Kind != Asks {
			break
		}
		for i := range v.Needs {
			w.answer(&p.Facts, s, &v.Needs[i])
		}
	}
	return f, v, rounds
}

func TestBoundColumnsAreFilled(t *testing.T) {
	strict := state.InsertModes{Increment: 1, Strict: true}
	for _, c := range []struct {
		name    string
		text    string
		at      Moment
		st      state.State
		bound   Binding
		server  server
		want    string // the text that is sent; "": unchanged
		rounds  int
		refusal string
	}{
		{name: "another table", text: "INSERT INTO t (a) VALUES (1)"},
		{name: "left out", text: "INSERT INTO photos (a) VALUES (1)", want: "INSERT INTO photos (a, `id`) VALUES (1, LAST_INSERT_ID(?))"},
		{name: "NULL", text: "INSERT INTO photos (id, a) VALUES (NULL, 1)", want: "INSERT INTO photos (id, a) VALUES (LAST_INSERT_ID(?), 1)"},
		{name: "a number of its own", text: "INSERT INTO photos (id, a) VALUES (7, 1)", want: "INSERT INTO photos (id, a) VALUES (7, 1)"},
		{name: "0", text: "INSERT INTO photos (id) VALUES (0)", server: server{modes: strict}, want: "INSERT INTO photos (id) VALUES (LAST_INSERT_ID(?))", rounds: 1},
		{name: "0 behind its mode", text: "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'; INSERT INTO photos (id) VALUES (0)", server: server{modes: strict}, rounds: 1, refusal: "send the SET alone"},
		{
			name: "0 behind the end of its mode", text: "/*!40101 SET SQL_MODE = @OLD_SQL_MODE */; INSERT INTO photos (id) SELECT 0",
			server: server{columns: "id a", modes: state.InsertModes{Increment: 1, ZeroStays: true}}, rounds: 2, refusal: "send the SET alone",
		},
		{name: "keys behind a mode", text: "SET sql_mode = ''; INSERT INTO photos (id) VALUES (7), (8)", want: "SET sql_mode = ''; INSERT INTO photos (id) VALUES (7), (8)"},
		{
			name: "several rows behind their distance", text: "SET auto_increment_increment = 10; INSERT INTO photos (a) VALUES (1), (2)",
			server: server{modes: strict}, rounds: 1, refusal: "send the SET alone",
		},
		{
			name: "a key beside numbers of its own", text: "INSERT INTO photos VALUES (7, 1), (NULL, 2), (8, 3)", server: server{columns: "id a"},
			want: "INSERT INTO photos (`id`, `a`)  VALUES (7, 1), (LAST_INSERT_ID(?), 2), (8, 3)", rounds: 1,
		},
		{
			name: "keys beside numbers of its own", text: "INSERT INTO photos (id) VALUES (7), (NULL), (-8), (9), (DEFAULT)", server: server{modes: strict},
			want: "INSERT INTO photos (id) VALUES (7), (LAST_INSERT_ID(?)), (-8), (9), (?)", rounds: 2,
		},
		{
			name: "rows that differ, with numbers of their own", text: "INSERT INTO photos VALUES (7, 1), (8)", server: server{columns: "id a"},
			want: "INSERT INTO photos (`id`, `a`)  VALUES (7, 1), (8)", rounds: 1,
		},
		{name: "0 before a mode", text: "INSERT INTO photos (id) VALUES (0); SET sql_mode = ''", server: server{modes: strict}, rounds: 1, want: "INSERT INTO photos (id) VALUES (LAST_INSERT_ID(?)); SET sql_mode = ''"},
		{name: "0 is a value", text: "INSERT INTO photos (id) VALUES (0)", server: server{modes: state.InsertModes{Increment: 1, ZeroStays: true}}, rounds: 1},
		{
			name: "several rows", text: "INSERT INTO photos (a) VALUES (1), (2)", server: server{modes: strict},
			want: "INSERT INTO photos (a, `id`) VALUES (1, LAST_INSERT_ID(?)), (2, ?)", rounds: 2,
		},
		{name: "no columns", text: "INSERT INTO photos VALUES (NULL, 1)", server: server{columns: "id a"}, want: "INSERT INTO photos (`id`, `a`)  VALUES (LAST_INSERT_ID(?), 1)", rounds: 1},
		{name: "no such column", text: "INSERT INTO photos VALUES (NULL, 1)", server: server{columns: "b a"}, rounds: 1},
		{
			name: "no such column in memory", text: "INSERT INTO photos VALUES (NULL, 1)", server: server{memory: "a", columns: "id a"},
			want: "INSERT INTO photos (`id`, `a`)  VALUES (LAST_INSERT_ID(?), 1)", rounds: 2,
		},
		{name: "no such column in memory or now", text: "INSERT INTO photos VALUES (NULL, 1)", server: server{memory: "b", columns: "b a"}, rounds: 2},
		{
			name: "no columns, several rows", text: "INSERT INTO photos VALUES (NULL), (DEFAULT)", server: server{columns: "id", modes: strict},
			want: "INSERT INTO photos (`id`)  VALUES (LAST_INSERT_ID(?)), (?)", rounds: 2,
		},
		{
			name: "IGNORE, numbered by the server as well", text: "INSERT IGNORE INTO photos (id) VALUES (NULL)", server: server{columns: "id", auto: "id"},
			want: "INSERT IGNORE INTO photos (id) VALUES (?)", rounds: 1,
		},
		{
			name: "IGNORE, of an unknown table", text: "INSERT IGNORE INTO photos (id) VALUES (NULL)", server: server{silent: true},
			want: "INSERT IGNORE INTO photos (id) VALUES (LAST_INSERT_ID(?))", rounds: 1,
		},
		{
			name: "two statements", text: "INSERT INTO photos VALUES (NULL); INSERT INTO photos VALUES (NULL)", server: server{columns: "id"},
			want: "INSERT INTO photos (`id`)  VALUES (LAST_INSERT_ID(?)); INSERT INTO photos (`id`)  VALUES (LAST_INSERT_ID(?))", rounds: 1,
		},
		{
			name: "in its schema", text: "INSERT INTO photos (id) VALUES (NULL)", bound: Binding{Schema: "x", Table: "photos", Column: "id"},
			st: state.State{SchemaUnknown: true}, server: server{schema: "x"}, want: "INSERT INTO photos (id) VALUES (LAST_INSERT_ID(?))", rounds: 1,
		},
		{name: "in another schema", text: "INSERT INTO photos (id) VALUES (NULL)", bound: Binding{Schema: "x", Table: "photos", Column: "id"}, st: state.State{Schema: "y"}},
		{name: "a query", text: "INSERT INTO photos (a) SELECT b FROM t", server: server{columns: "id a"}, want: "INSERT INTO photos (a, `id`) SELECT b, NEXTVAL(`p`) FROM t", rounds: 1},
		{name: "a query with keys", text: "INSERT INTO photos (id) SELECT b FROM t", server: server{columns: "id a"}, rounds: 1},
		{name: "an expression, prepared beside a parameter", text: "INSERT INTO photos (id) VALUES (1+?), (?)", at: AtPrepare, refusal: "an expression for photos.id"},
		{name: "a part of another statement", text: "ANALYZE INSERT INTO photos (a) VALUES (1)", refusal: "as a part of another statement"},
		{name: "a file without keys", text: "LOAD DATA INFILE 'f' INTO TABLE photos (a)", refusal: "LOAD DATA or LOAD XML"},
		{name: "a file with keys", text: "LOAD DATA INFILE 'f' INTO TABLE photos (id, a)"},
		{name: "a file with variables alone", text: "LOAD DATA INFILE 'f' INTO TABLE photos (@a) SET a = TRIM(@a)", refusal: "LOAD DATA or LOAD XML"},
		{name: "a file with all columns", text: "LOAD DATA INFILE 'f' INTO TABLE photos", server: server{columns: "id a"}, rounds: 1},
		{name: "a file without an invisible column", text: "LOAD DATA INFILE 'f' INTO TABLE photos", server: server{columns: "a", hidden: "id"}, rounds: 1, refusal: "LOAD DATA or LOAD XML"},
		{name: "no columns, and an invisible key", text: "INSERT INTO photos VALUES (1)", server: server{columns: "a", hidden: "id"}, rounds: 1, refusal: "is invisible"},
		{name: "a query without columns, and an invisible key", text: "INSERT INTO photos SELECT b FROM t", server: server{columns: "a", hidden: "id"}, rounds: 1, refusal: "is invisible"},
		{name: "an invisible key that is left out", text: "INSERT INTO photos (a) VALUES (1)", server: server{columns: "a", hidden: "id"}, want: "INSERT INTO photos (a, `id`) VALUES (1, LAST_INSERT_ID(?))"},
		{name: "what the last one left is read", text: "INSERT INTO photos (id, a) VALUES (0, ROW_COUNT())", refusal: "keep that in a variable first"},
	} {
		if c.bound == (Binding{}) {
			c.bound = photos
		}
		p := Planner{Facts: all(Facts{At: c.at, Conn: 1, Bound: make(Bindings)})}
		p.Facts.Bound.Add(c.bound)
		var st statement.Statement
		st.Analyze([]byte(c.text), lex.Mode{Charset: lex.UTF8, Server: lex.MariaDB(101100)})
		f, v, rounds := c.server.fill(&p, &st, []byte(c.text), &c.st)
		if c.refusal != "" || v.Kind != Go {
			if v.Kind != Refuse || c.refusal == "" || !strings.Contains(v.Refusal.Text, c.refusal) {
				t.Errorf("%s: got %+v, want a refusal with %q", c.name, v, c.refusal)
			}
			continue
		}
		got := ""
		switch {
		case f != nil && f.Query != nil:
			got = string(f.Query.Text)
		case f != nil:
			f.Placeholders = true
			f.Spell()
			got = string(st.Rewrite(nil, []byte(c.text), make([]statement.Substitution, len(st.Calls)), f.Texts()...))
		}
		if got != c.want || rounds != c.rounds {
			t.Errorf("%s: got %q after %d rounds, want %q after %d", c.name, got, rounds, c.want, c.rounds)
		}
	}
}

// The counter of a column must not move for a statement that the server refuses in any case.
func TestRowsOfDifferentLengthsBringNoKeys(t *testing.T) {
	const text = "INSERT INTO photos VALUES (7, 1), (8)"
	p := Planner{Facts: all(Facts{Conn: 1, Bound: make(Bindings), Tables: []Columns{{Answered: Yes, Now: true, Names: [][]byte{[]byte("id"), []byte("a")}}}})}
	p.Facts.Bound.Add(photos)
	var st statement.Statement
	st.Analyze([]byte(text), lex.Mode{Charset: lex.UTF8})
	f, v := p.Fill(&st, []byte(text), new(state.State))
	if v.Kind != Go || f == nil || len(f.Keys) != 1 || !f.Keys[0].Listed || len(f.Keys[0].Explicit) > 0 {
		t.Errorf("got %+v, %+v, want a list of columns, and no keys", f, v)
	}
}

// A dump has long texts of short rows, and brings their keys.
func TestRowsWithKeysOfTheirOwnTakeLittleMemory(t *testing.T) {
	texts := photos
	texts.Texts = true
	const rows = 200_000
	for _, c := range []struct {
		name  string
		text  string
		bound Binding
		keys  int // numbers that the proxy keeps
		most  int // bytes that a row takes
	}{
		{"numbers", "INSERT INTO photos (id, a) VALUES (7,1)" + strings.Repeat(",(7,1)", rows-1), photos, rows, 64},
		{"numbers below 0", "INSERT INTO photos (id, a) VALUES (-7,1)" + strings.Repeat(",(-7,1)", rows-1), photos, 0, 1},
		{"numbers behind a statement", "DO 1; INSERT INTO photos (id, a) VALUES (7,1)" + strings.Repeat(",(7,1)", rows-1), photos, rows, 64},
		{"texts", "INSERT INTO photos (id, a) VALUES ('k',1)" + strings.Repeat(",('k',1)", rows-1), texts, 0, 1},
	} {
		p := Planner{Facts: all(Facts{Conn: 1, Bound: make(Bindings)})}
		p.Facts.Bound.Add(c.bound)
		var st statement.Statement
		sql := []byte(c.text)
		st.Analyze(sql, lex.Mode{Charset: lex.UTF8})
		s := state.State{Inserts: state.InsertModes{Conn: 1, Increment: 1}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, v := p.Fill(&st, sql, &s)
		runtime.ReadMemStats(&after)
		if v.Kind != Go {
			t.Fatalf("%s: got %+v", c.name, v)
		}
		explicit := 0
		if f != nil {
			explicit = len(f.Keys[0].Explicit)
		}
		if got := (after.TotalAlloc - before.TotalAlloc) / rows; got > uint64(c.most) || explicit != c.keys {
			t.Errorf("%s: got %d bytes a row and %d keys, want %d and %d", c.name, got, explicit, c.most, c.keys)
		}
	}
}

// A text may have 100,000 INSERTs. If each looked at all statements before it, planning would take
// half a minute, which nobody can end. So the last statement before an INSERT tells of all others.
func TestAnInsertLooksAtOneStatementBeforeIt(t *testing.T) {
	for first, want := range map[string]string{
		"CREATE TABLE t (a INT)":            "behind CREATE, ALTER, DROP, RENAME or USE",
		"ALTER TABLE photos ADD b INT":      "behind CREATE, ALTER, DROP, RENAME or USE",
		"DROP DATABASE b":                   "behind CREATE, ALTER, DROP, RENAME or USE",
		"USE b":                             "behind CREATE, ALTER, DROP, RENAME or USE",
		"SET @a = 1, sql_mode = ''":         "send the SET alone",
		"SET auto_increment_increment = 10": "send the SET alone",
		"SET x, y":                          "send the SET alone",
		"EXECUTE s":                         "send the SET alone",
		"EXECUTE IMMEDIATE 'SET @a = 1'":    "send the SET alone",
		"SET NAMES utf8mb4, @a = 1":         "",
		"SET GLOBAL sql_mode = ''":          "",
		"PREPARE s FROM 'SELECT 1'":         "",
		"CALL p()":                          "",
		"CREATE DATABASE c":                 "",
	} {
		text := []byte(first + "; SELECT 1; INSERT INTO photos VALUES (0), (0)")
		p := Planner{Facts: all(Facts{Conn: 1, Bound: make(Bindings)})}
		p.Facts.Bound.Add(photos)
		w := server{columns: "id", modes: state.InsertModes{Increment: 1, Strict: true}}
		var st statement.Statement
		st.Analyze(text, lex.Mode{Charset: lex.UTF8, Server: lex.MariaDB(101100)})
		st.Parts[0] = statement.Part{Kind: statement.Select}
		_, v, _ := w.fill(&p, &st, text, new(state.State))
		if refused := v.Kind == Refuse; refused != (want != "") || !strings.Contains(v.Refusal.Text, want) {
			t.Errorf("%s: got %+v, want a refusal with %q", first, v, want)
		}
	}
}
