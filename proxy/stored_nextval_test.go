package proxy_test

import (
	"bytes"
	"testing"

	"seqproxy/test/mysqltest"
)

// NEXTVAL in a view, trigger, routine or event belongs to the server: a sequence of its own on
// MariaDB, a function that does not exist on MySQL. The proxy sees only the name of the view or
// table, and gives no number.
func TestNextvalInStoredCodeIsTheServersOwn(t *testing.T) {
	o := newOracle(t, setup{Servers: []*mysqltest.Server{mysqltest.StartUnsynced(t, "--event-scheduler=ON")}},
		"CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, n BIGINT)", "CREATE TABLE plain (n BIGINT)")
	mariadb := o.Servers[0].IsMariaDB()
	p := o.pairOfSchemas(t, endings["with EOF"])
	schemas := [2]string{p.Proxy.rows("SELECT DATABASE()")[0], p.Direct.rows("SELECT DATABASE()")[0]}
	first := o.nextNumber(t, "photos")
	if mariadb {
		for _, schema := range schemas { // direct, because through the proxy it would be one of the proxy's
			o.Servers[0].Exec(t, "USE "+schema, "CREATE SEQUENCE photos START WITH 7000 NOCACHE")
		}
	}
	for _, text := range []string{
		"CREATE VIEW v AS SELECT NEXTVAL(photos) AS n",
		"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.n = NEXTVAL(photos)",
		"CREATE FUNCTION f() RETURNS BIGINT RETURN NEXTVAL(photos)",
		"CREATE PROCEDURE p() BEGIN INSERT INTO plain VALUES (NEXTVAL(photos)); SELECT n FROM plain ORDER BY n DESC LIMIT 1; END",
		"SELECT * FROM v",
		"SELECT f()",
		"INSERT INTO t () VALUES ()",
		// A server's own sequence changes neither the insert id nor LAST_INSERT_ID().
		"SELECT LAST_INSERT_ID()",
		"CALL p()",
		"INSERT INTO plain SELECT f() FROM t",
		"SELECT * FROM t",
		"SELECT * FROM plain",
	} {
		want := p.Direct.query(text)
		compare(t, text, p.Proxy.query(text), bytes.ReplaceAll(want, []byte(schemas[1]), []byte(schemas[0])))
	}
	if mariadb {
		if got := p.Proxy.rows("SELECT n, id FROM t"); got[0] != "7002" || got[1] != "1" {
			t.Errorf("the trigger's number and the row's key: got %s, want the server's 7002, and 1", got)
		}
		p.Proxy.query("CREATE EVENT e ON SCHEDULE AT CURRENT_TIMESTAMP DO INSERT INTO plain VALUES (NEXTVAL(photos))")
		eventually(t, "the event's row", func() bool { return p.Proxy.rows("SELECT MAX(n) FROM plain")[0] == "7005" })
	} else if code := serverError(t, p.Proxy.query("CALL p()")).Code; code != 1305 {
		t.Errorf("CALL: got error %d, want 1305: no such function", code)
	}
	if got := o.nextNumber(t, "photos"); got != first {
		t.Errorf("the proxy gave %d numbers, want none", got-first)
	}
}
