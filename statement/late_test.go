package statement

import (
	"fmt"
	"testing"
)

func TestWhereANumberBecomesLastInsertIDBehindAllThatReadsIt(t *testing.T) {
	for _, c := range []struct{ second, want string }{
		{"INSERT INTO t VALUES (NEXTVAL('a'), LAST_INSERT_ID())", "INSERT INTO t VALUES (CAST(1 AS UNSIGNED), (LAST_INSERT_ID()+0*LAST_INSERT_ID(1)))"},
		{"INSERT INTO t VALUES (LAST_INSERT_ID(), NEXTVAL('a'))", "INSERT INTO t VALUES (LAST_INSERT_ID(), LAST_INSERT_ID(1))"},
		{"INSERT INTO t VALUES (NEXTVAL('a'), LAST_INSERT_ID() + 1, NEXTVAL('b'))", "INSERT INTO t VALUES (CAST(1 AS UNSIGNED), LAST_INSERT_ID() + 1, (CAST(2 AS UNSIGNED)+0*LAST_INSERT_ID(1)))"},
		{"REPLACE t (a, b) VALUES (NEXTVAL('a'), @@identity), ROW(NEXTVAL('b'), @@identity)", "REPLACE t (a, b) VALUES (CAST(1 AS UNSIGNED), @@identity), ROW(CAST(2 AS UNSIGNED), (@@identity+0*LAST_INSERT_ID(1)))"},
		{"INSERT INTO t SET a = NEXTVAL('a'), b = LAST_INSERT_ID()", "INSERT INTO t SET a = CAST(1 AS UNSIGNED), b = (LAST_INSERT_ID()+0*LAST_INSERT_ID(1))"},
		{"INSERT INTO t SET a = NEXTVAL('a'), b = LAST_INSERT_ID() ON DUPLICATE KEY UPDATE c = 1", "INSERT INTO t SET a = CAST(1 AS UNSIGNED), b = (LAST_INSERT_ID()+0*LAST_INSERT_ID(1)) ON DUPLICATE KEY UPDATE c = 1"},
		{"INSERT INTO t VALUES (NEXTVAL('a'), IF(c, LAST_INSERT_ID(), 1), LAST_INSERT_ID()) RETURNING a", "INSERT INTO t VALUES (CAST(1 AS UNSIGNED), IF(c, LAST_INSERT_ID(), 1), (LAST_INSERT_ID()+0*LAST_INSERT_ID(1))) RETURNING a"},
		{"INSERT INTO t VALUES (NEXTVAL('a'), LAST_INSERT_ID() + 1)", ""},
		{"INSERT INTO t VALUES (1 + NEXTVAL('a'), LAST_INSERT_ID())", ""},
		{"INSERT INTO t VALUES (IF(1, NEXTVAL('a'), 1), LAST_INSERT_ID())", ""},
		{"INSERT INTO t VALUES (NEXTVAL('a'), (LAST_INSERT_ID()))", ""},
		{"INSERT INTO t VALUES (NEXTVAL('a'), -LAST_INSERT_ID())", ""},
		{"INSERT INTO t VALUES (NEXTVAL('a'), 1 AND (SELECT LAST_INSERT_ID()))", ""},
		{"INSERT INTO t SET a = NEXTVAL('a'), b = LAST_INSERT_ID() = 1", ""},
		{"INSERT INTO t SET a = NEXTVAL('a'), b = c = LAST_INSERT_ID(), d = 1 + LAST_INSERT_ID()", ""},
		{"INSERT INTO t SET a = NEXTVAL('a'), b = c = LAST_INSERT_ID()", ""},
		{"INSERT INTO t VALUES (NEXTVAL('a')) ON DUPLICATE KEY UPDATE b = LAST_INSERT_ID()", ""},
		{"INSERT INTO t VALUES (NEXTVAL('a'), 1) ON DUPLICATE KEY UPDATE a = VALUES(a), b = COALESCE(LAST_INSERT_ID(), 0)", ""},
		{"INSERT INTO t VALUES (NEXTVAL('a')) RETURNING LAST_INSERT_ID()", ""},
		{"INSERT INTO t SELECT NEXTVAL('a'), LAST_INSERT_ID()", ""},
		{"SELECT NEXTVAL('a'), LAST_INSERT_ID()", ""},
		{"UPDATE t SET a = NEXTVAL('a'), b = LAST_INSERT_ID()", ""},
	} {
		sql := "INSERT INTO u VALUES (5); " + c.second + "; SELECT LAST_INSERT_ID()"
		st := analyze(sql)
		numbers := make([]bool, len(st.Calls))
		subs := make([]Substitution, len(st.Calls))
		n := uint64(0)
		for i := range st.Calls {
			if numbers[i] = st.Calls[i].Func == Nextval; numbers[i] {
				n++
				subs[i] = Substitution{Replacement: AsUnsigned, Value: n}
			}
		}
		got := ""
		if leader, at, ok := st.Late([]byte(sql), 1, numbers); ok {
			if at == leader {
				subs[at].Replacement = AsLastInsertID
			} else {
				subs[at].Replacement, subs[at].Bound = AsLate, subs[leader].Value
			}
			got = string(st.Rewrite(nil, []byte(sql), subs))
		}
		want := c.want
		if want != "" {
			want = "INSERT INTO u VALUES (5); " + want + "; SELECT LAST_INSERT_ID()"
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.second, got, want)
		}
	}
}

func FuzzLate(f *testing.F) {
	f.Add("INSERT INTO t VALUES (NEXTVAL('a'), LAST_INSERT_ID()), (1, 2)")
	f.Add("REPLACE t SET a = NEXTVAL('a'), b = @@identity ON DUPLICATE KEY UPDATE a = LAST_INSERT_ID()")
	f.Fuzz(func(t *testing.T, second string) {
		sql := []byte("SELECT 1;" + second)
		st := analyze(string(sql))
		numbers := make([]bool, len(st.Calls))
		for i := range st.Calls {
			numbers[i] = st.Calls[i].Func == Nextval
		}
		leader, at, ok := st.Late(sql, 1, numbers)
		if !ok {
			return
		}
		if !numbers[leader] || at < leader || at >= len(st.Calls) || st.Calls[at].Statement != 1 {
			t.Errorf("%q: leader %d, at %d of %s", second, leader, at, fmt.Sprint(st.Calls))
		}
		for i := at + 1; i < len(st.Calls); i++ {
			if c := &st.Calls[i]; c.Statement == 1 && (c.Func == LastInsertID || c.Func == LastInsertIDVariable) {
				t.Errorf("%q: %d reads behind %d", second, i, at)
			}
		}
	})
}
