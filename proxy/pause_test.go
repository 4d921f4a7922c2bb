package proxy_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

// pause pauses a shard, and fails the test if a session is busy there.
func (e *env) pause(t testing.TB, shard string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wireTimeout)
	defer cancel()
	if p := e.Proxy.Pause(ctx, shard, 0); len(p.Shards) == 0 || p.Busy > 0 {
		t.Fatalf("pause %q: got %d shards and %d busy sessions, want none busy", shard, len(p.Shards), p.Busy)
	}
}

func (e *env) resume(t testing.TB, shard string) {
	t.Helper()
	if resumed, ok := e.Proxy.Resume(shard); !ok || len(resumed) == 0 {
		t.Errorf("resume %q: got %d shards, known %v", shard, len(resumed), ok)
	}
}

// awaitPausedSessions waits until n sessions wait for a paused shard.
func (e *env) awaitPausedSessions(t testing.TB, n int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); e.Proxy.PausedSessions() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("sessions that wait for a paused shard: got %d, want %d", e.Proxy.PausedSessions(), n)
		}
	}
}

// sendText sends a text without waiting for the answer.
func (w *wire) sendText(sql string) { w.send(packet(command(protocol.ComQuery, sql))) }

// answerOK receives an answer that is no error.
func (w *wire) answerOK(what string) {
	w.t.Helper()
	if got := w.receive(protocol.ShapeResult, nil); got[protocol.HeaderSize] == 0xff {
		w.t.Errorf("%s: got %q, want no error", what, got)
	}
}

// answerError receives an error with a code and some text.
func (w *wire) answerError(what string, code uint16, text string) {
	w.t.Helper()
	got := w.receive(protocol.ShapeResult, nil)
	if got[protocol.HeaderSize] != 0xff || uint16(got[5])|uint16(got[6])<<8 != code || !strings.Contains(string(got), text) {
		w.t.Errorf("%s: got %q, want error %d with %q", what, got, code, text)
	}
}

func TestStatementsForAPausedShardWait(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT)")
	login := wireLogin{Schema: e.Schemas[0], Packing: notPacked}
	w, idle, keys := e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login)
	w.query("SELECT 1")
	keys.query("CREATE SEQUENCE photos")
	e.pause(t, "s0")
	e.pause(t, "") // a second pause changes nothing

	for name, begin := range map[string]func(w *wire){
		"a text":               func(w *wire) { w.sendText("INSERT INTO t VALUES (1)") },
		"one with a number":    func(w *wire) { w.sendText("INSERT INTO t VALUES (NEXTVAL('photos'))") },
		"BEGIN":                func(w *wire) { w.sendText("BEGIN") },
		"another schema":       func(w *wire) { w.send(packet(command(protocol.ComInitDB, e.Schemas[0]))) },
		"USE":                  func(w *wire) { w.sendText("USE " + e.Schemas[0]) },
		"COM_RESET":            func(w *wire) { w.send(packet(command(protocol.ComResetConn, ""))) },
		"several statements":   func(w *wire) { w.sendText("SELECT 1; SELECT 2") },
		"one that may prepare": func(w *wire) { w.sendText("PREPARE p FROM 'SELECT 1'") },
	} {
		begin(w)
		e.awaitPausedSessions(t, 1)
		keys.sendText("SELECT NEXTVAL('photos')")
		keys.answerOK("a number while the shard is paused")
		if !eventually(t, "the end of the statements before", func() bool { return e.active(t, 0) == "0" }) {
			t.Errorf("%s still runs on the server", name)
		}
		e.resume(t, "s0")
		w.answerOK(name)
		e.awaitPausedSessions(t, 0)
		if name == "BEGIN" {
			w.query("COMMIT")
		}
		e.pause(t, "s0")
	}
	idle.ping("a pause") // a pool would throw the connection away
	e.resume(t, "")
	idle.ping("a pause that is over")
}

// active returns how many statements of the env's user run at a server.
func (e *env) active(t testing.TB, i int) string {
	t.Helper()
	db := e.Servers[i].DB(t, "")
	defer db.Close()
	var n string
	if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE user = ? AND command NOT IN ('Sleep', 'Connect')", e.User).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPreparedAndPipelinedStatementsForAPausedShardWait(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	w.send(packet(command(protocol.ComStmtPrepare, "INSERT INTO t VALUES (1)")))
	if _, err := w.receivePrepare(); err != nil {
		t.Fatal(err)
	}
	e.pause(t, "s0")
	w.send(packet(execution(1, nil, false)))
	e.awaitPausedSessions(t, 1)
	e.resume(t, "s0")
	w.answerOK("an execution")

	// Commands that came in one write with a running statement wait once that has ended.
	var all []byte
	for _, sql := range []string{"SELECT GET_LOCK('held', 60)", "INSERT INTO t VALUES (2)"} {
		all = append(all, packet(command(protocol.ComQuery, sql))...)
	}
	holder := e.Wire(t, e.Servers[0].Addr(), wireLogin{})
	holder.query("DO GET_LOCK('held', 60)")
	w.send(all)
	e.awaitStatement(e.Servers[0], "SELECT GET_LOCK('held', 60)")
	done := make(chan int, 1)
	go func() {
		done <- e.Proxy.Pause(context.Background(), "s0", 0).Busy
	}()
	e.awaitPaused(t)
	holder.query("DO RELEASE_LOCK('held')")
	w.answerOK("the statement that ran")
	if busy := <-done; busy > 0 {
		t.Errorf("%d sessions are busy, want none", busy)
	}
	e.awaitPausedSessions(t, 1)
	e.resume(t, "s0")
	w.answerOK("what came with it")
}

// awaitPaused waits until the first shard is paused.
func (e *env) awaitPaused(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); e.Shards.Routes().Default.Paused() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the shard is not paused")
		}
	}
}

func TestAPauseWaitsForTransactions(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	w.query("BEGIN")
	w.query("INSERT INTO t VALUES (1)")
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if got := e.Proxy.Pause(short, "s0", 0).Busy; got != 1 {
		t.Errorf("with a transaction open: got %d busy sessions, want 1", got)
	}
	w.query("INSERT INTO t VALUES (2)")
	done := make(chan int, 1)
	go func() {
		done <- e.Proxy.Pause(context.Background(), "s0", 0).Busy
	}()
	w.sendText("COMMIT")
	w.answerOK("COMMIT")
	if busy := <-done; busy > 0 {
		t.Errorf("after COMMIT: got %d busy sessions, want none", busy)
	}
	w.sendText("SELECT COUNT(*) FROM t")
	e.awaitPausedSessions(t, 1)
	e.resume(t, "s0")
	w.answerOK("behind the transaction")
}

func TestAPauseIsBoundedAndSaysSinceWhen(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.PauseTimeout = 100 * time.Millisecond }})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	e.pause(t, "s0")
	for range 2 {
		w.sendText("SELECT 1")
		w.answerError("a statement", 1429, "seqproxy: shard s0 is paused since "+e.Shards.Routes().Default.Paused().Since().Format("2006-01-02 15:04:05"))
	}
	_, err := e.tryWire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	if err == nil || !strings.Contains(err.Error(), "is paused since") {
		t.Errorf("a login with a schema of the shard: got %v, want an error that says that it is paused", err)
	}
	e.resume(t, "s0")
	w.ping("a pause")
}

func TestAWaitForAPausedShardEnds(t *testing.T) {
	e := newEnv(t, setup{})
	login := wireLogin{Schema: e.Schemas[0], Packing: notPacked}
	killer := e.Wire(t, e.Addr(), wireLogin{Packing: notPacked})
	killed, queryKilled, gone, drained := e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login)
	e.pause(t, "s0")
	for i, w := range []*wire{killed, queryKilled, gone, drained} {
		w.sendText("SELECT 1")
		e.awaitPausedSessions(t, i+1)
	}
	killer.sendText("KILL QUERY " + queryKilled.id())
	killer.answerOK("KILL QUERY")
	queryKilled.answerError("after KILL QUERY", 1317, "interrupted")
	e.awaitPausedSessions(t, 3)
	killer.sendText("KILL " + killed.id())
	killer.answerOK("KILL")
	killed.ended()
	e.awaitPausedSessions(t, 2)
	gone.Close()
	e.awaitPausedSessions(t, 1)
	done := e.drain(wireTimeout)
	drained.answerError("at a shutdown", 1053, "Server shutdown in progress")
	drained.ended()
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestAnotherShardGoesOnWhileOneIsPaused(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1], Packing: notPacked})
	away := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	away.query("SET @x = 7")
	e.pause(t, "s0")
	w.query("SELECT 1")
	w.sendText("USE " + e.Schemas[0])
	e.awaitPausedSessions(t, 1)
	away.sendText("USE " + e.Schemas[1]) // the proxy reads the session's settings on the shard that the session leaves
	e.awaitPausedSessions(t, 2)
	e.resume(t, "s0")
	w.answerOK("USE")
	away.answerOK("USE")
	if got := w.rows("SELECT DATABASE()")[0]; got != e.Schemas[0] {
		t.Errorf("the schema: got %s, want %s", got, e.Schemas[0])
	}
	if got := away.rows("SELECT @x")[0]; got != "7" {
		t.Errorf("the variable: got %s, want 7", got)
	}
	e.pause(t, "")
	w.sendText("SELECT 1")
	e.awaitPausedSessions(t, 1)
	away.sendText("SELECT 1")
	e.awaitPausedSessions(t, 2)
	e.resume(t, "")
	w.answerOK("behind a pause of all")
	away.answerOK("behind a pause of all")
	if p := e.Proxy.Pause(context.Background(), "s7", 0); len(p.Shards)+len(p.Resumed) > 0 {
		t.Errorf("a shard that is not there: got %d paused, %d resumed", len(p.Shards), len(p.Resumed))
	}
}

// TestNothingRunsOnceAPauseIsThere pauses again and again while clients are busy.
func TestNothingRunsOnceAPauseIsThere(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT) ENGINE=InnoDB")
	var stop atomic.Bool
	var clients sync.WaitGroup
	for i := range 8 {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
		texts := []string{"INSERT INTO t VALUES (1)"}
		if i%2 == 1 {
			texts = []string{"BEGIN", "INSERT INTO t VALUES (2)", "COMMIT"}
		}
		clients.Go(func() {
			for !stop.Load() {
				var all []byte
				for _, sql := range texts {
					all = append(all, packet(command(protocol.ComQuery, sql))...)
					if i%4 > 1 {
						w.send(all)
						w.answerOK(sql)
						all = nil
					}
				}
				if len(all) == 0 {
					continue
				}
				w.send(all)
				for _, sql := range texts {
					w.answerOK(sql)
				}
			}
		})
	}
	db := e.Servers[0].DB(t, "")
	count := func() (n int) {
		if err := db.QueryRow("SELECT COUNT(*) FROM " + e.Schemas[0] + ".t").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	before := 0
	for round := range 30 {
		e.pause(t, "s0")
		n := count()
		var open int
		if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_rows_modified > 0").Scan(&open); err != nil || open > 0 {
			t.Errorf("round %d: %d transactions are open in the pause, %v", round, open, err)
		}
		// A server lists a statement for a moment after its answer.
		if !eventually(t, "the end of the statements", func() bool { return e.active(t, 0) == "0" }) {
			t.Errorf("round %d: statements run in the pause", round)
		}
		if after := count(); after != n {
			t.Errorf("round %d: got %d rows, and %d later in the pause", round, n, after)
		}
		e.resume(t, "s0")
		for end := time.Now().Add(30 * time.Second); count() == n && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if round > 0 && n <= before {
			t.Errorf("round %d: got %d rows after %d, want more", round, n, before)
			break
		}
		before = n
	}
	stop.Store(true)
	clients.Wait()
}

func TestCommandsTooLongToHoldWaitForAPausedShard(t *testing.T) {
	const limit = 64 << 10
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.MaxStatement = limit }})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a LONGBLOB)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	w.send(packet(command(protocol.ComStmtPrepare, "INSERT INTO t VALUES (?)")))
	if _, err := w.receivePrepare(); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 2*limit)
	for what, sent := range map[string][]byte{
		"a text":       packet(command(protocol.ComQuery, "INSERT INTO t VALUES ('"+long+"')")),
		"an execution": packet(execution(1, []argument{textArg(mysql.MYSQL_TYPE_BLOB, long)}, true)),
	} {
		w.query("SELECT 1") // so that the session has used the shard
		e.pause(t, "s0")
		w.send(sent)
		e.awaitPausedSessions(t, 1)
		e.resume(t, "s0")
		w.answerOK(what)
	}
}
