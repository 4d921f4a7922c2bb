package proxy_test

import (
	"fmt"
	"testing"

	"seqproxy/protocol"
)

// namesIn are names of sequences with the character sets of clients that can write them. The second
// byte of some characters is a backslash, a back quote or a letter.
var namesIn = []struct {
	name     string
	charsets []string
}{
	{"写真", []string{"gbk", "gb2312", "gb18030", "utf8mb3"}},
	{"誠乗丂", []string{"gbk", "gb18030"}},
	{"功許蓋", []string{"big5", "gbk"}},
	{"表ソ写", []string{"sjis", "cp932", "ujis", "eucjpms"}},
	{"사진", []string{"euckr"}},
	{"café", []string{"latin1", "latin2", "cp1250", "dec8", "cp850"}},
	{"фото", []string{"cp1251", "koi8r", "cp866"}},
	{"½", []string{"latin1", "latin7", "cp850"}},
}

// encoded returns a text's bytes in a character set, or "" if the server does not have the set.
func encoded(t *testing.T, w *wire, charset, text string) string {
	t.Helper()
	answer := w.query("SELECT CONVERT(_utf8mb4'" + text + "' USING " + charset + ") = _utf8mb4'" + text + "', HEX(CONVERT(_utf8mb4'" + text + "' USING " + charset + "))")
	if answer[4] == 0xff {
		if err := serverError(t, answer); err.Code != 1115 {
			t.Fatal(err)
		}
		return ""
	}
	row := w.rows("SELECT CONVERT(_utf8mb4'" + text + "' USING " + charset + ") = _utf8mb4'" + text + "', HEX(CONVERT(_utf8mb4'" + text + "' USING " + charset + "))")
	if row[0] != "1" {
		t.Fatalf("%s does not have %s", charset, text)
	}
	var b []byte
	if _, err := fmt.Sscanf(row[1], "%X", &b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Checklist 28.
func TestClientsOfAnyCharacterSetWriteTheSameNames(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "first") // creates the sequence table
	utf8 := e.Wire(t, e.Servers[0].Addr(), wireLogin{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (id BIGINT UNSIGNED, s VARBINARY(100))")
	for _, table := range []string{"sequence", "sequence_options", "sequence_limit", "sequence_plan_start"} {
		e.Servers[0].Exec(t, "ALTER TABLE "+e.SequenceSchema+"."+table+" CONVERT TO CHARACTER SET utf8mb4")
	}
	for _, of := range namesIn {
		createSequence(t, e, of.name)
		want := 0
		for _, charset := range of.charsets {
			name := encoded(t, utf8, charset, of.name)
			if name == "" {
				continue
			}
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			w.query("SET NAMES " + charset)
			next := func(what string, got string) {
				t.Helper()
				if want++; got != fmt.Sprint(want) {
					t.Errorf("%s in %s, %s: got %s, want %d", of.name, charset, what, got, want)
				}
			}
			for _, text := range []string{"SELECT NEXTVAL('" + name + "')", "SELECT NEXTVAL(`" + name + "`)", "SELECT NEXTVAL(_" + charset + " '" + name + "')"} {
				answer := w.query(text)
				if answer[4] == 0xff {
					if err := serverError(t, answer); text[15] == '_' && err.Code == 1235 {
						continue // the proxy may refuse an introducer, but never misread it
					}
					t.Errorf("%s in %s, %q: %v", of.name, charset, text, serverError(t, answer))
					continue
				}
				packets := split(answer)
				next(text, string(packets[2][1:]))
			}
			if answer := w.query("INSERT INTO t VALUES (NEXTVAL('" + name + "'), '" + name + "')"); answer[4] != 0 {
				t.Errorf("%s in %s, INSERT: %v", of.name, charset, serverError(t, answer))
				continue
			}
			row := w.rows("SELECT id, HEX(s) FROM t ORDER BY id DESC LIMIT 1")
			next("INSERT", row[0])
			if got := fmt.Sprintf("%X", name); got != row[1] {
				t.Errorf("%s in %s: got the string %s, want %s", of.name, charset, row[1], got)
			}
			if prepared := w.do(protocol.ComStmtPrepare, "SELECT NEXTVAL('"+name+"')"); prepared[4] != 0 {
				t.Errorf("%s in %s, PREPARE: %v", of.name, charset, serverError(t, prepared))
			}
			e.Servers[0].Exec(t, "DELETE FROM "+e.Schemas[0]+".t")
			w.Close()
		}
	}
}

func TestANameThatIsNoTextNamesNoSequence(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for charset, names := range map[string][]string{
		"utf8mb4": {"\xff", "a\xe9"}, "gbk": {"\xff\xff", "a\x81"}, "sjis": {"\xfe\x80"}, "euckr": {"\xa1"}, "ascii": {"\xc3\xa9"}, "hebrew": {"\xbf"},
	} {
		w.query("SET NAMES " + charset)
		for _, name := range names {
			if err := serverError(t, w.query("SELECT NEXTVAL('"+name+"')")); err.Code != 1235 && err.Code != 4091 {
				t.Errorf("%q in %s: got %v, want 1235", name, charset, err)
			}
		}
	}
}
