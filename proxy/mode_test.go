package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// createSequence makes a sequence with nothing but a name.
func createSequence(t testing.TB, e *env, name string) {
	t.Helper()
	create(t, e, sequence.CreateOptions{Name: name})
}

// create makes a sequence. It tries again, because a test's proxy may have a short timeout on a
// busy machine.
func create(t testing.TB, e *env, o sequence.CreateOptions) {
	t.Helper()
	o.IfNotExists = true
	var err error
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); {
		if _, err = e.Sequences.Create(context.Background(), o); !errors.As(err, new(*sequence.UnavailableError)) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Checklist 28.
func TestACharacterSetChangedUnseenIsAskedForBeforeItMatters(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE PROCEDURE names() SET NAMES gbk")
	changes := []string{
		"SET NAMES gbk", "SELECT 1; SET NAMES gbk", "PREPARE s FROM 'SET NAMES gbk'; EXECUTE s", "SET character_set_client = (SELECT 'gbk')",
		"DROP PROCEDURE IF EXISTS q; CREATE PROCEDURE q() SELECT 1; SET NAMES gbk",
	}
	if e.Servers[0].IsMariaDB() {
		changes = append(changes, "EXECUTE IMMEDIATE 'SET NAMES gbk'", "CREATE OR REPLACE PROCEDURE q() SELECT 1; SET NAMES gbk",
			"BEGIN NOT ATOMIC SET NAMES gbk; END")
	}
	for _, change := range changes {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		w.query(change)
		// In GBK the backslash is the second byte of a character; elsewhere it would escape the
		// quote.
		if got := w.query("SELECT NEXTVAL('s') /* '\xbf\\' */ , LENGTH('\xbf\\')"); got[4] == 0xff {
			t.Errorf("after %s: %v", change, serverError(t, got))
		}
		// The proxy's query does not disturb a text that reads the results of the last one.
		w.query("CALL names()")
		w.query("DELETE FROM mysql.help_topic WHERE 0")
		if got := w.rows("SELECT 'x\xa1\xa1', ROW_COUNT()")[1]; got != "0" {
			t.Errorf("after %s: ROW_COUNT() is %s, want 0", change, got)
		}
	}
}

func TestANumberIsGivenInATextThatNamesErrorsAfterTheModeWasLost(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE PROCEDURE p() SELECT 1", "CREATE TABLE lg (id BIGINT UNSIGNED, m VARCHAR(100))")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	lose := func() { w.query("CALL p()") }
	want := 1
	for _, text := range []string{"Error: café", "warning é", "é row_count", "SHOW WARNINGS é", "é ROW_COUNT() é", "@@error_count é"} {
		lose()
		if got := w.query("INSERT INTO lg VALUES (NEXTVAL('s'), '" + text + "')"); got[4] != 0 {
			t.Errorf("%s: %v", text, serverError(t, got))
			continue
		}
		if got := w.rows("SELECT id, m FROM lg ORDER BY id DESC LIMIT 1"); got[0] != fmt.Sprint(want) || got[1] != text {
			t.Errorf("got %q, want %d and %s", got, want, text)
		}
		want++
	}
	// The statements behind a text that is passed on unread are found.
	for _, cmd := range []protocol.Command{protocol.ComStmtPrepare, protocol.ComQuery} {
		lose()
		w.send(packet(command(cmd, "SELECT 'é', ROW_COUNT()")))
		w.receive(cmd.AnswerShape(), nil)
		if got := w.query("SELECT NEXTVAL('s')"); got[4] == 0xff {
			t.Errorf("a number after command %d, passed on unread: %v", cmd, serverError(t, got))
		}
	}
	// A text cannot have both a number and what the statement before left.
	counts := []string{"ROW_COUNT()", "FOUND_ROWS()"}
	if !e.Servers[0].IsMariaDB() { // whose question keeps the warnings
		counts = append(counts, "@@warning_count")
	}
	for _, count := range counts {
		lose()
		if err := serverError(t, w.query("INSERT INTO lg VALUES (NEXTVAL('s') + "+count+", 'é')")); err.Code != 1235 {
			t.Errorf("a number and %s: got %v, want 1235", count, err)
		}
	}
	w.query("SET NAMES utf8mb4")
	if got := w.query("INSERT INTO lg VALUES (NEXTVAL('s') + ROW_COUNT(), 'é')"); got[4] != 0 {
		t.Errorf("the same after SET NAMES: %v", serverError(t, got))
	}
}

func TestTheModeIsAskedForWhateverTheRowLimit(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("DO 1; SET sql_select_limit = 0")
	if got := w.rows("SELECT 'é', @@sql_select_limit LIMIT 1"); got[1] != "0" {
		t.Errorf("sql_select_limit: got %s, want 0", got[1])
	}
	if got := w.query("CREATE TABLE t (a VARCHAR(9))"); got[4] != 0 {
		t.Fatal(serverError(t, got))
	}
	w.query("DO 1; DO 2")
	if got := w.query("INSERT INTO t VALUES (CONCAT(NEXTVAL('s'), 'é'))"); got[4] != 0 {
		t.Errorf("a number: %v", serverError(t, got))
	}
	if got := w.rows("SELECT a FROM t LIMIT 1")[0]; got != "1é" {
		t.Errorf("got %s, want 1é", got)
	}
}

// Checklist 28.
func TestWhatIsInBracketsIsAnIdentifierInMSSQLMode(t *testing.T) {
	mysqltest.Shared(t).OnMariaDB(t, "sql_mode MSSQL")
	for _, how := range []string{"SET sql_mode = 'MSSQL'", "SET sql_mode = CONCAT('MS', 'SQL')", "DO 1; SET sql_mode = 'mssql'", "SET sql_mode = 'MS' 'SQL'"} {
		t.Run(how, func(t *testing.T) {
			e := newEnv(t, setup{})
			createSequence(t, e, "s")
			p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
			p.query(how)
			p.query("SELECT 1 AS [NEXTVAL('s')]")
			p.query("SELECT 2 AS [it's LAST_INSERT_ID()], 3 AS \"it's NEXTVAL('s')\"")
			p.Proxy.query("SELECT NEXTVAL('s')")
			p.Proxy.query("SET sql_mode = ''")
			if got := p.Proxy.rows("SELECT NEXTVAL('s')")[0]; got != "2" {
				t.Errorf("the second number: got %s, want 2", got)
			}
		})
	}
	// A shard's own mode is that of the session while the session is there.
	e := newEnv(t, setup{Servers: []*mysqltest.Server{mysqltest.Shared(t), mysqltest.Start(t, "--sql-mode=MSSQL")}})
	createSequence(t, e, "s")
	p := e.Pair(t, 1, wireLogin{Schema: e.Schemas[1]})
	for i, want := range []string{"1", "2"} {
		p.query("SELECT 1 AS [NEXTVAL('s')]")
		p.Proxy.query("USE " + e.Schemas[0])
		if got := p.Proxy.rows("SELECT NEXTVAL('s') /* [ */")[0]; got != want {
			t.Errorf("round %d: got %s, want %s", i, got, want)
		}
		p.Proxy.query("USE " + e.Schemas[1])
	}
}

func TestAServerThatRefusesToTellTheModeEndsNoSession(t *testing.T) {
	limited := "limited"
	e := newEnv(t, setup{Servers: []*mysqltest.Server{mysqltest.Start(t)}, Proxy: func(o *proxy.Options) {
		o.Users = append(o.Users, proxy.User{Name: limited, Password: limited})
	}})
	createSequence(t, e, "s")
	e.Servers[0].Exec(t, "CREATE USER limited IDENTIFIED BY 'limited' WITH MAX_QUERIES_PER_HOUR 3")
	w := e.Wire(t, e.Addr(), wireLogin{User: &limited, Password: &limited})
	w.query("DO 1; DO 2")
	for i := 0; w.query("SELECT 1")[4] != 0xff; i++ {
		if i > 3 {
			t.Fatal("the server gives no error, so this shows nothing")
		}
	}
	if err := serverError(t, w.query("SELECT 'é'")); err.Code != 1226 { // with a ping behind it
		t.Errorf("a text: got %v, want the server's 1226", err)
	}
	if got := w.do(protocol.ComStmtPrepare, "SELECT 'é'"); got[4] != 0 {
		// The server does not count these.
		t.Errorf("a text to prepare: %v", serverError(t, got))
	}
	for _, cmd := range []protocol.Command{protocol.ComQuery, protocol.ComStmtPrepare} {
		if err := serverError(t, w.do(cmd, "INSERT INTO t VALUES (NEXTVAL('s'), 'é')")); err.Code != 1226 {
			t.Errorf("a number, command %d: got %v, want the server's 1226", cmd, err)
		}
	}
	// An error that the proxy cannot report to the server is not shown as another's.
	w.send(packet(command(protocol.ComQuery, "SELECT NEXTVAL('nobody')")))
	w.receive(protocol.ShapeResult, nil)
	w.send(packet(command(protocol.ComQuery, "SHOW WARNINGS")))
	if err := serverError(t, w.receive(protocol.ShapeResult, nil)); err.Code != 1235 || !strings.Contains(err.Message, "4091") {
		t.Errorf("SHOW WARNINGS: got %v, want 1235 naming 4091", err)
	}
	if got := w.rows("SELECT NEXTVAL('s')")[0]; got != "1" {
		t.Errorf("a number: got %s, want 1", got)
	}
}
