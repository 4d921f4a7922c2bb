package statement

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"seqproxy/statement/lex"
	"seqproxy/test/texts"
)

// fill analyses sql and replaces its calls. Sequence "a" gives 1001, 1002, ..., "b" gives 2001, ...
// LAST_INSERT_ID() is 77 before, and the connection is 2147483650.
func fill(t *testing.T, sql string, mode lex.Mode, params bool) (text string, needs []Need, hidden []int) {
	t.Helper()
	var st Statement
	st.Analyze([]byte(sql), mode)
	if st.Refusal != "" {
		t.Fatalf("%q: refused: %s", sql, st.Refusal)
	}
	needs = st.Needs(nil, nil)
	values := Replacements{LastInsertID: 77, ConnectionID: 2147483650, Params: params}
	for i := range needs {
		values.Taken = append(values.Taken, Taken{First: uint64(i+1)*1000 + 1})
	}
	subs := st.Substitutions(nil, needs, nil, values)
	return string(st.Rewrite(nil, []byte(sql), subs)), needs, st.HiddenParams(subs)
}

func TestRewriteSplicesCallsAndTouchesNothingElse(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"insert into t (id) values (nextval('a'))", "insert into t (id) values (LAST_INSERT_ID(1001))"},
		{
			" INSERT  INTO `t` VALUES ( NextVal ( 'a' ) , 'nextval(''a'')' ) , (NEXTVAL(a)/*c*/,\"x\\\"\") -- end\n;",
			" INSERT  INTO `t` VALUES ( LAST_INSERT_ID(1001) , 'nextval(''a'')' ) , (CAST(1002 AS UNSIGNED)/*c*/,\"x\\\"\") -- end\n;",
		},
		{
			"insert into t values (nextval('a'), nextval('b')), (nextval('A'), nextval('b'))",
			"insert into t values (LAST_INSERT_ID(1001), CAST(2001 AS UNSIGNED)), (CAST(1002 AS UNSIGNED), CAST(2002 AS UNSIGNED))",
		},
		{
			"insert into t set id = nextval('a'), parent = last_insert_id(), x = @@identity, c = connection_id()",
			"insert into t set id = LAST_INSERT_ID(1001), parent = CAST(77 AS UNSIGNED), x = CAST(77 AS UNSIGNED), c = CAST(2147483650 AS UNSIGNED)",
		},
		{"insert into t values (last_insert_id())", "insert into t values (last_insert_id())"},
		{"select 1 + nextval('a')", "select 1 + LAST_INSERT_ID(1001) AS `1 + nextval('a')`"},
		{
			"select  nextval('a') , last_insert_id()  from dual limit 1",
			"select  LAST_INSERT_ID(1001) AS `nextval('a')` , CAST(77 AS UNSIGNED) AS `last_insert_id()`  from dual limit 1",
		},
		{"select nextval('a') x limit 1", "select LAST_INSERT_ID(1001) x limit 1"},
		{"select nextval('a') as x limit 1", "select LAST_INSERT_ID(1001) as x limit 1"},
		{"select nextval('a') 'x' limit 1", "select LAST_INSERT_ID(1001) 'x' limit 1"},
		{"select nextval('a')x limit 1", "select LAST_INSERT_ID(1001)x limit 1"},
		{"select nextval(`a`) limit 1", "select LAST_INSERT_ID(1001) AS `nextval(``a``)` limit 1"},
		{"select distinct nextval('a')", "select distinct LAST_INSERT_ID(1001) AS `nextval('a')`"},
		{"select nextval('a') -- c\n limit 1", "select LAST_INSERT_ID(1001) AS `nextval('a')` -- c\n limit 1"},
		{"select nextval('a') is null", "select LAST_INSERT_ID(1001) is null AS `nextval('a') is null`"},
		{"select nextval('a') is unknown", "select LAST_INSERT_ID(1001) is unknown AS `nextval('a') is unknown`"},
		{
			"select case when nextval('a') then 1 else x end",
			"select case when LAST_INSERT_ID(1001) then 1 else x end AS `case when nextval('a') then 1 else x end`",
		},
		{
			"select case when nextval('a') then 1 end e",
			"select case when LAST_INSERT_ID(1001) then 1 end e",
		},
		{
			"select now() + interval nextval('a') day",
			"select now() + interval LAST_INSERT_ID(1001) day AS `now() + interval nextval('a') day`",
		},
		{
			"select now() + interval nextval('a') day d",
			"select now() + interval LAST_INSERT_ID(1001) day d",
		},
		{
			"select nextval('a') like 'x' escape '!'",
			"select LAST_INSERT_ID(1001) like 'x' escape '!' AS `nextval('a') like 'x' escape '!'`",
		},
		{
			"select nextval('a') collate utf8mb4_bin limit 1",
			"select LAST_INSERT_ID(1001) collate utf8mb4_bin AS `nextval('a') collate utf8mb4_bin` limit 1",
		},
		{"select nextval('a') mod 5", "select LAST_INSERT_ID(1001) mod 5 AS `nextval('a') mod 5`"},
		{"select cast(nextval('a') as char)", "select cast(LAST_INSERT_ID(1001) as char) AS `cast(nextval('a') as char)`"},
		{"select (select nextval('a'))", "select (select LAST_INSERT_ID(1001)) AS `(select nextval('a'))`"},
		{
			"select nextval('a') union select nextval('a')",
			"select LAST_INSERT_ID(1001) AS `nextval('a')` union select CAST(1002 AS UNSIGNED)",
		},
		{
			"(select nextval('a')) union (select nextval('a'))",
			"(select LAST_INSERT_ID(1001) AS `nextval('a')`) union (select CAST(1002 AS UNSIGNED))",
		},
		{"select connection_id()", "select CAST(2147483650 AS UNSIGNED) AS `connection_id()`"},
		{
			"select *, connection_id() from t where x = connection_id()",
			"select *, CAST(2147483650 AS UNSIGNED) AS `connection_id()` from t where x = CAST(2147483650 AS UNSIGNED)",
		},
		{
			"select * from (select connection_id()) t",
			"select * from (select CAST(2147483650 AS UNSIGNED) AS `connection_id()`) t",
		},
		{
			"with x as (select connection_id()) select * from x",
			"with x as (select CAST(2147483650 AS UNSIGNED) AS `connection_id()`) select * from x",
		},
		{
			"select id from t where c in (select connection_id())",
			"select id from t where c in (select CAST(2147483650 AS UNSIGNED))",
		},
		{"select @@pseudo_thread_id", "select CAST(2147483650 AS UNSIGNED) AS `@@pseudo_thread_id`"},
		{"select last_insert_id()", "select last_insert_id()"},
		{"select /*! nextval('a') */", "select /*! LAST_INSERT_ID(1001) AS `nextval('a')` */"},
		{"select /*! nextval('a') */ + 1", "select /*! LAST_INSERT_ID(1001) */ + 1"},
		{"select@@identity,nextval('a')limit 1", "select CAST(77 AS UNSIGNED) AS `@@identity`,LAST_INSERT_ID(1001) AS `nextval('a')`limit 1"},
		{"select concat('\xf0\x9f\x98\x80\xc3\xa9\x00', nextval('a'))", "select concat('\xf0\x9f\x98\x80\xc3\xa9\x00', LAST_INSERT_ID(1001)) AS `concat('?\xc3\xa9\\x00', nextval('a'))`"},
		{
			"(values (connection_id()))",
			"(values (CAST(2147483650 AS UNSIGNED)))",
		},
		{"kill connection_id()", "kill CAST(2147483650 AS UNSIGNED)"},
	} {
		got, _, _ := fill(t, c.sql, lex.Mode{}, false)
		if got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.sql, got, c.want)
		}
	}
}

func TestRewriteKeepsMultiByteCharactersWhole(t *testing.T) {
	// The second byte of 0xbf5c is a backslash, that of 0xbf60 a backquote.
	sql := "select concat('\xbf\x5c', `\xbf\x60`, nextval('a'))"
	want := "select concat('\xbf\x5c', `\xbf\x60`, LAST_INSERT_ID(1001)) AS `concat('\xbf\x5c', ``\xbf\x60``, nextval('a'))`"
	if got, _, _ := fill(t, sql, lex.Mode{Charset: lex.GBK}, false); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRewriteWithHiddenParameters(t *testing.T) {
	sql := "insert into t values (?, nextval('a'), ?, nextval('a')), (last_insert_id(), ?, nextval('b'), ?)"
	want := "insert into t values (?, LAST_INSERT_ID(?), ?, CAST(? AS UNSIGNED)), (CAST(? AS UNSIGNED), ?, CAST(? AS UNSIGNED), ?)"
	got, needs, hidden := fill(t, sql, lex.Mode{}, true)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if wantHidden := []int{1, 3, 4, 6}; !slices.Equal(hidden, wantHidden) {
		t.Errorf("got hidden parameters %v, want %v", hidden, wantHidden)
	}
	if len(needs) != 2 || string(needs[0].Name) != "a" || needs[0].Count != 2 || string(needs[1].Name) != "b" || needs[1].Count != 1 {
		t.Errorf("got needs %+v, want a x 2, b x 1", needs)
	}
	var st Statement
	st.Analyze([]byte(sql), lex.Mode{})
	if st.Params != 4 {
		t.Errorf("got %d parameters, want 4", st.Params)
	}
	st.Analyze([]byte(want), lex.Mode{})
	if st.Params != 8 {
		t.Errorf("got %d parameters after rewriting, want 8", st.Params)
	}
}

func TestNeedsFollowTheCallersIdeaOfANameAndItsStep(t *testing.T) {
	sql := []byte("insert into t values (nextval('a'), nextval('A'), nextval('a'))")
	var st Statement
	st.Analyze(sql, lex.Mode{})
	needs := st.Needs(nil, bytes.Equal)
	if len(needs) != 2 || needs[0].Count != 2 || needs[1].Count != 1 {
		t.Fatalf("got needs %+v, want a x 2, A x 1", needs)
	}
	subs := st.Substitutions(nil, needs, bytes.Equal, Replacements{Taken: []Taken{{First: 10, Step: 5}, {First: 7}}})
	want := []Substitution{
		{Replacement: AsLastInsertID, Value: 10}, {Replacement: AsUnsigned, Value: 7}, {Replacement: AsUnsigned, Value: 15},
	}
	if !slices.Equal(subs, want) {
		t.Errorf("got %+v, want %+v", subs, want)
	}
}

func TestRewriteThatKeepsEverythingReturnsTheText(t *testing.T) {
	for _, sql := range texts.Corpus {
		var st Statement
		st.Analyze([]byte(sql), lex.Mode{})
		if got := st.Rewrite(nil, []byte(sql), make([]Substitution, len(st.Calls))); string(got) != sql {
			t.Errorf("%q: got %q", sql, got)
		}
	}
}

func TestLongColumnNamesAreCutAtACharacter(t *testing.T) {
	for _, c := range []struct {
		fill    string
		charset lex.Charset
		want    int // bytes of the name
	}{
		{"y", lex.UTF8, 255},
		{"\xc3\xa9", lex.UTF8, 8 + 2*247},
		{"\xbf\\", lex.GBK, 8 + 2*247},
		{"\xe9", lex.CharsetByName("latin1"), 255},
	} {
		sql := []byte("select concat('" + strings.Repeat(c.fill, 300) + "', nextval('a'))")
		var st Statement
		st.Analyze(sql, lex.Mode{Charset: c.charset})
		if len(st.Items) != 1 {
			t.Fatalf("%q: got %d items, want 1", c.fill, len(st.Items))
		}
		it := st.Items[0]
		if got := len(st.ColumnName(sql, it)); got != c.want {
			t.Errorf("%q: got a name of %d bytes, want %d", c.fill, got, c.want)
		}
	}
}

func TestEscapesInNamesAreDecoded(t *testing.T) {
	for _, c := range []struct {
		sql  string
		mode lex.Mode
		want string
	}{
		{`select nextval('\0\b\n\r\t\Z\%\_\'\"\\\x')`, lex.Mode{}, "\x00\b\n\r\t\x1a\\%\\_'\"\\x"},
		{`select nextval("a""b\"c")`, lex.Mode{}, `a"b"c`},
		{`select nextval('a\n''b')`, lex.Mode{SQLMode: lex.SQLMode{NoBackslashEscapes: true}}, `a\n'b`},
		{"select nextval(\"a\\n\"\"b\")", lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: true}}, `a\n"b`},
		{"select nextval(`a\\n``b`)", lex.Mode{}, "a\\n`b"},
		{"select nextval('')", lex.Mode{}, ""},
	} {
		var st Statement
		st.Analyze([]byte(c.sql), c.mode)
		if len(st.Calls) != 1 || st.Calls[0].Form != FormName || string(st.Calls[0].Name) != c.want {
			t.Errorf("%s: got calls %+v, want the name %q", c.sql, st.Calls, c.want)
		}
	}
}
