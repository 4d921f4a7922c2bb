package redact

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"seqproxy/statement/lex"
	"seqproxy/test/texts"
)

func TestRedact(t *testing.T) {
	for _, test := range []struct {
		sql, want string
		mode      lex.Mode
	}{
		{sql: "SELECT id,  name\n FROM photos WHERE id = 12345 AND x='it''s' -- c\n LIMIT 5", want: "SELECT id, name FROM photos WHERE id = ? AND x=? LIMIT ?"},
		{sql: "select * from t where id in (1, 2,3 ) and b not in ('a','b') or c in (1)", want: "select * from t where id in (?, ...) and b not in (?, ...) or c in (?)"},
		{sql: "INSERT INTO t (a, b) VALUES (1, 'x'), (2, now()), (3, (4))", want: "INSERT INTO t (a, b) VALUES (?, ...), ..."},
		{
			sql:  "insert into t values (null, now(), 'x'), (1, now(), 'y') , (2, now(), 'z') on duplicate key update a = values(a), b = values(b), c = 5",
			want: "insert into t values (null, now(), ?), ... on duplicate key update a = values(a), b = values(b), c = ?",
		},
		{sql: "select (1, 2), (a, 3), b in ((1,2),(3,4)), f(1, x, 2, 3)", want: "select (?, ...), ..., b in ((?, ...), ...), f(?, x, ?, ...)"},
		{sql: "select a, b, -1, +2, - 3, 5 - 4, a-1, -b, (-1, -2)", want: "select a, b, ?, ... - ?, a-?, -b, (?, ...)"},
		{sql: "select x'41', N'a', b'1', _utf8'x', _latin1 'y' , 0x1F, 1.5e-3, .5, \\N, t.1a, 1a", want: "select ?, ..., _utf8?, _latin1 ?, ..., t.?, ..."},
		{sql: "select 'a' 'b' \"c\", date'2020-01-01', timestamp '2020-01-01 00:00:00', interval '1' day, true, false, null", want: "select ?, date?, timestamp ?, interval ? day, true, false, null"},
		{sql: "SET @a = 'x', @'b c' = 5, @`d` := \"e\"", want: "SET @a = ?, @? = ?, @`d` := ?"},
		{sql: "/* secret */ select /*! 1 */ + /*!50000 'x' */ # y\n from /**/ t", want: "select ? + ? from t"},
		{sql: `select "secret"`, want: "select ?"},
		{sql: `select "name", "a.b", "a secret", "1"`, want: `select "name", "a.b", ?, ...`, mode: lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: true}}},
		{sql: `select 'a\'b', 'c'`, want: "select ?, ..."},
		{sql: `select 'a\', 'c'`, want: "select ?, ...", mode: lex.Mode{SQLMode: lex.SQLMode{NoBackslashEscapes: true}}},
		{sql: "select '\xbf\\', 'b'", want: "select ?, ...", mode: lex.Mode{Charset: lex.GBK}},
		{sql: "select '\x81\\', 'b'", want: "select ?, ...", mode: lex.Mode{Charset: lex.SJIS}},
		{sql: "select a from t where b = \u201csecret\u201d", want: "select a from t where b = ?"},
		{sql: "select ?, ? from t where a = ? and b in (?,?,?)", want: "select ?, ... from t where a = ? and b in (?, ...)"},

		// Accounts.
		{sql: "CREATE USER 'bob'@'%' IDENTIFIED BY 'x', 'eve' identified by 'y'", want: "CREATE USER ?@? IDENTIFIED..."},
		{sql: "create user bob@localhost identified by secret", want: "create user bob@localhost identified..."},
		{sql: "GRANT ALL ON *.* TO `bob`@`%`", want: "GRANT ALL ON *.* TO `bob`@`%`"},
		{sql: "SET PASSWORD FOR bob = secret", want: "SET PASSWORD..."},
		{sql: "ALTER USER bob PASSWORD EXPIRE", want: "ALTER USER bob PASSWORD..."},
		{sql: "CHANGE MASTER TO MASTER_USER='a', MASTER_PASSWORD=secret", want: "CHANGE MASTER TO MASTER_USER=?, MASTER_PASSWORD..."},
		{sql: "select password from users where password = 'x'", want: "select password from users where password = ?"},
		{sql: "select 1; set sql_mode = 'ansi_quotes'; select \"secret\"", want: "select ?; set sql_mode = ?;..."},
		{sql: "create function f() returns int language javascript as $$ return `secret` $$", want: "create function f() returns int language javascript as ..."},

		// Unreadable texts.
		{sql: "select 'unterminated", want: NotUnderstood},
		{sql: "select 'it's secret', 'that's it'", want: NotUnderstood},
		{sql: "select that's, 'x'", want: NotUnderstood},
		{sql: "select 'it's", want: NotUnderstood},
		{sql: "select /* secret", want: NotUnderstood},
		{sql: "select `secret", want: NotUnderstood},
		{sql: "select 1 \x00 'x'", want: NotUnderstood},
		{sql: "select [a]", want: NotUnderstood, mode: lex.Mode{SQLMode: lex.SQLMode{Brackets: true}}},
		{sql: "select 1", want: NotUnderstood, mode: lex.Mode{Charset: lex.Unsupported}},
		{sql: "select a\xbb from t", want: NotUnderstood, mode: lex.Mode{Charset: lex.CharsetByName("cp1251")}},
		{sql: "select 1;\x00 'secret'", want: "select ?;"},
		{sql: "select 1 \x00", want: "select ?"},
		{sql: "/*!99999 a 'b */ secret'", want: NotUnderstood},
		{sql: "", want: ""},
	} {
		before := []byte(test.sql)
		if got := string(Append(nil, []byte(test.sql), test.mode, false)); got != test.want {
			t.Errorf("%q in %+v:\ngot  %q\nwant %q", test.sql, test.mode, got, test.want)
		}
		if got := string(Append([]byte("kept "), before, test.mode, false)); got != "kept "+test.want || string(before) != test.sql {
			t.Errorf("behind other bytes: got %q, want %q; the text became %q", got, "kept "+test.want, before)
		}
	}
}

// TestRedactTheBeginningOfAText cuts a text at every byte. Except for the last word, the redacted
// part must be a beginning of the redacted whole.
func TestRedactTheBeginningOfAText(t *testing.T) {
	const secret = "secret"
	sql := "SELECT a, 'secret1', x'736563726574', \"secret\", b /* secret */ FROM t -- secret\n WHERE c IN ('secret', 'secret2') AND d = 'it''s secret' AND e = 1"
	whole := string(Append(nil, []byte(sql), lex.Mode{}, false))
	for n := range len(sql) {
		got := string(Append(nil, []byte(sql[:n]), lex.Mode{}, true))
		if strings.Contains(strings.ToLower(got), secret) {
			t.Errorf("cut at %d: %q has the secret", n, got)
		}
		if got == NotUnderstood && n < len("SELECT a") {
			continue // nothing can be read yet
		}
		head, ok := strings.CutSuffix(got, "...")
		if head = strings.TrimSuffix(strings.TrimRight(head, ", "), ", ..."); !ok || !strings.HasPrefix(whole, head) {
			t.Errorf("cut at %d: got %q, want a beginning of %q", n, got, whole)
		}
	}
}

func TestRedactIsBounded(t *testing.T) {
	for name, sql := range map[string]string{
		"names":     "SELECT " + strings.Repeat("abc, ", 1e5) + "x",
		"rows":      "INSERT INTO t VALUES (1, 2)" + strings.Repeat(", (3, 'x')", 1e5),
		"long name": "SELECT " + strings.Repeat("a", 1e6) + ", `" + strings.Repeat("b", 1e6) + "`",
		"nested":    "SELECT " + strings.Repeat("(", 1e6),
	} {
		if got := Append(nil, []byte(sql), lex.Mode{}, false); len(got) > Longest+longestName+10 {
			t.Errorf("%s: got %d bytes", name, len(got))
		}
	}
	if got, want := string(Append(nil, []byte("INSERT INTO t VALUES (1, 2)"+strings.Repeat(", (3, 'x')", 1e5)+" ON DUPLICATE KEY UPDATE a = 1"), lex.Mode{}, false)),
		"INSERT INTO t VALUES (?, ...), ... ON DUPLICATE KEY UPDATE a = ?"; got != want {
		t.Errorf("many rows: got %q, want %q", got, want)
	}
}

// marker is planted in literals. No form of it may come out of Append.
const marker = "qzxwvkj"

// writer makes statements of random parts. It has its own knowledge of the server's rules for
// literals, independent of the lexer.
type writer struct {
	choices []byte // the choices; at their end it chooses the first
	mode    lex.Mode
	out     bytes.Buffer
	depth   int
}

func (w *writer) choose(n int) int {
	if len(w.choices) == 0 {
		return 0
	}
	c := int(w.choices[0]) % n
	w.choices = w.choices[1:]
	return c
}

// payload is the contents of a literal: the marker, surrounded by awkward characters.
func (w *writer) payload(quote byte) string {
	awkward := []string{"", " ", "''", `""`, "`", "/*", "*/", "--", "#", ";", "\n", "(", ")", ",", "?", "é", "$$", "identified by", "/*!", "0x", "%"}
	var s strings.Builder
	for range 1 + w.choose(3) {
		s.WriteString(awkward[w.choose(len(awkward))])
		s.WriteString(marker)
	}
	if w.choose(3) == 0 && w.mode.Charset.Multi() {
		// one character
		s.WriteString(map[lex.Charset]string{lex.GBK: "\xbf\\", lex.GB18030: "\xbf\\", lex.Big5: "\xa4\\", lex.SJIS: "\x83\\"}[w.mode.Charset])
	}
	text := s.String()
	if w.mode.Charset != lex.UTF8 {
		text = strings.ReplaceAll(text, "é", "e")
	}
	// Every quote is doubled, which is right for both kinds.
	text = strings.ReplaceAll(strings.ReplaceAll(text, "''", "'"), `""`, `"`)
	text = strings.ReplaceAll(text, string(quote), string([]byte{quote, quote}))
	if !w.mode.NoBackslashEscapes {
		switch w.choose(4) {
		case 0:
			text = `\` + string(quote) + text
		case 1:
			text += `\\`
		}
	} else if w.choose(2) == 0 {
		text += `\` // a backslash is an ordinary character
	}
	return text
}

func (w *writer) literal() {
	quotes := []byte{'\'', '"'}
	if w.mode.ANSIQuotes {
		quotes = quotes[:1]
	}
	switch w.choose(9) {
	case 0, 1, 2:
		q := quotes[w.choose(len(quotes))]
		fmt.Fprintf(&w.out, "%c%s%c", q, w.payload(q), q)
	case 3:
		fmt.Fprintf(&w.out, "_utf8mb4'%s'", w.payload('\''))
	case 4:
		fmt.Fprintf(&w.out, "N'%s'", w.payload('\''))
	case 5:
		fmt.Fprintf(&w.out, "x'%x'", marker)
	case 6:
		fmt.Fprintf(&w.out, "0x%x", marker)
	case 7:
		w.out.WriteString("-918273645.5e3")
	case 8:
		fmt.Fprintf(&w.out, "DATE '%s' '%s'", w.payload('\''), w.payload('\''))
	}
}

func (w *writer) space() {
	spaces := []string{" ", "  ", "\t", "\n", " /* " + marker + " */ ", " # " + marker + " ' \n", " -- " + marker + " \" \n", "/**/ "}
	w.out.WriteString(spaces[w.choose(len(spaces))])
}

func (w *writer) name() {
	names := []string{"a", "b.c", "`x y`", "d", "`it's`", "@v", "@@session.sql_mode", "tbl_1"}
	w.out.WriteString(names[w.choose(len(names))])
}

func (w *writer) expression() {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > 6 {
		w.literal()
		return
	}
	switch w.choose(8) {
	case 0, 1, 2:
		w.literal()
	case 3:
		w.name()
	case 4:
		w.expression()
		w.out.WriteString(" + ")
		w.expression()
	case 5:
		w.out.WriteString("f(")
		w.values()
		w.out.WriteString(")")
	case 6:
		w.name()
		w.out.WriteString(" IN (")
		w.values()
		w.out.WriteString(")")
	case 7:
		w.out.WriteString("/*!40000 ")
		w.literalOutsideOfComments()
		w.out.WriteString(" */")
	}
}

// literalOutsideOfComments writes a literal that does not end an executable comment.
func (w *writer) literalOutsideOfComments() { fmt.Fprintf(&w.out, "'%s'", marker) }

func (w *writer) values() {
	for i := range 1 + w.choose(4) {
		if i > 0 {
			w.out.WriteString(",")
			w.space()
		}
		w.expression()
	}
}

func (w *writer) statement() {
	switch w.choose(7) {
	case 0:
		w.out.WriteString("SELECT ")
		w.values()
		w.out.WriteString(" FROM")
		w.space()
		w.name()
		w.out.WriteString(" WHERE ")
		w.expression()
	case 1:
		w.out.WriteString("INSERT INTO t VALUES ")
		for i := range 1 + w.choose(3) {
			if i > 0 {
				w.out.WriteString(", ")
			}
			w.out.WriteString("(")
			w.values()
			w.out.WriteString(")")
		}
		w.out.WriteString(" ON DUPLICATE KEY UPDATE a = VALUES(a), b = ")
		w.expression()
	case 2:
		w.out.WriteString("UPDATE t SET a = ")
		w.expression()
		w.space()
		w.out.WriteString(", password = ")
		w.expression()
	case 3:
		fmt.Fprintf(&w.out, "CREATE USER '%s'@'%s' IDENTIFIED BY '%s'", w.payload('\''), w.payload('\''), w.payload('\''))
	case 4:
		w.out.WriteString("SET @x := ")
		w.expression()
		w.out.WriteString(", PASSWORD = " + marker)
	case 5:
		w.out.WriteString("CALL p(")
		w.values()
		w.out.WriteString(")")
	case 6:
		w.out.WriteString("SELECT ")
		w.values()
		w.out.WriteString(";")
		w.space()
		w.out.WriteString("DELETE FROM t WHERE a LIKE ")
		w.expression()
	}
}

// FuzzRedact checks that no literal and no part of a comment comes out. The oracle is a writer of
// statements that plants a marker in all of them.
func FuzzRedact(f *testing.F) {
	for i := range 64 {
		seed := make([]byte, 40)
		for j := range seed {
			seed[j] = byte(i*31 + j*j*7 + i*j)
		}
		f.Add(seed, byte(i), uint16(0), []byte(nil))
	}
	for i, sql := range texts.Corpus {
		f.Add([]byte(nil), byte(i), uint16(5), []byte(sql))
	}
	f.Fuzz(func(t *testing.T, choices []byte, m byte, cut uint16, junk []byte) {
		mode := texts.ModeOf(m &^ 32) // without brackets, which make every text unreadable
		w := writer{choices: choices, mode: mode}
		w.statement()
		sql := w.out.Bytes()
		check := func(sql []byte, cut bool) string {
			got := string(Append(nil, sql, mode, cut))
			for _, form := range []string{marker, fmt.Sprintf("%x", marker), "918273645"} {
				if strings.Contains(strings.ToLower(got), form) {
					t.Fatalf("in %+v, %q became %q, which has a literal", mode, sql, got)
				}
			}
			return got
		}
		if got := check(sql, false); got == NotUnderstood && mode.Charset != lex.Unsupported {
			t.Errorf("in %+v a text is not understood: %q", mode, sql)
		}
		check(sql[:int(cut)%(len(sql)+1)], true)
		// Junk, alone and after a statement, causes no panic and stays within the bounds.
		for _, text := range [][]byte{append(bytes.Clone(sql), junk...), junk} {
			before := bytes.Clone(text)
			for _, cut := range []bool{false, true} {
				if got := Append(nil, text, texts.ModeOf(m), cut); len(got) > Longest+longestName+10 {
					t.Errorf("%q becomes %d bytes", text, len(got))
				}
			}
			if !bytes.Equal(text, before) {
				t.Fatalf("%q was changed to %q", before, text)
			}
		}
	})
}
