package statement

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/statement/lex"
)

// tablesOf writes the Tables of a text: kind, name as written, decoded names, and the start of the
// statement.
func tablesOf(st *Statement, sql string) string {
	var found []string
	for _, t := range st.Tables {
		schema := "-"
		if t.Schema != nil {
			schema = string(t.Schema)
		}
		found = append(found, fmt.Sprintf("%s %d@%d [%s] %s %s", kindNames[t.Kind], t.Statement, t.Begin, sql[t.Start:t.End], schema, t.Name))
	}
	return strings.Join(found, "; ")
}

func TestTheTableThatAStatementChanges(t *testing.T) {
	ansi, noEscapes := lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: true}}, lex.Mode{SQLMode: lex.SQLMode{NoBackslashEscapes: true}}
	for _, c := range []struct {
		sql  string
		mode lex.Mode
		want string
	}{
		{"insert into photos (id) values (1)", lex.Mode{}, "Insert 0@0 [photos] - photos"},
		{"INSERT photos VALUES (1)", lex.Mode{}, "Insert 0@0 [photos] - photos"},
		{"insert into Photos values (1)", lex.Mode{}, "Insert 0@0 [Photos] - Photos"},
		{"insert low_priority ignore into a.b set c = 1", lex.Mode{}, "Insert 0@0 [a.b] a b"},
		{"insert high_priority into `a`.`b` select 1", lex.Mode{}, "Insert 0@0 [`a`.`b`] a b"},
		{"insert delayed into a . b values (1)", lex.Mode{}, "Insert 0@0 [a . b] a b"},
		{"insert into a /* x */ . /* y */ b values (1)", lex.Mode{}, "Insert 0@0 [a /* x */ . /* y */ b] a b"},
		{"/* x */ insert -- y\n into # z\n t values (1)", lex.Mode{}, "Insert 0@8 [t] - t"},
		{"insert into `it``s`values (1)", lex.Mode{}, "Insert 0@0 [`it``s`] - it`s"},
		{"insert into `a b`(c) values (1)", lex.Mode{}, "Insert 0@0 [`a b`] - a b"},
		{`insert into "t" values (1)`, lex.Mode{}, ""},
		{`insert into "a""b"."t" values (1)`, ansi, `Insert 0@0 ["a""b"."t"] a"b t`},
		{`insert into "a\" values (1)`, noEscapes, ""},
		{`insert into "a\" values (1)`, ansi, `Insert 0@0 ["a\"] - a\`},
		{"insert into 't' values (1)", lex.Mode{}, ""},
		{"insert into value values (1)", lex.Mode{}, "Insert 0@0 [value] - value"},
		{"insert into a.values values (1)", lex.Mode{}, "Insert 0@0 [a.values] a values"},
		{"insert into ignore.t values (1)", lex.Mode{}, "Insert 0@0 [ignore.t] ignore t"},
		{"insert into `ignore` values (1)", lex.Mode{}, "Insert 0@0 [`ignore`] - ignore"},
		{"insert into sequence (name) values ('x') on duplicate key update id = last_insert_id(id + 1)", lex.Mode{}, "Insert 0@0 [sequence] - sequence"},
		{"insert into 1a.2b values (1)", lex.Mode{}, "Insert 0@0 [1a.2b] 1a 2b"},
		{"insert into t$ä values (1)", lex.Mode{}, "Insert 0@0 [t$ä] - t$ä"},
		{"insert into nextval values (nextval('s'))", lex.Mode{}, "Insert 0@0 [nextval] - nextval"},
		{"insert into t partition (p0) values (1)", lex.Mode{}, "Insert 0@0 [t] - t"},
		{"insert /*! ignore */ into /*! t */ values (1)", lex.Mode{}, "Insert 0@0 [t] - t"},
		{"insert /*!50700 ignore */ into t values (1)", lex.Mode{}, "Other 0@0 [t] - t"},
		{"insert into /*!99999 x */ t values (1)", lex.Mode{}, "Other 0@0 [x] - x"},
		{"analyze insert into a.t values (1)", lex.Mode{}, "Other 0@0 [a.t] a t"},
		{"analyze format=json replace t values (1)", lex.Mode{}, "Other 0@0 [t] - t"},
		{"analyze select replace(a, b, c) from t", lex.Mode{}, ""},
		{"set statement lock_wait_timeout = 1 for insert ignore into t values (1)", lex.Mode{}, "Other 0@0 [t] - t"},
		{"set statement max_statement_time = 1 for insert ignore into t values (1)", lex.Mode{}, "Insert 0@41 [t] - t"},
		{"set statement max_statement_time = 1 for update t set a = 1", lex.Mode{}, "Update 0@41 [t] - t"},
		{"load data local infile 'x' replace into table a.t fields terminated by ',' (a, b)", lex.Mode{}, "Load 0@0 [a.t] a t"},
		{"load xml infile 'x' into table t", lex.Mode{}, "Load 0@0 [t] - t"},
		{"explain insert into t values (1)", lex.Mode{}, ""},
		{"insert into t /*!99999 x */ values (1)", lex.Mode{}, "Insert 0@0 [t] - t"},
		{"insert into a.b.c values (1)", lex.Mode{}, ""},
		{"insert into a. values (1)", lex.Mode{}, "Insert 0@0 [a. values] a values"},
		{"insert into", lex.Mode{}, ""},
		{"insert into (t) values (1)", lex.Mode{}, ""},
		{"insert into t values ('", lex.Mode{}, ""},
		{"replace into tickets64 (stub) values ('a')", lex.Mode{}, "Replace 0@0 [tickets64] - tickets64"},
		{"replace delayed t set a = 1", lex.Mode{}, "Replace 0@0 [t] - t"},
		{"update sequence set id = last_insert_id(id + 1) where name = 'photos'", lex.Mode{}, "Update 0@0 [sequence] - sequence"},
		{"UPDATE LOW_PRIORITY IGNORE a.`b` SET c = 1", lex.Mode{}, "Update 0@0 [a.`b`] a b"},
		{"update a.set set b = 1", lex.Mode{}, "Update 0@0 [a.set] a set"},
		{"update t as x set a = 1", lex.Mode{}, ""},
		{"update t x set a = 1", lex.Mode{}, ""},
		{"update t, u set a = 1", lex.Mode{}, ""},
		{"update t join u set a = 1", lex.Mode{}, ""},
		{"update (t) set a = 1", lex.Mode{}, ""},
		{"update t partition (p0) set a = 1", lex.Mode{}, ""},
		{"update t /*!99999 , u */ set a = 1", lex.Mode{}, ""},
		{"delete from t", lex.Mode{}, ""},
		{"select * from t for update", lex.Mode{}, ""},
		{"insert into t select * from u", lex.Mode{}, "Insert 0@0 [t] - t"},
		{"explain insert into t values (1)", lex.Mode{}, ""},
		{"create trigger x before insert on t for each row insert into u values (1)", lex.Mode{}, ""},
		{"begin not atomic insert into t values (1); end", lex.Mode{}, ""},
		{"; replace into a values ('x');; select last_insert_id(); update b set c = 1", lex.Mode{}, "Replace 0@2 [a] - a; Update 2@57 [b] - b"},
		{"insert into `\xbf\x60` values (1)", lex.Mode{Charset: lex.GBK}, "Insert 0@0 [`\xbf\x60`] - \xbf\x60"},
		{"insert into \x83\x5c.t values (1)", lex.Mode{Charset: lex.SJIS}, "Insert 0@0 [\x83\x5c.t] \x83\x5c t"},
		{"insert into \xe4 values (1)", lex.Mode{Charset: lex.CharsetByName("latin1")}, "Insert 0@0 [\xe4] - \xe4"},
		{"insert into \xe4 values (1)", lex.Mode{Charset: lex.CharsetByName("cp1251")}, "Insert 0@0 [\xe4] - \xe4"},
	} {
		var st Statement
		st.Analyze([]byte(c.sql), c.mode)
		if got := tablesOf(&st, c.sql); got != c.want {
			t.Errorf("%q: got %q, want %q", c.sql, got, c.want)
		}
		if single := st.Table(); single != nil != (len(st.Tables) == 1 && st.Tables[0].Kind != Other && st.Kind != Multi) {
			t.Errorf("%q: got the single table %+v of %d", c.sql, single, len(st.Tables))
		}
	}
}
