package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/proxy"
)

// Numbers of a sequence with an INCREMENT are that far apart wherever several are taken at once.
func TestIncrementHoldsInEveryPlace(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE tens START WITH 5 INCREMENT BY 10", "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, v BIGINT UNSIGNED)",
		"CREATE TABLE source (v BIGINT UNSIGNED PRIMARY KEY)", "INSERT INTO source VALUES (1), (2), (3)")
	next := uint64(5)
	want := func(n int) string {
		var all []string
		for range n {
			all = append(all, fmt.Sprint(next))
			next += 10
		}
		return strings.Join(all, " ")
	}
	flat := func(query string, args ...any) string {
		t.Helper()
		rows, err := c.QueryContext(t.Context(), query, args...)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		defer func() { _ = rows.Close() }()
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for rows.Next() {
			cells, to := make([]uint64, len(columns)), make([]any, len(columns))
			for i := range cells {
				to[i] = &cells[i]
			}
			if err := rows.Scan(to...); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			for _, cell := range cells {
				all = append(all, fmt.Sprint(cell))
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return strings.Join(all, " ")
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	for _, query := range []string{
		"SELECT NEXTVAL('tens')", "SELECT NEXTVAL('tens'), NEXTVAL('tens')", "SELECT NEXTVAL('tens') + 0, NEXT VALUE FOR tens, NEXTVAL(`tens`)",
	} {
		check(query, flat(query), want(strings.Count(query, "NEXT")))
	}
	check("LASTVAL", flat("SELECT LASTVAL(tens)"), fmt.Sprint(next-10))
	check("prepared", flat("SELECT NEXTVAL('tens'), ?, NEXTVAL('tens')", 7), strings.Replace(want(2), " ", " 7 ", 1))
	check("a run", flat("SELECT NEXTVAL('tens', 3)"), strings.Fields(want(3))[0])
	check("after a run", flat("SELECT LASTVAL(tens), NEXTVAL('tens')"), fmt.Sprint(next-10)+" "+want(1))

	stored := func() string { return flat("SELECT id FROM t ORDER BY id") }
	exec(t, c, "INSERT INTO t (id) VALUES (NEXTVAL('tens')), (NEXTVAL('tens')), (NEXTVAL('tens'))")
	check("INSERT of rows", stored(), want(3))
	exec(t, c, "DELETE FROM t")
	if _, err := c.ExecContext(t.Context(), "INSERT INTO t VALUES (NEXTVAL('tens'), ?), (NEXTVAL('tens'), ?)", 1, 2); err != nil {
		t.Fatal(err)
	}
	check("prepared INSERT of rows", stored(), want(2))

	for _, query := range []string{
		"SELECT NEXTVAL('tens') FROM source", "INSERT INTO t (id) SELECT NEXTVAL('tens') FROM source", "UPDATE t SET v = NEXTVAL('tens')",
	} {
		exec(t, c, "DELETE FROM t")
		if strings.HasPrefix(query, "UPDATE") {
			exec(t, c, "INSERT INTO t (id) VALUES (1), (2), (3)")
		}
		got := ""
		if strings.HasPrefix(query, "SELECT") {
			rows, err := c.QueryContext(t.Context(), query)
			if err != nil {
				wantRefused(t, query, err)
				continue
			}
			_ = rows.Close()
			got = flat(query)
			next += 30
		} else if _, err := c.ExecContext(t.Context(), query); err != nil {
			wantRefused(t, query, err)
			continue
		} else {
			got = flat("SELECT IFNULL(v, id) FROM t ORDER BY 1")
		}
		numbers := strings.Fields(got)
		if len(numbers) != 3 {
			t.Fatalf("%s: got %s, want three numbers", query, got)
		}
		for i, text := range numbers {
			var n uint64
			if _, err := fmt.Sscan(text, &n); err != nil || n < next || n%10 != 5 || i > 0 && text == numbers[i-1] {
				t.Errorf("%s: got %s, want numbers from %d in steps of 10", query, got, next)
			}
			next = max(next, n+10)
		}
	}
}

// Another proxy may change the INCREMENT while the numbers of several rows are taken. They are then
// not where this proxy expects them.
func TestAnIncrementThatChangesUnseenGivesNoRowTheNumberOfAnother(t *testing.T) {
	o := newOracle(t, bound(proxy.Binding{Table: "t", Column: "id", Sequence: "photos"}), "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, v INT)")
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "ALTER SEQUENCE photos INCREMENT BY 10 CACHE 1", "SET auto_increment_increment = 10")
	for _, increment := range []int{1, 10} {
		// The INCREMENT is known, and the cache is empty.
		exec(t, c, "INSERT INTO t (v) VALUES (1), (2), (3)")
		o.Servers[0].Exec(t, fmt.Sprintf("UPDATE %s.sequence_options SET increment = %d WHERE name = 'photos'", o.SequenceSchema, increment))
		exec(t, c, "INSERT INTO t (v) VALUES (1), (2), (3)")
		for range 25 {
			n := value(t, c, "SELECT NEXTVAL('photos')")
			if got := value(t, c, "SELECT COUNT(*) FROM t WHERE id = "+n); got != "0" {
				t.Fatalf("INCREMENT BY %d: number %s is in a row, and was given twice", increment, n)
			}
		}
	}
}

func wantRefused(t *testing.T, query string, err error) {
	t.Helper()
	if !strings.Contains(err.Error(), "1235") {
		t.Errorf("%s: %v", query, err)
	}
}
