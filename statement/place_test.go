package statement

import (
	"fmt"
	"strings"
	"testing"
)

// places writes the places of a text's NEXTVALs: 1 is once; r, s and c are once per row of the
// result, the source, a change; n is never. The index of a later statement follows. For a text with
// a refusal it writes that.
func places(sql string) string {
	st := analyze(sql)
	if st.Refusal != "" {
		return st.Refusal
	}
	var b strings.Builder
	for _, c := range st.Calls {
		if c.Func != Nextval {
			continue
		}
		b.WriteByte("1rscn"[c.Place])
		if c.Statement > 0 {
			fmt.Fprint(&b, "@", c.Statement)
		}
	}
	return b.String()
}

func TestEveryNextvalHasAPlace(t *testing.T) {
	const (
		part    = "NEXTVAL in SELECT ... FROM outside the outermost list, where the server may evaluate it several times,"
		rollup  = "NEXTVAL in SELECT ... GROUP BY ... WITH ROLLUP, which repeats values,"
		union   = "NEXTVAL in SELECT ... FROM ... UNION, which compares rows before they have numbers,"
		within  = "NEXTVAL in a subquery of UPDATE or DELETE, which the server may evaluate several times,"
		common  = "NEXTVAL in WITH ... AS, which the server may evaluate several times,"
		shifted = "NEXTVAL behind a statement that may change the meaning of quotes, backslashes or letters"
	)
	for _, c := range []struct{ sql, want string }{
		// Without a table.
		{"select nextval('a'), 1 + nextval('b'), (select nextval('c'))", "111"},
		{"select 1 where nextval('a') > 0 limit 1", "1"},
		{"select nextval('a') union all select nextval('a') order by 1", "11"},
		{"select nextval('a') union select id from t", "1"},
		{"(select nextval('a')) union (select nextval('a') limit 1)", "11"},
		{"select distinct nextval('a') into @x", "1"},
		{"select nextval('a') group by 1", "1"},
		{"select nextval('a') group by 1 having nextval('b') > 1 order by 1", "11"},
		{"select nextval('a') group by 1 with rollup", rollup},
		{"select nextval('a') group by 1 /*! with rollup */", rollup},
		{"select (select nextval('a')) group by rollup(1)", rollup},
		{"select 1 group by 1 with rollup having nextval('a')", rollup},
		{"select 1 union (select nextval('a') group by 1 with rollup)", rollup},
		{"with x as (select 1) select nextval('a')", "1"},
		{"with x as (select 1), y (a, b) as (select 2, 3) select nextval('a') as a, (select nextval('a'))", "11"},
		{"with x as (select nextval('a')) select 1", common},
		{"with recursive x as (select nextval('a') as n union all select n + 1 from x where n < 2000) select * from x", common},
		{"with x as (select 1) (select nextval('a'))", common},
		{"with x as (values (nextval('a'))) select 1", common},
		{"select (with x as (select nextval('a') as n) select n + n from x)", common},
		{"select 1, (with x as (select 1) select nextval('a'))", "1"},
		{"values (nextval('a')), (nextval('b'), (nextval('c')))", "111"},
		{"values row(1), row(nextval('b')) order by 1 limit 1", "1"},
		{"values (1), (2) order by nextval('b')", "NEXTVAL behind the rows of VALUES"},
		{"values (1), ((select nextval('b') from t))", part},
		{"(values (nextval('a')))", "NEXTVAL in VALUES in parentheses"},
		{"select 1 union values (nextval('a')), (nextval('a'))", "11"},
		{"do nextval('a'), nextval('b')", "11"},
		{"set @a = nextval('a')", "1"},
		{"set @a = 1, b = nextval('a'), global c = (nextval('a'))", "11"},
		{"set @a = (select nextval('a') from t limit 1)", part},
		{"set statement lock_wait_timeout = 1 for select nextval('a')", "NEXTVAL in SET STATEMENT ... FOR"},
		{"set statement max_statement_time = @x for select nextval('a')", "NEXTVAL in SET STATEMENT ... FOR"},
		{"set statement sql_select_limit = 1 for insert into t select nextval('a')", "NEXTVAL in SET STATEMENT ... FOR"},
		{"set statement max_statement_time = 0.5, sql_select_limit=1 for select nextval('a')", "1"},
		{"set statement SQL_SELECT_LIMIT=1 for select nextval('a') from t", "r"},
		{"SET STATEMENT max_statement_time=1 FOR insert into t values (nextval('a'))", "1"},
		{"call p(nextval('a'), 1, (select nextval('b')))", "11"},
		{"call p((select max(nextval('a')) from t))", part},
		{"execute s using nextval('a'), @b", "1"},

		// With a table, only as an item of the outermost list.
		{"select nextval('a') from t", "r"},
		{"select t.*, nextval('a') as n, nextval('b') from t join u on t.a = u.a where b = 1 order by 1 limit 5", "rr"},
		{"select nextval('a'), b, count(*) from t group by b", "r"},
		{"(select nextval('a') from t)", "r"},
		{"((select nextval('a') from t)) limit 1", "r"},
		{"select nextval('a') from dual, t", "r"},
		{"select nextval('a') from (select 1 union select 2) u", "r"},
		{"select nextval('a') from (select distinct b from t) u", "r"},
		{"select nextval('a') from json_table('[1,2]', '$[*]' columns (a int path '$')) j", "r"},
		{"with x as (select 1) select nextval('a') from x", "r"},
		{"select nextval('a'), 1e5from t", "r"},
		{"select nextval('a'), \\Nfrom t", "r"},
		{"select nextval('a'), union.x from t `union`", "r"},
		{"select nextval('a'), dual.x from dual.t", "r"},
		{"select nextval('a'), count(distinct b) from t", "r"},
		{"select nextval('a') + 1 from t", part},
		{"select (nextval('a')) from t", part},
		{"select nextval('a') from t where b = nextval('a')", part},
		{"select 1 from t join u on nextval('a') = 1", part},
		{"select 1 from t, lateral (select nextval('a')) u", part},
		{"select 1 from t group by nextval('a')", part},
		{"select 1 from t having nextval('a')", part},
		{"select 1 from t limit 1 offset nextval('a')", part},
		{"select 1 from t where exists (select nextval('a'))", part},
		{"select * from (values (nextval('a')), (nextval('a'))) v", part},
		{"select * from json_table(nextval('a'), '$[*]' columns (a int path '$')) j", part},
		{"select nextval('a') from t union select 1", union},
		{"(select nextval('a') from t) union select 1", union},
		{"select 1 union select nextval('a') from t", union},
		{"select 1 union (select nextval('a') from t)", part},
		{"select 1; (select nextval('a') from t) except select 1", union},
		{"select distinct nextval('a'), b from t", "NEXTVAL in SELECT DISTINCT ... FROM, which compares rows before they have numbers,"},
		{"select all distinctrow nextval('a'), b from t", "NEXTVAL in SELECT DISTINCT ... FROM, which compares rows before they have numbers,"},
		{"select nextval('a') from t into @a", "NEXTVAL in SELECT ... FROM ... INTO, whose rows do not come to the proxy,"},
		{"select nextval('a') into outfile 'x' from t", "NEXTVAL in SELECT ... FROM ... INTO, whose rows do not come to the proxy,"},

		// Written rows.
		{"insert ignore into t values (nextval('a')), (nextval('a'))", "11"},
		{"insert delayed t values (nextval('a'))", "1"},
		{"replace delayed t set a = nextval('a')", "1"},
		{"insert into t values row(nextval('a')), row(2)", "1"},
		{"insert into t values ((select nextval('a')), 1)", "1"},
		{"insert into t values (nextval('a')) returning id, t.*", "1"},
		{"insert into t set a = nextval('a') returning id", "1"},
		{"insert into t values (1) returning nextval('a')", "1"},
		{"insert into t set a = nextval('a') returning id as x, nextval('a') + 1, (select nextval('a'))", "111"},
		{"insert into t values (nextval('a')) on duplicate key update b = nextval('a') returning nextval('a')", "111"},
		{"insert into t values (1), (2) returning nextval('a')", "r"},
		{"insert into t values (1), (2) returning id as x, nextval('a')", "r"},
		{"insert into t values (1) union values (2) returning nextval('a')", "r"},
		{"insert into t select 1 returning nextval('a')", "r"},
		{"insert into t values (1) returning (select nextval('a') from u limit 1)", part},
		{"replace into t values (1), (2) returning (select nextval('a'))", "r"},
		{"insert into t values (nextval('a')), (2) returning nextval('a'), id", "1r"},
		{"delete from t returning nextval('a')", "r"},
		{"delete from t returning id as x, nextval('a')", "r"},
		{"insert into t values (1), (2) as n on duplicate key update a = n.b as x, c = nextval('a')", "s"},
		{"insert into t values (nextval('a')), (nextval('a')) on duplicate key update a = 1", "11"},
		{"insert into t values (nextval('a')), (nextval('a')) on duplicate key update a = nextval('a') + nextval('b')", "ssss"},
		{"insert into t select nextval('a') from u on duplicate key update a = nextval('b')", "ss"},
		{"insert into t select nextval('a') on duplicate key update a = nextval('b')", "1s"},
		{"insert into t values (nextval('a')) on duplicate key update a = nextval('a'), b = (nextval('b'))", "111"},
		{"insert into t (a, b) values (1, (2)) on duplicate key update a = (1), b = (nextval('b'))", "1"},
		{"insert into t (a, b) values (1, (2)) as n (x, y) on duplicate key update a = (1), b = (n.x + nextval('b'))", "1"},
		{"insert into t set a = 1, b = (2) on duplicate key update a = (1), b = nextval('b')", "1"},
		{"insert into t values (1), (2) on duplicate key update a = nextval('a')", "s"},
		{"insert into t values row(1), row(2) on duplicate key update a = nextval('a')", "s"},
		{"insert into t values (1), (2) as n (x) on duplicate key update a = nextval('a')", "s"},
		{"insert into t values (1) union values (2) on duplicate key update a = nextval('a')", "s"},
		{"insert into t select 1 on duplicate key update a = nextval('a')", "s"},
		{"insert into t select 1 union all select 2 on duplicate key update a = nextval('a')", "s"},
		{"insert into t select a from u on duplicate key update a = nextval('a')", "s"},
		{"insert into t table u on duplicate key update a = nextval('a')", "s"},
		{"insert into t set a = 1, v = 1e5on duplicate key update v = nextval('a')", "1"},
		{"insert into t select 1, \\Non duplicate key update v = nextval('a')", "s"},
		{"insert into t select nextval('a')", "1"},
		{"insert into t (select nextval('a') union all select nextval('a'))", "11"},
		{"insert into t select nextval('a') group by 1 with rollup", rollup},
		{"insert into t select nextval('a') + b, b from u where b > 1 order by b", "s"},
		{"insert into t (a) (select nextval('a') from x)", "s"},
		{"insert ignore t (a) ((select nextval('a') from x))", "s"},
		{"insert into t with x as (select 1) select nextval('a') from x", "s"},
		{"insert into t with x as (select nextval('a') as n) select n from x, y", common},
		{"insert into t with x as (select nextval('a') as n) select (select n from x), (select n from x)", common},
		{"replace into t select nextval('a') from u union all select nextval('b') from v", "ss"},
		{"replace into t select nextval('a') union all select nextval('b') from v", "1s"},
		{"insert into t select b from u where a = nextval('a')", part},
		{"insert into t select (select nextval('a')) from u", part},
		{"insert into t select n from (select nextval('a') n) u, v", part},

		// Changed rows.
		{"update t set a = nextval('a'), b = b + nextval('b') where c = nextval('c') order by nextval('d') limit 1", "cccc"},
		{"update t, u set t.a = nextval('a') where t.b = u.b", "c"},
		{"update t set a = (select nextval('a'))", within},
		{"update t set a = (select nextval('a') from u limit 1)", within},
		{"update t join (select nextval('a') n) u set a = n", within},
		{"delete from t where a = nextval('a')", "c"},
		{"delete t from t join u where a in (select nextval('a'))", within},
		{"with x as (select 1) update t set a = nextval('a')", "NEXTVAL in WITH ... UPDATE and WITH ... DELETE, where the server may evaluate it several times,"},
		{"with x as (select 1) delete from t where a = nextval('a')", "NEXTVAL in WITH ... UPDATE and WITH ... DELETE, where the server may evaluate it several times,"},

		// Plans.
		{"explain select nextval('a'), (select nextval('b') from t) from t where c = nextval('c') group by 1 with rollup", "nnn"},
		{"explain format=json insert into t select nextval('a') from u on duplicate key update a = nextval('b')", "nn"},
		{"desc update t set a = nextval('a')", "n"},
		{"explain with x as (select nextval('a')) select * from x", "n"},
		{"explain select nextval('a'), last_insert_id(), connection_id()", "n"},
		{"explain select nextval('a'); select nextval('a')", "n1@1"},
		{"explain select nextval(concat('a', 'b'))", "NEXTVAL(expression)"},
		{"explain analyze select nextval('a')", "NEXTVAL in ANALYZE"},
		{"explain format=tree analyze select nextval('a')", "NEXTVAL in ANALYZE"},
		{"analyze select nextval('a')", "NEXTVAL in ANALYZE"},
		{"analyze format=json update t set a = nextval('a')", "NEXTVAL in ANALYZE"},
		{"analyze table t; select nextval('a')", "1@1"},

		// Several statements.
		{"select nextval('a'); select 1", "1"},
		{"; select 1;; select nextval('a'), nextval('a');", "1@11@1"},
		{"insert into t values (nextval('a')); select last_insert_id(); insert into u select nextval('b') from t", "1s@2"},
		{"update t set a = nextval('a'); set @a = nextval('b'); call p(nextval('c'))", "c1@11@2"},
		{"create table t (a int); select nextval(b)", "1@1"},
		{"set @a = 1, autocommit = 0, session wait_timeout = 5; select nextval('a'), \"é\"", "1@1"},
		{"set names utf8mb4; select nextval('a')", "1@1"},
		{"set names gbk; insert into t values (nextval('a'), 'é')", shifted},
		{"set names utf8mb4; insert into t values (nextval('a'), 'é')", "1@1"},
		{"set names utf8mb4; insert into t values (nextval('é'), 'a')", shifted},
		{"set sql_mode = ''; insert into t values (nextval('a'), \"b\")", shifted},
		{"set @a = 1, session sql_mode = ''; insert into t values (nextval('a'), '\\'')", shifted},
		{"call p(); insert into t values (nextval('a'), '\\'')", shifted},
		{"execute s; insert into t values (nextval('a'), '[')", shifted},
		{"insert into t values (nextval('a'), '\\''); call p(); select 1", "1"},
		{"call p(nextval('a')); set sql_mode = ''; select \"1\"", "1"},
		{"select nextval('a'); begin not atomic select 1; end", "1"},
	} {
		if got := places(c.sql); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}
