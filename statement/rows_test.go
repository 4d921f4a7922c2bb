package statement

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/statement/lex"
)

func TestColumnsOfNumbersAreFoundInAResult(t *testing.T) {
	for _, test := range []struct{ sql, want string }{
		{"SELECT NEXTVAL('s') FROM t", "[{0 0}]"},
		{"select a, b c, nextval(s) as n, (1, 2), f(x, y) from t", "[{0 2}]"},
		{"SELECT SQL_NO_CACHE ALL a, NEXTVAL('s'), LAST_INSERT_ID(), NEXT VALUE FOR s FROM t", "[{0 1} {2 3}]"},
		{"SELECT *, NEXTVAL('s') FROM t", "[{0 -1}]"},
		{"SELECT NEXTVAL('s'), t.*, a * b, NEXTVAL('r'), c FROM t", "[{0 0} {1 -2}]"},
		{"SELECT a * b, NEXTVAL('s') FROM t", "[{0 1}]"},
		{"SELECT COUNT(*), NEXTVAL('s') FROM t", "[{0 1}]"},
		{"WITH a (x, y) AS (SELECT 1, 2 FROM b) SELECT x, NEXTVAL('s') FROM a;", "[{0 1}]"},
		{"SELECT a, NEXTVAL('s') AS n FROM t GROUP BY a, 1 HAVING a > 1 ORDER BY 1, 3, t.n, m, 'n'", "[{0 1}]"},
		{"SELECT NEXTVAL('s') AS n FROM t WHERE n > 1 LIMIT 1", "[{0 0}]"},
		{"SELECT a, NEXTVAL('s'), * FROM t ORDER BY 1", "[{0 1}]"},
		{"SELECT a, NEXTVAL('s') AS n FROM t ORDER BY a, `N`", "refers"},
		{"SELECT a, NEXTVAL('s') AS n FROM t ORDER BY IF(n, 1, 2)", "refers"},
		{"SELECT a, NEXTVAL('s') n FROM t GROUP BY a, 2", "refers"},
		{"SELECT a, NEXTVAL('s') n FROM t HAVING 5 < n", "refers"},
		{"SELECT *, NEXTVAL('s') FROM t ORDER BY 1", "refers"},
		{"SELECT NEXTVAL('s') AS ñ FROM t ORDER BY n", "refers"},
		{"SELECT NEXTVAL('s') FROM t ORDER BY ?", "ORDER BY ?"},
		{"SELECT *, NEXTVAL('s'), * FROM t", "two *"},
		{"SELECT 1 + NEXTVAL('s') FROM t", "expression"},
		{"SELECT (NEXTVAL('s')) FROM t", "part"},
		{"SELECT (SELECT NEXTVAL('s')) FROM t", "part"},
		{"SELECT a FROM t WHERE NEXTVAL('s')", "list"},
		{"(SELECT NEXTVAL('s') FROM t)", "(SELECT"},
		{"SELECT DISTINCT NEXTVAL('s') FROM t", "DISTINCT"},
		{"SELECT NEXTVAL('s') FROM t UNION ALL SELECT 1", "UNION"},
		{"SELECT NEXTVAL('s') FROM t INTO @x", "INTO"},
		{"SELECT NEXTVAL('s') FROM t PROCEDURE ANALYSE()", "PROCEDURE"},
		{"SELECT NEXTVAL('s') FROM t; SELECT 1", "multi"},
		{"INSERT INTO t (a, b) VALUES (1, 2), (3, (4)) RETURNING a, NEXTVAL('s') AS n, NEXTVAL('r')", "[{0 1} {1 2}]"},
		{"insert into t values (nextval('s')), (nextval('s')) on duplicate key update a = (1) returning *, f(1, 2), nextval('s')", "[{2 -1}]"},
		{"REPLACE INTO t SELECT a, b FROM u UNION SELECT 1, 2 RETURNING NEXTVAL('s'), t.*, a", "[{0 0}]"},
		{"DELETE FROM t WHERE a > 1 ORDER BY a LIMIT 2 RETURNING NEXTVAL('s'), a", "[{0 0}]"},
		{"INSERT INTO t VALUES (1), (2) RETURNING NEXTVAL('s') + 1", "RETURNING"},
		{"UPDATE t SET a = 1 RETURNING NEXTVAL('s')", "NEXTVAL in UPDATE ... RETURNING, whose rows get no numbers,"},
		{"INSERT INTO t VALUES (1), (2) RETURNING a, IF(1, NEXTVAL('s'), 2)", "RETURNING"},
		{"INSERT INTO t VALUES (1), (2) RETURNING a, (SELECT NEXTVAL('s'))", "RETURNING"},
		{"INSERT INTO t VALUES (1), (2) RETURNING *, NEXTVAL('s'), *", "two *"},
	} {
		var st Statement
		st.Analyze([]byte(test.sql), lex.Mode{})
		columns, refusal := st.RowColumns([]byte(test.sql))
		switch got := fmt.Sprint(columns); {
		case test.want[0] == '[' && (refusal != "" || got != test.want):
			t.Errorf("%s: got %s, %q, want %s", test.sql, got, refusal, test.want)
		case test.want[0] != '[' && (!strings.HasPrefix(refusal, "NEXTVAL") || !strings.Contains(refusal, test.want)):
			t.Errorf("%s: got %s, %q, want a refusal with %q", test.sql, got, refusal, test.want)
		}
	}
}

// Each word behind ORDER BY is compared with each number's name and position. With 20,000 numbers
// half a megabyte would take a minute, which nobody can end.
func TestThePlacesThatMayReferToNumbersAreBounded(t *testing.T) {
	for _, c := range []struct {
		numbers int
		end     string
		refused bool
	}{
		{maxReferred, " FROM t ORDER BY b, 9999", false},
		{maxReferred + 1, " FROM t ORDER BY b", true},
		{maxReferred + 1, " FROM t ORDER BY 9999", true},
		{maxReferred + 1, " FROM t GROUP BY 9999", true},
		{maxReferred + 1, " FROM t HAVING COUNT(*) > 1", true},
		{maxReferred + 1, " FROM t WHERE (SELECT 1 FROM u ORDER BY b)", false},
		{maxReferred + 1, " FROM t", false},
	} {
		query := "SELECT NEXTVAL('s')" + strings.Repeat(", NEXTVAL('s')", c.numbers-1) + c.end
		var st Statement
		st.Analyze([]byte(query), lex.Mode{})
		if _, refusal := st.RowColumns([]byte(query)); refusal != "" != c.refused || c.refused && refusal != errManyReferred {
			t.Errorf("%d%s: got %q, want refused %v", c.numbers, c.end, refusal, c.refused)
		}
		insert := "INSERT INTO u " + query
		st.Analyze([]byte(insert), lex.Mode{})
		if _, refusal := st.Counted([]byte(insert)); refusal != "" != c.refused || c.refused && refusal != errManyReferred {
			t.Errorf("INSERT of %d%s: got %q, want refused %v", c.numbers, c.end, refusal, c.refused)
		}
	}
}
