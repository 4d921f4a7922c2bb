package proxy_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
)

// A login that the server checks may wait in a pause for longer than logins may take. It goes on at
// the node of after the pause.
func TestALoginByTheServerThatWaitedGoesOnAtTheNewNode(t *testing.T) {
	const limit = 5 * time.Second
	e := newEnv(t, setup{Shards: 2, Backend: func(o *backend.Options) { o.Shards = o.Shards[:1] }, Proxy: func(o *proxy.Options) {
		byServer(o)
		o.LoginTimeout = limit
	}})
	e.pause(t, "s0")
	type connected struct {
		c   *sql.Conn
		err error
	}
	done := make(chan connected, 1)
	pool := e.DB(t, "", nil)
	go func() {
		c, err := pool.Conn(context.Background())
		done <- connected{c, err}
	}()
	e.awaitPausedSessions(t, 1)
	begun := time.Now()
	e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards[0].Nodes = []string{e.Servers[1].Addr()} })
	time.Sleep(limit + limit/10 - time.Since(begun)) // the test is about this time
	e.resume(t, "s0")
	got := <-done
	if got.err != nil {
		t.Fatalf("the login: %v", got.err)
	}
	defer got.c.Close()
	if port := value(t, got.c, "SELECT @@port"); port != e.port(1) {
		t.Errorf("got port %s, want the new one, %s", port, e.port(1))
	}
	e.awaitPausedSessions(t, 0)
}

// The wait of a login ends when the client gives up and when the proxy stops. A change of user
// waits, too.
func TestLoginsWaitInAPause(t *testing.T) {
	e := newEnv(t, setup{})
	pool := e.DB(t, e.Schemas[0], nil)
	login := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			c, err := pool.Conn(ctx)
			if err == nil {
				err = c.Close()
			}
			done <- err
		}()
		e.awaitPausedSessions(t, 1)
		return done
	}
	w := e.Wire(t, e.Addr(), wireLogin{Packing: notPacked})
	e.pause(t, "s0")
	giving, cancel := context.WithCancel(context.Background())
	done := login(giving)
	cancel()
	if err := <-done; err == nil {
		t.Error("the login succeeded in the pause, want it to wait")
	}
	e.awaitPausedSessions(t, 0)

	resumed := make(chan bool, 1)
	go func() {
		for end := time.Now().Add(wireTimeout); e.Proxy.PausedSessions() == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
		paused := e.Proxy.PausedSessions() == 1
		e.Proxy.Resume("s0")
		resumed <- paused
	}()
	if got := w.change(e.User, e.Password, e.Schemas[0], ""); got[protocol.HeaderSize] != 0 {
		t.Errorf("a change of the user: got %q, want OK", got)
	}
	if !<-resumed {
		t.Error("the change of the user ended in the pause, want it to wait")
	}

	e.pause(t, "s0")
	done = login(context.Background())
	stopped := e.drain(wireTimeout)
	if err := <-done; err == nil {
		t.Error("a login succeeded while the proxy stops, want an error")
	} else {
		checkError(t, "a login at a stop", err, 1053)
	}
	if err := <-stopped; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// LOAD DATA LOCAL waits before its file is asked for. A pause waits for one that has begun.
func TestFilesAndPauses(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT)")
	const load = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t"
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked, Capabilities: allFraming | protocol.LocalFiles})
	e.pause(t, "s0")
	w.sendText(load)
	e.awaitPausedSessions(t, 1)
	e.resume(t, "s0")
	if got := w.receive(protocol.ShapeResult, file("1\n2\n")); got[protocol.HeaderSize] == 0xff {
		t.Fatalf("a file behind a pause: got %q, want no error", got)
	}
	w.sendText(load)
	asked, err := w.raw() // for the file
	if err != nil || asked[protocol.HeaderSize] != 0xfb {
		t.Fatalf("got %q, %v, want to be asked for the file", asked, err)
	}
	done := make(chan int, 1)
	go func() { done <- e.Proxy.Pause(context.Background(), "s0", 0).Busy }()
	e.awaitPaused(t)
	w.send(file("3\n"))
	w.answerOK("the file")
	if busy := <-done; busy > 0 {
		t.Errorf("%d sessions are busy after the file, want none", busy)
	}
	e.resume(t, "s0")
	if got := w.rows("SELECT GROUP_CONCAT(a ORDER BY a) FROM t")[0]; got != "1,2,3" {
		t.Errorf("got %s, want 1,2,3", got)
	}
}

// A statement that waits runs once, however often its shard is resumed and paused meanwhile.
func TestAWaitOutlastsAResumeWithAPauseBehind(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT)")
	var all []*wire
	for range 4 {
		all = append(all, e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked}))
	}
	e.pause(t, "s0")
	for _, w := range all {
		w.sendText("INSERT INTO t VALUES (1)")
	}
	e.awaitPausedSessions(t, len(all))
	for range 50 {
		e.resume(t, "s0")
		e.pause(t, "s0") // fails the test if one is busy
	}
	e.resume(t, "s0")
	for _, w := range all {
		w.answerOK("an INSERT")
	}
	e.awaitPausedSessions(t, 0)
	if got := all[0].rows("SELECT COUNT(*) FROM t")[0]; got != "4" {
		t.Errorf("got %s rows, want 4", got)
	}
}

// A reload may take away the user of a session that waits, or give its shard another node. It does
// not end the session, and COM_RESET_CONNECTION goes to the new node.
func TestAReloadWhileSessionsWait(t *testing.T) {
	e, move := moved(t)
	login := wireLogin{Schema: e.Schemas[0], Packing: notPacked}
	reset, text := e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login)
	reset.query("SET @x = 1")
	e.pause(t, "s0")
	reset.send(packet(command(protocol.ComResetConn, "")))
	e.awaitPausedSessions(t, 1)
	text.sendText("SELECT @@port")
	e.awaitPausedSessions(t, 2)
	e.Reload(t, func(_ *backend.Options, o *proxy.Options) { o.Users = nil })
	move()
	e.resume(t, "s0")
	reset.answerOK("COM_RESET_CONNECTION")
	text.answerOK("a statement")
	if got := reset.rows("SELECT CONCAT(@@port, ' ', @x IS NULL)")[0]; got != e.port(1)+" 1" {
		t.Errorf("got %s, want a reset session at port %s", got, e.port(1))
	}
	e.checkGone(e.Servers[0])
}

// A DBA binds a column in a pause, by OWNED BY or in the configuration. The INSERTs that wait get
// their keys from the sequence.
func TestAnInsertThatWaitsGetsAKeyOfASequenceThatIsMadeMeanwhile(t *testing.T) {
	t.Run("OWNED BY", func(t *testing.T) {
		testBindingInAPause(t, func(_ *env, admin *wire) {
			admin.query("CREATE SEQUENCE photos START WITH 1000 OWNED BY photos.id")
		})
	})
	t.Run("[[bind]]", func(t *testing.T) {
		testBindingInAPause(t, func(e *env, admin *wire) {
			admin.query("CREATE SEQUENCE photos START WITH 1000")
			e.Reload(t, func(_ *backend.Options, o *proxy.Options) {
				o.Bindings = []proxy.Binding{{Schema: e.Schemas[0], Table: "photos", Column: "id", Sequence: "photos"}}
			})
		})
	})
}

func testBindingInAPause(t *testing.T, bind func(e *env, admin *wire)) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".photos (id BIGINT AUTO_INCREMENT PRIMARY KEY, title TEXT)")
	login := wireLogin{Schema: e.Schemas[0], Packing: notPacked}
	admin, text, several := e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login)
	prepared, bound := e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login)
	const insert = "INSERT INTO photos (title) VALUES ('sea')"
	prepare := packet(command(protocol.ComStmtPrepare, insert))
	prepared.send(prepare)
	if _, err := prepared.receivePrepare(); err != nil {
		t.Fatal(err)
	}
	dynamic := e.Wire(t, e.Addr(), login)
	dynamic.query("PREPARE p FROM 'INSERT INTO photos (title) VALUES (1)'")
	admin.query(insert)
	e.pause(t, "s0")
	text.sendText(insert)
	several.sendText("SELECT 1 FROM photos WHERE id = 0; " + insert)
	prepared.send(packet(execution(1, nil, false)))
	bound.send(prepare)
	dynamic.sendText("EXECUTE p")
	e.awaitPausedSessions(t, 5)
	bind(e, admin)
	e.resume(t, "s0")
	text.answerOK("a text")
	several.receive(protocol.ShapeResult, nil)
	prepared.answerError("an execution", 1615, "connect again")
	dynamic.answerError("an EXECUTE", 1615, "prepare the statement again")
	if _, err := bound.receivePrepare(); err != nil {
		t.Fatal(err)
	}
	bound.send(packet(execution(1, nil, false)))
	bound.answerOK("one that was prepared in the pause")
	if got := admin.rows("SELECT GROUP_CONCAT(id ORDER BY id) FROM photos WHERE id BETWEEN 2 AND 999"); got[0] != "NULL" {
		t.Errorf("the server gave the keys %s", got)
	}
}

// A session that has no connection yet waits once in a pause, and a KILL QUERY ends its statement
// for good. Keys are given all the time.
func TestTheFirstStatementOfASessionInAPause(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a TEXT)")
	login := wireLogin{Packing: notPacked, Capabilities: withoutTracking}
	admin := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	admin.query("CREATE SEQUENCE photos")
	w, keys := e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login)
	e.pause(t, "s0")
	keys.sendText(`SELECT NEXTVAL("photos")`)
	keys.answerOK("a key")
	e.Wire(t, e.Addr(), login).query(`SHOW SEQUENCES LIKE "p%"`)
	w.sendText("INSERT INTO " + e.Schemas[0] + ".t VALUES ('\\\\')")
	e.awaitPausedSessions(t, 1)
	keys.query("KILL QUERY " + w.id())
	w.answerError("an INSERT", 1317, "")
	e.resume(t, "s0")
	if got := admin.rows("SELECT COUNT(*) FROM t"); got[0] != "0" {
		t.Errorf("got %s rows, want none", got[0])
	}
}
