package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

// pinsOf returns the reasons of the session's pin, after its last answer.
func (e *env) pinsOf(w *wire) string {
	e.t.Helper()
	var list []string
	w.ping("statements")
	for _, p := range e.session(w).Pins {
		list = append(list, p.String())
	}
	return strings.Join(list, ", ")
}

// fails runs a text and says whether its last statement failed.
func (w *wire) fails(sql string) bool {
	w.t.Helper()
	packets := split(w.query(sql))
	return packets[len(packets)-1][0] == 0xff
}

// A refused statement leaves no pin: the session may move to another shard, as a direct session may
// change its schema.
func TestAStatementThatFailedHoldsNothing(t *testing.T) {
	e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) { o.MaxStatement = 50_000 }})
	createSequence(t, e, "s")
	mariaDB := e.Servers[0].IsMariaDB()
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE TABLE t (a INT)")
	for _, sql := range []string{
		"SELEC 1", "SELECT 'it's'", "SELECT \"unbalanced", "FOO BAR; SELECT 1", "SELEC 1; SELECT 2", "SELECT 1 FORM t; SELECT 2", "SELECT nothing; SELECT 1",
		"INSERT INTO nosuch VALUES (1); SELECT LAST_INSERT_ID()", "/* comment */ SELEC 1", "(SELEC 1)", "SELECT 1 FROM /* open",
		"CREATE TEMPORARY TABLE t (", "CREATE TEMPORARY TABLE mine (a INT, a INT)", "CREATE TEMPORARY TABLE mine SELECT * FROM nosuch", "DROP TEMPORARY TABLE nosuch",
		"SELECT GET_LOCK('l')", "SELECT GET_LOCK(l, 1)", "DO GET_LOCK('l', nothing)", "SELECT GET_LOCK('l', 1) FORM t", "SELECT RELEASE_LOCK()",
		"LOCK TABLES nosuch READ", "LOCK TABLES t REED", "FLUSH TABLES nosuch WITH READ LOCK", "FLUSH TABLES WITH REED LOCK", "UNLOCK TABELS",
		"HANDLER nosuch OPEN", "HANDLER t OPN", "PREPARE s FROM 'SELEC 1'", "PREPARE s FORM 'SELECT 1'", "PREPARE s FROM @nosuch", "EXECUTE nosuch", "DEALLOCATE PREPARE nosuch",
		"SET @x = nothing", "SET @x = 'a' 'b' c", "SELECT @x := nothing", "SET @x = RAND(), sql_mode = 'nonsense'", "SELECT 1 INTO @x FORM t", "SET @x = ", "SELECT nothing INTO @x",
		"SET ROLE nosuch", "SET ROLE", "SET insert_id = 'x'", "SET timestamp = 'x'", "SET pseudo_thread_id = 'x'", "SET nosuch = 1", "SET @x = 'it's",
		"CALL nosuch()", "call `No such`(1, 'x') ;", "CALL " + e.Schemas[0] + ".nosuch()", "CALL p(", "CREATE PROCEDURE p() BEGIN SELEC; END", "CREATE VIEW v AS SELECT nothing",
		"XA START", "XA END 'nosuch'", "XA COMMIT 'nosuch'", "SET TRANSACTION ISOLATION LEVEL SERIAL", "BEGIN WROK", "IF 1 THEN", "CALL p(1", "CALL 'p'()", "GET DIAGNOSTICS @x = NMBER", "ALTER TABLE t ADD",
		"EXECUTE IMMEDIATE 'SELEC 1'", "EXECUTE IMMEDIATE 'SELECT GET_LOCK(l, 1)'",
	} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		if !w.fails(sql) {
			t.Errorf("%s: got no error, want one", sql)
			continue
		}
		if strings.HasPrefix(sql, "EXECUTE IMMEDIATE 'SELECT") && !mariaDB {
			continue // the server has a parse error there
		}
		if pins := e.pinsOf(w); pins != "" {
			t.Errorf("%s: the session is pinned by %s, want no pin", sql, pins)
		}
		if got := w.query("USE " + e.Schemas[1]); got[4] != 0 {
			t.Errorf("%s: USE of another shard: %v", sql, serverError(t, got))
		}
		w.Close()
	}

	// Nor does a lock remain where the server has released it.
	for _, sql := range []string{"LOCK TABLES nosuch READ", "LOCK TABLES t READ, nosuch.t READ", "START TRANSACTION"} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		for _, sql := range []string{"LOCK TABLES t READ", sql, "COMMIT"} {
			w.fails(sql)
		}
		if pins := e.pinsOf(w); pins != "" {
			t.Errorf("%s after LOCK TABLES: the session is pinned by %s, want no pin", sql, pins)
		}
		w.Close()
	}

	// The proxy judges a statement that is too long to be read by its beginning.
	for begin, want := range map[string]string{"SELEC '": "", "CALL p('": "opaque"} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		if sql := begin + strings.Repeat("x", 100_000) + "'))"; !w.fails(sql) {
			t.Errorf("%s...: got no error, want one", begin)
		}
		if pins := e.pinsOf(w); pins != want {
			t.Errorf("%s...: the session is pinned by %q, want %q", begin, pins, want)
		}
		w.Close()
	}

	// Nor does it remove a pin of an earlier statement, or what the proxy knows of the session.
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for _, sql := range []string{"PREPARE keyed FROM 'SELECT 1'", "SET TRANSACTION READ ONLY"} {
		if got := w.query(sql); got[4] != 0 {
			t.Fatalf("%s: %v", sql, serverError(t, got))
		}
	}
	for _, sql := range []string{"SELEC 1", "PREPARE k FORM 'SELECT 1'", "EXECUTE IMMEDIATE 'SELEC 1'", "COMMIT WROK", "CALL nosuch()"} {
		w.fails(sql)
	}
	if pins := e.pinsOf(w); pins != "set_transaction, sql_prepare" {
		t.Errorf("after mistakes: pinned by %s, want set_transaction, sql_prepare", pins)
	}
	w.query("START TRANSACTION")
	w.query("COMMIT")
	if got := w.rows("EXECUTE keyed"); got[0] != "1" {
		t.Errorf("EXECUTE after mistakes: got %v", got)
	}
}

// In doubt, a failed statement has the effects of one that succeeded.
func TestAStatementThatFailedMayHaveDoneSomething(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	mariaDB := e.Servers[0].IsMariaDB()
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)",
		"CREATE PROCEDURE fails() BEGIN SET @x = 1; SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = 1064, MESSAGE_TEXT = 'You have an error in your SQL syntax'; END",
		"CREATE PROCEDURE calls() BEGIN SET @x = 1; CALL nosuch(); END", "CREATE PROCEDURE types() BEGIN SET @x = 1; PREPARE p FROM 'SELEC 1'; END",
		"CREATE FUNCTION broken() RETURNS INT READS SQL DATA RETURN (SELECT gone FROM u)", "ALTER TABLE u ADD gone INT", "ALTER TABLE u DROP gone",
		// A routine raises errors with the parser's numbers.
		"CREATE FUNCTION signals(code INT) RETURNS INT DETERMINISTIC BEGIN"+
			" CASE code WHEN 1064 THEN SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = 1064, MESSAGE_TEXT = 'no such album';"+
			" WHEN 1065 THEN SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = 1065, MESSAGE_TEXT = 'nothing to ask for';"+
			" WHEN 1149 THEN SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = 1149, MESSAGE_TEXT = 'bad name';"+
			" WHEN 1582 THEN SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = 1582, MESSAGE_TEXT = 'too few photos';"+
			" ELSE RETURN 1; END CASE; END",
		"CREATE VIEW seen AS SELECT signals(1064) AS a", "CREATE TABLE triggers (a INT)", "CREATE TRIGGER raises BEFORE INSERT ON triggers FOR EACH ROW SET NEW.a = signals(1064)")
	for _, c := range []struct {
		texts   []string // the last one fails
		pins    string
		mariaDB bool
	}{
		{texts: []string{"CALL fails()"}, pins: "opaque"},
		{texts: []string{"CALL calls()"}, pins: "opaque"},
		{texts: []string{"CALL types()"}, pins: "opaque"},
		{texts: []string{"SELECT 1; SELEC 2"}, pins: "opaque"},
		{texts: []string{"DO 0; SELEC 2"}, pins: "opaque"},
		{texts: []string{"SELECT GET_LOCK('mine', 5); SELECT nothing"}, pins: "user_lock, opaque"},
		{texts: []string{"CALL fails(); SELECT 1"}, pins: "opaque"},
		{texts: []string{"SELECT GET_LOCK('mine', 5), broken()"}, pins: "user_lock"},
		{texts: []string{"SELECT GET_LOCK('mine', 5), (SELECT 1 UNION SELECT 2)"}, pins: "user_lock"},
		{texts: []string{"SELECT GET_LOCK('mine', 5), signals(1064)"}, pins: "user_lock"},
		{texts: []string{"SELECT GET_LOCK('mine', 5), signals(1065)"}, pins: "user_lock"},
		{texts: []string{"SELECT GET_LOCK('mine', 5) + signals(1149)"}, pins: "user_lock"},
		{texts: []string{"SELECT GET_LOCK('mine', 5), " + e.Schemas[0] + ".signals (1582)"}, pins: "user_lock"},
		{texts: []string{"SELECT GET_LOCK('mine', 5), `signals`(1064); SELECT 1"}, pins: "user_lock, opaque"},
		{texts: []string{"SELECT GET_LOCK('mine', 5), a FROM seen"}, pins: "user_lock"},
		{texts: []string{"SELECT @x := 1, signals(1064)"}, pins: "user_variable"},
		{texts: []string{"INSERT INTO triggers VALUES (GET_LOCK('mine', 5))"}, pins: "user_lock"},
		{texts: []string{"CREATE TEMPORARY TABLE mine AS SELECT GET_LOCK('mine', 5), signals(1064)"}, pins: "user_lock"},
		{texts: []string{"SET @x = GET_LOCK('mine', 5) + signals(1064)"}, pins: "user_lock, user_variable"},
		{texts: []string{"SELECT @x := 1, broken()"}, pins: "user_variable"},
		{texts: []string{"BEGIN NOT ATOMIC SET @x = 1; EXECUTE IMMEDIATE 'SELEC'; END"}, pins: "opaque", mariaDB: true},
		{texts: []string{"IF 1 THEN SET @x = 1; CALL fails(); END IF"}, pins: "opaque", mariaDB: true},
		{texts: []string{"l: BEGIN NOT ATOMIC SET @x = 1; CALL fails(); END"}, pins: "opaque", mariaDB: true},
		{texts: []string{"EXECUTE IMMEDIATE 'CALL fails()'"}, pins: "sql_prepare, opaque", mariaDB: true},
		{texts: []string{"PREPARE c FROM 'CALL fails()'", "EXECUTE c"}, pins: "sql_prepare, opaque"},
		{texts: []string{"LOCK TABLES t READ", "LOCK TABLES t REED"}, pins: "table_lock"},
		{texts: []string{"LOCK TABLES t READ", "UNLOCK TABELS"}, pins: "table_lock"},
		{texts: []string{"HANDLER t OPEN", "HANDLER nosuch OPEN"}, pins: "handler"},
		{texts: []string{"CREATE TEMPORARY TABLE mine (a INT)", "CREATE TEMPORARY TABLE mine (a INT)"}, pins: "temporary_table"},
		{texts: []string{"PREPARE p FROM 'SELECT 1'", "PREPARE q FROM 'SELEC 1'"}, pins: "sql_prepare"},
	} {
		if c.mariaDB && !mariaDB {
			continue
		}
		t.Run(fmt.Sprint(c.texts), func(t *testing.T) {
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			defer w.send(packet(command(protocol.ComQuit, "")))
			for i, sql := range c.texts {
				if failed := w.fails(sql); failed != (i == len(c.texts)-1) {
					t.Errorf("%s: failed: got %v, want it of the last text only", sql, failed)
				}
			}
			if pins := e.pinsOf(w); pins != c.pins {
				t.Errorf("the session is pinned by %q, want %q", pins, c.pins)
			}
			if err := serverError(t, w.query("USE "+e.Schemas[1])); err.Code != 1235 {
				t.Errorf("USE: got %v, want 1235", err)
			}
		})
	}
}
