package statement

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/statement/lex"
)

// spelled writes the calls of a text in one line: kind, spelling, text, name, count and the values
// of a SETVAL.
func spelled(sql string, st *Statement) string {
	kinds := map[Func]string{Nextval: "next", Lastval: "last", Setval: "set", LastInsertID: "id"}
	spellings := []string{"", "for ", "dot ", "from ", "values "}
	var calls []string
	for _, c := range st.Calls {
		name := string(c.Name)
		if c.Schema != nil {
			name = string(c.Schema) + ":" + name
		}
		call := fmt.Sprintf("%s %s[%s]%s", kinds[c.Func], spellings[c.Spelling], sql[c.Start:c.End], name)
		if c.Count > 1 {
			call += fmt.Sprint("*", c.Count)
		}
		if c.Set != nil {
			call += fmt.Sprint("=", *c.Set)
		}
		calls = append(calls, call)
	}
	return strings.Join(calls, " ")
}

func TestASequenceHasManySpellings(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"select NEXT VALUE FOR s", "next for [NEXT VALUE FOR s]s"},
		{"select next /* a */ value\nfor `s` x", "next for [next /* a */ value\nfor `s`]s"},
		{"select next value for db . s + 1", "next for [next value for db . s]db:s"},
		{"insert into t values (next value for s, 1), (next value for MYCATSEQ_S, 2)", "next for [next value for s]s next for [next value for MYCATSEQ_S]MYCATSEQ_S"},
		{"insert into t set a = next value for s, b = 1", "next for [next value for s]s"},
		{"select previous value for s, (previous value for d.s)", "last for [previous value for s]s last for [previous value for d.s]d:s"},
		{"select 1 from t where a > previous value for s for update", "last for [previous value for s]s"},
		{"select lastval(s), LastVal ('s'), lastval(d.s)", "last [lastval(s)]s last [LastVal ('s')]s last [lastval(d.s)]d:s"},
		{"select setval(s, 5)", "set [setval(s, 5)]s={5 false false false 0}"},
		{"select setval('s', -5, 0)", "set [setval('s', -5, 0)]s={5 true false true 0}"},
		{"select setval(d.s, +18446744073709551615, false, 2)", "set [setval(d.s, +18446744073709551615, false, 2)]d:s={18446744073709551615 false false true 2}"},
		{"select setval(s, 5, 1, 0), 1", "set [setval(s, 5, 1, 0)]s={5 false false false 0}"},
		{"select setval(s, 1 + 1)", "set [setval(s, 1 + 1)]s"},
		{"select setval(s, ?), setval(?, ?, 0), lastval(?)", "set [setval(s, ?)]s={0 false true false 0} set [setval(?, ?, 0)]={0 false true true 0} last [lastval(?)]"},
		{"select setval(s, ?, (1), last_insert_id())", "set [setval(s, ?, (1), last_insert_id())]s"},
		{"select setval(s)", "set [setval(s)]s"},
		{"select nextval('s', 10)", "next [nextval('s', 10)]s*10"},
		{"select nextval(d.s , 1000000 )", "next [nextval(d.s , 1000000 )]d:s*1000000"},
		{"select next value from s", "next from [next value from s]s"},
		{"/* a */ SELECT /* b */ NEXT VALUE FROM d.s ; ", "next from [NEXT VALUE FROM d.s]d:s"},
		{"select next 10 values from s", "next values [next 10 values from s]s*10"},
		{"select next 10 values for `s`", "next values [next 10 values for `s`]s*10"},

		{"select s.nextval", "next dot [s.nextval]s"},
		{"select S.NextVal, `s` . currval x, d.s.nextval from dual", "next dot [S.NextVal]S last dot [`s` . currval]s next dot [d.s.nextval]d:s"},
		{"insert into t (a) values (s.nextval), (s.nextval)", "next dot [s.nextval]s next dot [s.nextval]s"},
		{"insert into t set a = s.nextval", "next dot [s.nextval]s"},
		{"update t set a = s.nextval where b = r.currval", "next dot [s.nextval]s last dot [r.currval]r"},
		{"delete from t where a = s.nextval", "next dot [s.nextval]s"},
		{"call p(s.nextval)", "next dot [s.nextval]s"},
		{"set @a = s.nextval", "next dot [s.nextval]s"},
		{"select (s.nextval), 's', \"s\" from t where 's' = b", "next dot [s.nextval]s"},
		{"select s.nextval from (select 1 as a) x", "next dot [s.nextval]s"},

		{"select s.nextval, lastval(s), next value for s, s.currval", "next dot [s.nextval]s last [lastval(s)]s next for [next value for s]s last dot [s.currval]s"},

		// Texts that may be a column, a table, an alias or a function are no calls.
		{"select s.nextval from s", ""},
		{"select s.nextval from S", ""},
		{"select s.nextval from t s", ""},
		{"select s.nextval from t as `S`", ""},
		{"select d.s.nextval from d.s", ""},
		{"select s.nextval from s.t", ""},
		{"select (select s.nextval) from t join s on 1", ""},
		{"select (select s.nextval from t) from (select 1 as nextval) s", ""},
		{"with s as (select 1 as nextval) select s.nextval from s", ""},
		{"with recursive s(nextval) as (select 1) select (select s.nextval)", ""},
		{"insert into s values (s.nextval)", ""},
		{"insert into t (a) values (1) as s(nextval) on duplicate key update a = s.nextval", ""},
		{"insert into t (s.nextval) values (1)", ""},
		{"update s set a = s.nextval", ""},
		{"update t as s, u set a = s.nextval", ""},
		{"delete s.nextval from s.nextval where 1", ""},
		{"delete from s.nextval", ""},
		{"delete from s using t as s where s.nextval = 1", ""},
		{"select * from s.nextval", ""},
		{"select * from t, s.nextval", ""},
		{"select * from (t join s.nextval)", ""},
		{"select s.nextval from s.nextval", ""},
		{"insert into s.nextval values (1)", ""},
		{"insert s.nextval values (1)", ""},
		{"update s.nextval set a = 1", ""},
		{"table s.nextval", ""},
		{"select s.nextval()", ""},
		{"select s.nextval.a, a.b.c.nextval, .nextval", ""},
		{"select s.`nextval`, s.nextvalue, s.nextval1, s.xnextval", ""},
		{"select @@s.nextval, @s.nextval", ""},
		{"select 's'.nextval, 1.nextval", ""},
		{"select s/*!*/.nextval", ""},
		{"select \xc3\xa4.nextval from \xc3\x84", ""},
		{"select a.nextval, b.nextval, c.nextval, d.nextval, e.nextval, f.nextval, g.nextval, h.nextval, i.nextval", ""},
		{"create view v as select s.nextval", ""},
		{"explain select s.nextval", ""},
		{"begin not atomic select s.nextval; end", ""},
		{"load data infile 'x' into table t set a = s.nextval", ""},

		{"select next value from t where a = 1", ""},
		{"select next value from t limit 1", ""},
		{"select next value from t, u", ""},
		{"select next value from t x", ""},
		{"select next as value from t", ""},
		{"select a, next value from t", ""},
		{"select distinct next value from t", ""},
		{"select (select next value from t)", ""},
		{"(select next value from t)", ""},
		{"insert into t select next value from u", ""},
		{"select 1 union select next value from t", ""},
		{"select next value for update", ""},
		{"select next value for share", ""},
		{"select * from next value for system_time all", ""},
		{"select next, value from t for update", ""},
		{"select x.next value for s", ""},
		{"select next value for 's'", ""},
		{"select next value for", ""},
		{"select next value, 5", ""},
		{"select `next` value for s", ""},
		{"select next 5 values", ""},
		{"select next 5 values from s where 1", ""},
		{"select next -5 values from s", ""},
		{"select lastval(@a), lastval(concat('a')), lastval(), lastval(s, 1)", ""},
		{"select a.lastval(s), `setval`(s, 5), lastval, setval", ""},
		{"select 'lastval(s)' -- lastval(s)", ""},
		{"create view v as select lastval(s), next value for s", ""},
		{"create table t (a int default next value for s)", ""},
	} {
		st := analyze(c.sql)
		if got := spelled(c.sql, st); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.sql, got, c.want)
		}
		if st.Refusal != "" && c.want == "" {
			t.Errorf("%q: refused: %s", c.sql, st.Refusal)
		}
	}
}

func TestASpellingOfSeveralWordsIsAnItem(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"select next value for s, 1", "select LAST_INSERT_ID(1001) AS `next value for s`, 1"},
		{"select next value for s x, 1", "select LAST_INSERT_ID(1001) x, 1"},
		{"select next value for d.s as x, 1", "select LAST_INSERT_ID(1001) as x, 1"},
		{"select 1 + next value for s, 1", "select 1 + LAST_INSERT_ID(1001) AS `1 + next value for s`, 1"},
		{"select s.nextval limit 1", "select LAST_INSERT_ID(1001) AS `s.nextval` limit 1"},
		{"select s . nextval x limit 1", "select LAST_INSERT_ID(1001) x limit 1"},
		{"select a.nextval collate utf8mb4_bin, b.nextval from dual limit 1", "select LAST_INSERT_ID(1001) collate utf8mb4_bin AS `a.nextval collate utf8mb4_bin`, CAST(2001 AS UNSIGNED) AS `b.nextval` from dual limit 1"},
		{"select next value from s;", "select LAST_INSERT_ID(1001) AS `nextval`;"},
		{"select next 5 values from s", "select LAST_INSERT_ID(1001) AS `nextval`"},
		{"select nextval(s, 5) + 1", "select LAST_INSERT_ID(1001) + 1 AS `nextval(s, 5) + 1`"},
	} {
		if got, _, _ := fill(t, c.sql, lex.Mode{}, false); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.sql, got, c.want)
		}
	}
}
