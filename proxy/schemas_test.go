package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
)

func TestAStatementOnAnotherShardsSchemaIsNotPreparedHere(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for _, sql := range []string{
		"CREATE DATABASE %s", "CREATE SCHEMA IF NOT EXISTS `%s`", "DROP DATABASE IF EXISTS %s", "ALTER DATABASE %s CHARACTER SET latin1",
	} {
		sql := fmt.Sprintf(sql, e.Schemas[1])
		if err := serverError(t, w.do(protocol.ComStmtPrepare, sql)); err.Code != 1235 {
			t.Errorf("prepare %s: got %v, want 1235", sql, err)
		}
		if err := serverError(t, w.query("DO 1; "+sql)); err.Code != 1235 {
			t.Errorf("%s among several statements: got %v, want 1235", sql, err)
		}
	}
	for _, i := range []int{0, 1} {
		if got := value(t, e.DirectConn(t, i, "", nil), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '"+e.Schemas[1]+"'"); got != fmt.Sprint(i) {
			t.Errorf("the schema of shard 1 on shard %d: got %s, want %d", i, got, i)
		}
	}
	// A schema of this shard can be prepared.
	if got := w.do(protocol.ComStmtPrepare, "CREATE DATABASE IF NOT EXISTS "+e.Schemas[0]); got[4] != 0 {
		t.Errorf("of this shard: %v", serverError(t, got))
	}
}

func TestUSEAmongSeveralStatementsStaysOnItsShard(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for _, sql := range []string{
		"SELECT 1; USE %s", "SELECT 1;use\t`%s`", "SELECT 1;\n\nUSE\n%s;\n", "USE %s; SELECT 1", "SELECT 1; /* ; */ USE /* x */ %s -- y",
		"SELECT 1; /*! USE %s */", "SELECT 1; /*!50000 USE %s; */ SELECT 2", "SELECT ';'; USE %s", "SELECT 1; USE /* ; */ %s",
		"SELECT \"it's; \"; # ;'\nUSE %s; SELECT 1", "CREATE OR REPLACE PROCEDURE q() SELECT 1; USE %s", "BEGIN NOT ATOMIC SELECT 1; END; USE %s",
		"USE %s; DO 1; USE mysql", "no_statement; USE %s",
		"/* ; */ USE %s; DO 1; USE mysql", "DO 1; # ;\nUSE %s; USE mysql", "CREATE /* ; */ DATABASE IF NOT EXISTS %s; USE mysql",
	} {
		if err := serverError(t, w.query(fmt.Sprintf(sql, e.Schemas[1]))); err.Code != 1235 {
			t.Errorf("%q: got %v, want 1235", sql, err)
		}
	}
	for _, sql := range []string{"DO 1; SELECT '; USE %s; '", "DO 1; SELECT 1 -- ; USE %s;\n", "DO 1; DO 2 /* ; USE %s; */"} {
		if got := w.query(fmt.Sprintf(sql, e.Schemas[1])); got[4] == 0xff {
			t.Errorf("%q: %v", sql, serverError(t, got))
		}
	}
	if got := w.query("SELECT 1; USE\t" + e.SequenceSchema + "; SELECT 2"); got[4] == 0xff {
		t.Fatal(serverError(t, got))
	}
	if got := w.rows("SELECT DATABASE(), @@port"); got[0] != e.SequenceSchema || got[1] != e.port(0) {
		t.Errorf("after USE of the same shard: got %v, want %s, %s", got, e.SequenceSchema, e.port(0))
	}
	if err := serverError(t, w.query("DROP DATABASE "+e.Schemas[1])); err.Code != 1235 {
		// The session is pinned, so the other shard cannot be reached.
		t.Errorf("a schema of the other shard: got %v, want 1235", err)
	}
	if got := w.query("CREATE DATABASE IF NOT EXISTS " + e.Schemas[0]); got[4] != 0 {
		t.Errorf("a schema of this shard: %v", serverError(t, got))
	}
	// After a reset the session is on the shard that the server has it on, and may leave.
	if got := w.do(protocol.ComResetConn, ""); got[4] != 0 {
		t.Fatal(serverError(t, got))
	}
	want := w.rows("SELECT DATABASE()")[0]
	if got := w.query("USE " + e.Schemas[1]); got[4] != 0 {
		t.Fatal(serverError(t, got))
	}
	if got := w.rows("SELECT DATABASE(), @@port"); got[0] != e.Schemas[1] || got[1] != e.port(1) {
		t.Errorf("on the other shard: got %v, want %s, %s", got, e.Schemas[1], e.port(1))
	}
	w.query("DO 1; USE nowhere_at_all")
	if got := w.rows("SELECT DATABASE()"); got[0] != e.Schemas[1] {
		t.Errorf("after a USE that failed: got %v, want %s (before: %s)", got, e.Schemas[1], want)
	}
}

func TestOneStatementWithoutATransactionUsesUpSETTRANSACTION(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	createSequence(t, e, "s")
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (a BIGINT UNSIGNED) ENGINE=InnoDB")
	for _, c := range []struct {
		statements []string
		prepared   bool
		free       bool
	}{
		{[]string{"SELECT a FROM t"}, false, true},
		{[]string{"SELECT a FROM t"}, true, true},
		{[]string{"INSERT INTO t VALUES (1)"}, false, true},
		{[]string{"UPDATE t SET a = 2"}, true, true},
		{[]string{"INSERT INTO t VALUES (NEXTVAL('s'))"}, false, true},
		{[]string{"INSERT INTO t VALUES (NEXTVAL('s'))"}, true, true},
		{[]string{"ANALYZE TABLE t"}, false, true},
		{[]string{"BEGIN", "SELECT a FROM t", "COMMIT"}, false, true},
		{[]string{"BEGIN", "SELECT a FROM t", "CREATE TABLE IF NOT EXISTS t (a INT)"}, false, true},
		{[]string{"SET autocommit = 0", "SELECT a FROM t", "ROLLBACK"}, false, true},
		{[]string{"SELECT 1", "SET @x = 1", "SHOW TABLES"}, false, false},
		{[]string{"SELECT NEXTVAL('s')"}, false, false},
		{[]string{"INSERT INTO nothing VALUES (1)"}, false, false},
		{[]string{"SELECT COUNT(*) FROM information_schema.engines"}, false, false},
	} {
		t.Run(fmt.Sprint(c.statements, c.prepared), func(t *testing.T) {
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			if got := w.query("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"); got[4] != 0 {
				t.Fatal(serverError(t, got))
			}
			for _, sql := range c.statements {
				if !c.prepared {
					w.query(sql)
					continue
				}
				id := w.do(protocol.ComStmtPrepare, sql)[5:9]
				if got := w.do(protocol.ComStmtExecute, string(id)+"\x00\x01\x00\x00\x00"); got[4] == 0xff {
					t.Fatal(serverError(t, got))
				}
			}
			if got := w.query("USE " + e.Schemas[1]); c.free != (got[4] == 0) {
				t.Errorf("USE of the other shard: got %x, want it to succeed: %v", got[4], c.free)
			}
		})
	}
	// An execution that the proxy does not keep whole is a transaction, too.
	for sql, free := range map[string]bool{"INSERT INTO t SELECT LENGTH(?)": true, "SELECT LENGTH(?)": false, "INSERT INTO t SELECT LENGTH(?) UNION SELECT (SELECT 1 UNION SELECT 2)": false} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		w.query("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
		id := string(w.do(protocol.ComStmtPrepare, sql)[5:9])
		w.do(protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00"+
			binding("\x00", typeBlob, string(protocol.AppendLenEncBytes(nil, strings.Repeat("x", 100_000)))))
		if got := w.query("USE " + e.Schemas[1]); free != (got[4] == 0) {
			t.Errorf("USE of the other shard after a long execution of %s: got %x, want it to succeed: %v", sql, got[4], free)
		}
	}
	// The server agrees.
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("SET TRANSACTION READ ONLY")
	w.query("SELECT 1")
	if err := serverError(t, w.query("INSERT INTO t VALUES (1)")); err.Code != 1792 {
		t.Errorf("after a statement without tables: got %v, want 1792", err)
	}
	w.query("SELECT a FROM t")
	if got := w.query("INSERT INTO t VALUES (1)"); got[4] != 0 {
		t.Errorf("after one with a table: %v", serverError(t, got))
	}
}
