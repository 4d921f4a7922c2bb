package statement

import (
	"testing"

	"seqproxy/statement/lex"
)

// Checklist 28.
func TestModesChangeWhatIsCode(t *testing.T) {
	for _, c := range []struct {
		sql  string
		mode lex.Mode
		want string
	}{
		{`select 'a\', nextval('a') -- '`, lex.Mode{}, ""},
		{`select 'a\', nextval('a') -- '`, lex.Mode{SQLMode: lex.SQLMode{NoBackslashEscapes: true}}, "N1[nextval('a')]a/0/0"},
		{`select "a\", nextval('a') -- "`, lex.Mode{}, ""},
		{`select "a\", nextval('a') -- "`, lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: true}}, "N1[nextval('a')]a/0/0"},
		{`select nextval("a\b")`, lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: true}}, `N1[nextval("a\b")]a\b/0/0`},
		{`select "last_insert_id"()`, lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: true}}, `L0["last_insert_id"()]/0/0`},
		{`select "nextval"('a')`, lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: true}}, ""},
		{"select '\xbf\\', nextval('a') -- '", lex.Mode{Charset: lex.GBK}, "N1[nextval('a')]a/0/0"},
		{"select '\xbf\\', nextval('a') -- '", lex.Mode{}, ""},
		{"select nextval('a')", lex.Mode{Charset: lex.Unsupported}, ""},
		{"select [it's], nextval('a') -- '", lex.Mode{SQLMode: lex.SQLMode{Brackets: true}}, ""},
		{"select '[', nextval('a')", lex.Mode{SQLMode: lex.SQLMode{Brackets: true}}, "N1[nextval('a')]a/0/0"},
		{"select nextval('\xbf\\')", lex.Mode{Charset: lex.GBK}, "N1[nextval('\xbf\\')]\xbf\\/0/0"},
		{"select nextval('\xbf\\''')", lex.Mode{Charset: lex.GBK}, "N1[nextval('\xbf\\''')]\xbf\\'/0/0"},
	} {
		var st Statement
		st.Analyze([]byte(c.sql), c.mode)
		if got := describe(c.sql, &st); got != c.want {
			t.Errorf("%q %+v:\n got %q\nwant %q", c.sql, c.mode, got, c.want)
		}
	}
}
