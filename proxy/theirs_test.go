package proxy_test

import (
	"testing"

	"seqproxy/proxy"
)

// theirScripts use MariaDB's own sequences in every way.
var theirScripts = []script{
	{"made as a dump makes them", []string{
		"DROP SEQUENCE IF EXISTS `s1`", "SHOW WARNINGS",
		"CREATE SEQUENCE `s1` start with 5 minvalue 1 maxvalue 9223372036854775806 increment by 1 cache 1000 nocycle ENGINE=InnoDB",
		"DO SETVAL(`s1`, 1005, 0)", "SELECT NEXTVAL(s1)", "SHOW CREATE SEQUENCE `s1`", "SELECT next_not_cached_value FROM `s1`", "SELECT * FROM s1",
		"CREATE SEQUENCE down start with -5 minvalue -9 maxvalue -1 increment by -2 nocache cycle", "DO SETVAL(down, -7, 0)", "SELECT NEXTVAL(down), NEXTVAL(down)",
		"CREATE SEQUENCE zero start with 0 minvalue 0 increment 0", "SELECT NEXTVAL(zero)", "DO SETVAL(zero, 3, 0), SETVAL(s1, 2000)",
		"CREATE SEQUENCE IF NOT EXISTS s1", "SHOW WARNINGS", "CREATE OR REPLACE SEQUENCE s1 ENGINE=Aria COMMENT 'x'", "SHOW CREATE TABLE s1", "CREATE SEQUENCE s1",
		"CREATE SEQUENCE s3 MINVALUE 5 MAXVALUE 4", "CREATE SEQUENCE s4 AS TINYINT", "CREATE SEQUENCE s5 START", "CREATE TEMPORARY SEQUENCE s6", "SELECT NEXTVAL(s6)",
	}},
	{"asked for numbers", []string{
		"CREATE SEQUENCE s", "CREATE TABLE d (id BIGINT NOT NULL DEFAULT NEXTVAL(s) PRIMARY KEY, n INT)",
		"SELECT NEXTVAL(s)", "SELECT NEXT VALUE FOR s, NEXTVAL(`s`) + 1 AS a", "SELECT LASTVAL(s), PREVIOUS VALUE FOR s", "SELECT LAST_INSERT_ID()",
		"INSERT INTO d (n) VALUES (1), (2)", "SELECT LAST_INSERT_ID()", "INSERT INTO d VALUES (NEXTVAL(s), 3)", "INSERT INTO d SELECT NEXTVAL(s), n FROM d", "INSERT INTO d (n) VALUES (9) RETURNING id, NEXTVAL(s)",
		"UPDATE d SET n = NEXTVAL(s) ORDER BY id", "SELECT * FROM d ORDER BY id", "SELECT n, NEXTVAL(s) FROM d WHERE NEXTVAL(s) > 0 ORDER BY id", "DELETE FROM d WHERE id < NEXTVAL(s)",
		"SET @x = NEXTVAL(s)", "SELECT @x", "DO NEXTVAL(s)", "SELECT NEXTVAL(nobody)", "SELECT NEXTVAL(d)", "EXPLAIN SELECT NEXTVAL(s)",
		"SELECT SETVAL(s, 100), SETVAL(s, 50)", "SELECT SETVAL(s, 200, 0)", "SELECT SETVAL(s, 300, TRUE, 1)", "SELECT SETVAL(s, -5)", "SET @y = SETVAL(s, 400)", "SELECT @y, NEXTVAL(s)",
		"SELECT NEXTVAL(s), «NEXTVAL('photos')» AS ours", "SELECT LASTVAL(s), LAST_INSERT_ID()",
		"PREPARE p FROM 'SELECT NEXTVAL(s)'", "EXECUTE p", "EXECUTE p", "EXECUTE IMMEDIATE 'DO SETVAL(s, 500, 0)'", "SELECT NEXTVAL(s)",
		"CREATE SEQUENCE a1 START WITH 3; DO SETVAL(a1, 7); SELECT NEXTVAL(a1); DROP SEQUENCE a1",
		"SET sql_mode = 'ORACLE'", "SELECT s.NEXTVAL", "SELECT s.CURRVAL",
	}},
	{"changed and dropped", []string{
		"CREATE SEQUENCE s", "ALTER SEQUENCE s RESTART WITH 40 INCREMENT BY 5", "SELECT NEXTVAL(s)", "ALTER SEQUENCE IF EXISTS nobody CACHE 5", "ALTER SEQUENCE nobody CACHE 5",
		"LOCK TABLES s WRITE", "SELECT NEXTVAL(s)", "UNLOCK TABLES", "RENAME TABLE s TO s2", "SHOW CREATE SEQUENCE s2", "SHOW CREATE SEQUENCE s", "ALTER TABLE s2 COMMENT 'c'",
		"SHOW FULL TABLES", "SHOW TABLES", "CHECK TABLE s2",
		"CREATE SEQUENCE s3", "DROP SEQUENCE s2, s3", "DROP SEQUENCE s2", "DROP SEQUENCE IF EXISTS s2", "SHOW WARNINGS", "CREATE SEQUENCE s4", "DROP TABLE s4", "CREATE TABLE t (id INT)", "DROP SEQUENCE t", "SHOW CREATE SEQUENCE t",
	}},
}

// With unknown_sequence = "relay" a name that is not the proxy's is the server's in all statements.
func TestMariaDBsOwnSequencesWorkEntirelyWhereTheyAreRelayed(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(o *proxy.Options) { o.Unknown = proxy.UnknownRelay }})
	o.Servers[0].OnMariaDB(t, "MySQL has no sequences")
	o.run(t, theirScripts)
	for _, how := range []string{"text", "prepared"} {
		o.fresh(t)
		c, direct := o.Conn(t, o.Schemas[0], nil), o.DirectConn(t, 0, o.Schemas[0], nil)
		for _, sql := range []string{"CREATE SEQUENCE s START WITH 0 MINVALUE 0", "DO SETVAL(s, 7, 0)", "ALTER SEQUENCE s CACHE 3"} {
			if err := run(t.Context(), c, how, sql); err != nil {
				t.Errorf("%s: %s: %v", how, sql, err)
			}
		}
		if got := value(t, direct, "SELECT CONCAT_WS(' ', next_not_cached_value, minimum_value, cache_size) FROM s"); got != "7 0 3" {
			t.Errorf("%s: got %s, want 7 0 3", how, got)
		}
		if err := run(t.Context(), c, how, "DROP SEQUENCE s"); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
	// The proxy's sequences are created under the name of their schema.
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE "+o.SequenceSchema+".mine START WITH 12", "ALTER SEQUENCE mine CACHE 5")
	if got := value(t, c, "SELECT NEXTVAL(mine)"); got != "12" {
		t.Errorf("a sequence of the proxy: got %s, want 12", got)
	}
	exec(t, c, "CREATE OR REPLACE SEQUENCE mine", "DROP SEQUENCE mine")
	wantError(t, c, 4091, "DROP SEQUENCE "+o.SequenceSchema+".mine")
}

// A server's own sequences are always listed, so that dumps of it are whole.
func TestTheServersOwnSequencesAreShownAsItShowsThem(t *testing.T) {
	for _, unknown := range []proxy.UnknownSequence{proxy.UnknownError, proxy.UnknownCreate} {
		o := newOracle(t, setup{Proxy: func(o *proxy.Options) { o.Unknown = unknown }}, "CREATE SEQUENCE s1 START WITH 5", "CREATE TABLE t (id INT)")
		o.Servers[0].OnMariaDB(t, "MySQL has no sequences")
		o.run(t, []script{{"a dump's questions", []string{
			"SHOW FULL TABLES", "LOCK TABLES `s1` READ /*!32311 LOCAL */,`t` READ /*!32311 LOCAL */",
			"SHOW CREATE SEQUENCE `s1`", "SELECT next_not_cached_value FROM `s1`", "SHOW CREATE TABLE s1", "SELECT /*!40001 SQL_NO_CACHE */ * FROM `s1`", "UNLOCK TABLES",
			"SHOW CREATE SEQUENCE nobody", "SHOW CREATE SEQUENCE t", "SELECT next_not_cached_value FROM nobody",
		}}})
	}
}
