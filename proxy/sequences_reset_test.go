package proxy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A sequence whose counter begins again each year, as clients see it: a text, and a number.
func TestAFormatWithResetAsClientsSeeIt(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (k VARCHAR(30) PRIMARY KEY, n INT)", "CREATE TABLE numbers (id BIGINT PRIMARY KEY, n INT)",
		"CREATE TABLE narrow (id INT PRIMARY KEY)")
	c := e.Conn(t, e.Schemas[0], nil)
	year := time.Now().UTC().Year()
	exec(t, c, "CREATE SEQUENCE t FORMAT 'a{yyyy}-{n:3}' RESET YEARLY WIDEN OWNED BY t.k COMMENT 'orders'",
		fmt.Sprintf("INSERT INTO t VALUES ('a%d-001', 1)", year), "INSERT INTO t (n) VALUES (2)", "INSERT INTO t VALUES (NEXTVAL('t'), 3)")
	for n := 1; n <= 3; n++ {
		want := fmt.Sprintf("a%d-%03d", year, n)
		if got := value(t, c, fmt.Sprintf("SELECT k FROM t WHERE n = %d", n)); got != want {
			t.Errorf("row %d has the key %s, want %s", n, got, want)
		}
	}
	_, created := table(t, c, "SHOW CREATE SEQUENCE t")
	if got := created[0][1]; !strings.Contains(got, "nocache nocycle format 'a{yyyy}-{n:3}' widen reset yearly owned by") || !strings.Contains(got, "COMMENT='orders'") {
		t.Errorf("SHOW CREATE SEQUENCE says %s", got)
	}
	_, rows := table(t, c, fmt.Sprintf("SELECT SEQUENCE_DECODE('t', 'a%d-002')", year-7))
	if got, want := fmt.Sprint(rows), fmt.Sprintf("[[2 NULL %d FORMAT 'a{yyyy}-{n:3}' WIDEN RESET YEARLY NULL %[1]d]]", year-7); got != want {
		t.Errorf("SEQUENCE_DECODE says %s, want %s", got, want)
	}
	_, rows = table(t, c, "SHOW SEQUENCES")
	if len(rows) != 1 || rows[0][0] != "t" || rows[0][1] != "4" {
		t.Errorf("SHOW SEQUENCES says %v", rows)
	}
	if _, rows = table(t, c, "CHECK SEQUENCE t"); !strings.Contains(fmt.Sprint(rows), "are texts, which are not compared") {
		t.Errorf("CHECK SEQUENCE says %v", rows)
	}
	exec(t, c, "ALTER SEQUENCE t RESTART WITH 999 CACHE 10")
	if got := value(t, c, "SELECT NEXTVAL('t')") + value(t, c, "SELECT NEXTVAL('t')"); got != fmt.Sprintf("a%d-999a%[1]d-1000", year) {
		t.Errorf("it widens to %s", got)
	}
	wantError(t, c, 1235, "ALTER SEQUENCE t RESET DAILY", "RESET", "in ALTER SEQUENCE", "another name")
	wantError(t, c, 1235, "ALTER SEQUENCE t ORDER", "ORDER", "NOCACHE")
	wantError(t, c, 1235, "SELECT SETVAL('t', 5)", "RESTART WITH")

	exec(t, c, "CREATE SEQUENCE numbers FORMAT '9{yyyy}{n:2}' RESET YEARLY OWNED BY numbers.id")
	for n, statement := range []string{"INSERT INTO numbers (n) VALUES (1)", "INSERT INTO numbers VALUES (NEXTVAL('numbers'), 2)", "INSERT INTO numbers SET n = 3"} {
		r, err := c.ExecContext(t.Context(), statement)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("9%04d%02d", year, n+1)
		id, _ := r.LastInsertId()
		if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != want || fmt.Sprint(id) != want || value(t, c, "SELECT MAX(id) FROM numbers") != want {
			t.Errorf("%s: the insert id is %d, LAST_INSERT_ID() %s, want %s", statement, id, got, want)
		}
	}
	if _, rows := table(t, c, fmt.Sprintf("SELECT SEQUENCE_DECODE('numbers', 9%d03)", year)); rows[0][0] != "3" || rows[0][5] != fmt.Sprint(year) {
		t.Errorf("SEQUENCE_DECODE says %v", rows)
	}
	if _, rows := table(t, c, "CHECK SEQUENCE numbers"); !strings.Contains(fmt.Sprint(rows), "not compared with the counter, which begins again") {
		t.Errorf("CHECK SEQUENCE says %v", rows)
	}
	exec(t, c, "REPAIR SEQUENCE numbers", "ALTER SEQUENCE numbers RESTART WITH 99", "INSERT INTO numbers (n) VALUES (99)")
	wantError(t, c, 4084, "INSERT INTO numbers (n) VALUES (100)")
	wantError(t, c, 1210, "CREATE SEQUENCE narrow FORMAT '{yyyy}{n:7}' RESET YEARLY OWNED BY narrow.id", "2147483647", "wider")
	wantError(t, c, 1210, "CREATE SEQUENCE text FORMAT '{yyyy}{n:7}' RESET YEARLY OWNED BY t.k", "no integer")
	exec(t, c, "DROP SEQUENCE numbers", "CREATE SEQUENCE numbers FORMAT '9{yyyy}{n:2}' RESET YEARLY START WITH 7")
	wantError(t, c, 4084, "SELECT NEXTVAL('numbers')")
}
