package proxy_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// erShardLost is the error for clients whose server is gone.
const erShardLost = 1429

func twoServers(t *testing.T) []*mysqltest.Server {
	return []*mysqltest.Server{mysqltest.Shared(t), mysqltest.Start(t)}
}

func TestAShardThatIsDownIsNamedAndKeysAreGivenAllTheSame(t *testing.T) {
	servers := twoServers(t)
	e := newEnv(t, setup{Servers: servers})
	createSequence(t, e, "s")
	down := servers[1]
	if err := down.Kill(); err != nil {
		t.Fatal(err)
	}
	words := []string{"shard s1", down.Addr()}

	// The proxy accepts a login into the dead shard's schema, and gives keys.
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})
	for want := range 3 {
		if got := w.rows("SELECT NEXTVAL('s')")[0]; got != strconv.Itoa(want+1) {
			t.Errorf("got %s, want %d", got, want+1)
		}
	}
	for _, answer := range [][]byte{
		w.query("SELECT 1"), w.query("SELECT DATABASE()"), w.query("USE " + e.Schemas[1]), w.query("BEGIN"),
		w.do(protocol.ComStmtPrepare, "SELECT 1"), w.do(protocol.ComInitDB, e.Schemas[1]), w.do(protocol.ComStatistics, ""),
		w.query("SELECT 1; SELECT 2"), w.query("CREATE TABLE t (a INT)"),
	} {
		err := serverError(t, answer)
		for _, word := range words {
			if err.Code != erShardLost || !strings.Contains(err.Message, word) {
				t.Errorf("got %v, want %d with %q", err, erShardLost, word)
			}
		}
	}
	// Sessions on the other shard are not affected, and stay there.
	other := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	other.query("SET @x = 7")
	if err := serverError(t, other.query("USE "+e.Schemas[1])); err.Code != erShardLost {
		t.Errorf("USE: got %v, want %d", err, erShardLost)
	}
	if got := other.rows("SELECT @x, DATABASE(), NEXTVAL('s')"); fmt.Sprint(got[:2]) != fmt.Sprint([]string{"7", e.Schemas[0]}) {
		t.Errorf("after the refusal: got %v", got)
	}

	if err := down.Restart(); err != nil {
		t.Fatal(err)
	}
	// Both sessions go on without a new login.
	if got := w.rows("SELECT DATABASE(), @@port"); got[0] != e.Schemas[1] || got[1] != e.port(1) {
		t.Errorf("after the shard came back: got %v, want %s, %s", got, e.Schemas[1], e.port(1))
	}
	if got := other.query("USE " + e.Schemas[1]); got[4] != 0 {
		t.Errorf("USE after the shard came back: %v", serverError(t, got))
	}
	if got := other.rows("SELECT @x")[0]; got != "7" {
		t.Errorf("@x brought along: got %s, want 7", got)
	}
}

func TestAProxyStartsWithEveryShardDown(t *testing.T) {
	servers := []*mysqltest.Server{mysqltest.Shared(t), mysqltest.Start(t)}
	e := newEnv(t, setup{Servers: servers, Backend: func(o *backend.Options) {
		o.Shards, o.Default = o.Shards[1:], "s1"
		if err := servers[1].Kill(); err != nil {
			t.Fatal(err)
		}
	}})
	createSequence(t, e, "s")
	c := e.Conn(t, "", nil)
	if got := value(t, c, "SELECT NEXTVAL('s')"); got != "1" {
		t.Errorf("got %s, want 1", got)
	}
	wantError(t, c, erShardLost, "DO 1", "shard s1", servers[1].Addr())
	if out := e.CLI(t, e.Addr(), "", "SELECT NEXTVAL('s') AS n;"); !strings.Contains(out, "| 2 |") {
		t.Errorf("command-line client: got no 2 in:\n%s", out)
	}
	if err := servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the shard is used when it is back", func() bool {
		_, err := c.ExecContext(context.Background(), "DO 1")
		return err == nil
	})
	eventually(t, "new clients are greeted with the server's version once it was asked", func() bool {
		w := e.Wire(t, e.Addr(), wireLogin{Capabilities: protocol.LongFlag})
		defer w.Close()
		return strings.Contains(w.hello.Greeting.Version, servers[1].Version())
	})
}

// Checklist 32.
func TestAServerThatDiesTakesTheSessionsOnItAlong(t *testing.T) {
	servers := twoServers(t)
	e := newEnv(t, setup{Servers: servers})
	dies := servers[1]
	idle := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})
	idle.query("SET @x = 1")
	driver := e.DB(t, e.Schemas[1], nil)
	if err := driver.Ping(); err != nil {
		t.Fatal(err)
	}
	elsewhere := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	elsewhere.query("SELECT 1")
	busy := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})
	busy.send(packet(command(protocol.ComQuery, "SELECT SLEEP(100)")))
	result := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})
	result.send(packet(command(protocol.ComQuery, "SELECT seq, REPEAT('x', 1000) FROM "+e.Servers[0].Numbers(10_000_000))))
	if err := result.Fill(); err != nil { // the rows have begun to arrive
		t.Fatal(err)
	}
	e.awaitStatement(dies, "SELECT SLEEP(100)")
	if err := dies.Kill(); err != nil {
		t.Fatal(err)
	}

	// In mid-result no error can be sent: the proxy closes the connection, as the server does.
	if got := result.ended(); len(got) == 0 {
		t.Error("got no byte of the result, want its beginning")
	}
	for name, w := range map[string]*wire{"busy": busy, "idle": idle} {
		if got := w.ended(); len(got) > 0 { // the server sends no error either
			t.Errorf("%s: got %q, want nothing but the end", name, got)
		}
	}
	e.awaitSessions(t, 1)
	// The log names the reason.
	reason := "shard s1, node " + dies.Addr()
	if logged := e.Logs.FilterMessage("session ended with its backend connection").All(); len(logged) == 0 || !strings.Contains(fmt.Sprint(logged[0].ContextMap()["err"]), reason) {
		t.Errorf("logged: got %v, want %q", logged, reason)
	}
	for _, n := range e.Shards.Stats() {
		if lost := strings.Contains(n.LastError, "lost"); lost != (n.Shard == "s1") {
			t.Errorf("last error of %s: got %q", n.Node, n.LastError)
		}
	}
	_, err := driver.Exec("DO 1") // on a new connection: the driver has noticed the end of the old one
	checkError(t, "driver", err, erShardLost, "shard s1", dies.Addr())
	if err := driver.Close(); err != nil {
		t.Error(err)
	}
	if got := elsewhere.rows("SELECT @@port")[0]; got != e.port(0) {
		t.Errorf("a session on the other shard: got port %s, want %s", got, e.port(0))
	}
	e.awaitSessions(t, 1)
	if err := dies.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := port(t, e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})); got != e.port(1) {
		t.Errorf("a new session: got port %s, want %s", got, e.port(1))
	}
}

// awaitStatement waits until a server runs a statement.
func (e *env) awaitStatement(server *mysqltest.Server, info string) {
	e.t.Helper()
	pool, err := sql.Open("mysql", server.DSN(""))
	if err != nil {
		e.t.Fatal(err)
	}
	defer pool.Close() // the test may kill the server later
	if !eventually(e.t, info+" runs", func() bool {
		n := 0
		if err := pool.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE info = ? AND user = ?", info, e.User).Scan(&n); err != nil {
			e.t.Fatal(err)
		}
		return n > 0
	}) {
		e.t.FailNow()
	}
}

func TestAConnectionKilledOnTheServerEndsItsSession(t *testing.T) {
	e := newEnv(t, setup{})
	root := e.Servers[0].DB(t, "")
	for _, mode := range []string{"idle", "busy", "query only"} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		id := w.rows("SELECT id FROM information_schema.processlist WHERE id = CONNECTION_ID()")[0]
		switch mode {
		case "idle":
			if _, err := root.Exec("KILL " + id); err != nil {
				t.Fatal(err)
			}
			if got := w.ended(); len(got) > 0 {
				t.Errorf("%s: got %q, want nothing but the end", mode, got)
			}
		case "busy":
			w.send(packet(command(protocol.ComQuery, "SELECT SLEEP(101)")))
			e.awaitStatement(e.Servers[0], "SELECT SLEEP(101)")
			if _, err := root.Exec("KILL " + id); err != nil {
				t.Fatal(err)
			}
			if got := w.ended(); len(got) > 0 {
				t.Logf("%s: %v", mode, serverError(t, got))
			}
		default:
			w.send(packet(command(protocol.ComQuery, "SELECT SLEEP(102)")))
			e.awaitStatement(e.Servers[0], "SELECT SLEEP(102)")
			if _, err := root.Exec("KILL QUERY " + id); err != nil {
				t.Fatal(err)
			}
			got := split(w.receive(protocol.ShapeResult, nil))
			t.Logf("%s: %q", mode, got[len(got)-1])
			w.ping("KILL QUERY") // the session goes on
		}
	}
}

// Checklist 31.
func TestAClientThatVanishesInMidResultLeavesNothing(t *testing.T) {
	e := newEnv(t, setup{})
	for range 3 {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		w.send(packet(command(protocol.ComQuery, "SELECT seq, REPEAT('x', 1000) FROM "+e.Servers[0].Numbers(10_000_000))))
		if err := w.Fill(); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	for range 3 { // in the middle of a command, and of a login
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		b := packet(command(protocol.ComQuery, "INSERT INTO t VALUES ("+strings.Repeat("x", 100_000)))
		w.send(b[:len(b)-5])
		w.Close()
		nc := dialTCP(t, e.Addr())
		nc.Close()
	}
	e.awaitSessions(t, 0)
	e.awaitConnections(e.Servers[0], 0)
}

func TestShutdownLetsARunningStatementEnd(t *testing.T) {
	e := newEnv(t, setup{})
	idle, pool := e.Wire(t, e.Addr(), wireLogin{}), e.Conn(t, e.Schemas[0], nil)
	exec(t, pool, "DO 1")
	never := dialTCP(t, e.Addr()) // has not logged in
	busy := e.Wire(t, e.Addr(), wireLogin{})
	const statement = "SELECT GET_LOCK('shutdown', 100), 'a'"
	locked := e.DirectConn(t, 0, "", nil)
	exec(t, locked, "DO GET_LOCK('shutdown', 0)")
	// A pipeline ends with the statement that runs, and with those that were read together with it.
	busy.send(append(packet(command(protocol.ComQuery, statement)), packet(command(protocol.ComQuery, "SELECT 'b'"))...))
	e.awaitStatement(e.Servers[0], statement)

	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*wireTimeout)
		defer cancel()
		done <- e.Shutdown(ctx)
	}()
	idle.ended()
	readToEnd(t, never)
	exec(t, locked, "DO RELEASE_LOCK('shutdown')") // the statement can end only now
	for _, want := range []string{"a", "b"} {
		got := split(busy.receive(protocol.ShapeResult, nil))
		if row := got[len(got)-2]; !strings.Contains(string(row), want) {
			t.Errorf("got %q, want %s", row, want)
		}
	}
	busy.ended()
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := e.tryLogin(t, e.Addr(), "", nil); err == nil {
		t.Error("a login after the shutdown succeeds")
	}
}

func TestShutdownIsBounded(t *testing.T) {
	server, client := testTLS()
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.TLS = server }})
	const statement = "SELECT * FROM locked FOR UPDATE"
	locked := e.DirectConn(t, 0, e.Schemas[0], nil)
	exec(t, locked, "CREATE TABLE locked (a INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO locked VALUES (1)", "BEGIN", statement)
	busy := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	busy.send(packet(command(protocol.ComQuery, statement)))
	e.awaitStatement(e.Servers[0], statement)
	var slow [2]*wire // do not read
	for i, config := range []*tls.Config{nil, client} {
		slow[i] = e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], TLS: config})
		slow[i].send(packet(command(protocol.ComQuery, "SELECT seq, REPEAT('x', 1000) FROM "+e.Servers[0].Numbers(1_000_000))))
		if err := slow[i].Fill(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	err := e.Shutdown(ctx)
	if err == nil || !strings.Contains(err.Error(), "3 sessions") {
		t.Errorf("got error %v, want one of 3 sessions", err)
	}
	if open := e.connections(e.Servers[0]); !strings.Contains(open, statement) {
		t.Errorf("after the shutdown: got the connections %q, want the statement to run", open)
	}
	exec(t, locked, "ROLLBACK")
	busy.ended()
	for _, w := range slow {
		w.ended()
	}
}

func TestAServerThatDoesNotAnswerIsWaitedForOnce(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	const limit = 2 * time.Second
	e := newEnv(t, setup{Backend: func(o *backend.Options) {
		o.ConnectTimeout = limit
		o.Shards = append(o.Shards, backend.ShardOptions{Name: "silent", Nodes: []string{silent.Addr().String()}, Schemas: []string{"quiet"}})
	}})
	createSequence(t, e, "s")
	waits := 0
	for i := range 10 {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: "quiet"})
		begun := time.Now()
		err := serverError(t, w.query("SELECT 1"))
		if time.Since(begun) >= limit {
			waits++
		}
		if waits > 3 { // others may, if a busy machine stands still between two clients
			t.Fatalf("%d of %d clients waited, want one", waits, i+1)
		}
		if i == 0 {
			e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.ConnectTimeout = 5 * limit })
		}
		if err.Code != erShardLost || !strings.Contains(err.Message, "shard silent") || !strings.Contains(err.Message, silent.Addr().String()) {
			t.Errorf("got %v, want %d naming shard and node", err, erShardLost)
		}
		if got := w.query("SELECT NEXTVAL('s')"); got[4] == 0xff {
			t.Errorf("number: %v", serverError(t, got))
		}
		eventually(t, "another shard", func() bool { return w.query("USE " + e.Schemas[0])[4] != 0xff })
	}
}

// Checklist 35.
func TestAnswersComeEvenIfTheClientHasSaidItsLast(t *testing.T) {
	e := newEnv(t, setup{})
	query := packet(command(protocol.ComQuery, "SELECT SLEEP(0.1), 'first'"))
	query = append(query, packet(command(protocol.ComQuery, "SELECT 'last'"))...)
	for name, end := range map[string]func(w *wire){
		"half-closed": func(w *wire) { w.send(query); _ = w.nc.(*net.TCPConn).CloseWrite() },
		"COM_QUIT":    func(w *wire) { w.send(append(query, packet(command(protocol.ComQuit, ""))...)) },
	} {
		w := e.Wire(t, e.Addr(), wireLogin{})
		end(w)
		if got := string(w.ended()); !strings.Contains(got, "first") || !strings.Contains(got, "last") {
			t.Errorf("%s: got %q, want both answers", name, got)
		}
	}
	e.awaitSessions(t, 0)
}

// Checklist 19.
func TestShutdownLetsAFileThatIsBeingSentArrive(t *testing.T) {
	server := mysqltest.Start(t, "--local-infile=1", "--max-allowed-packet=64M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	server.Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (a INT)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	long := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.send(packet(command(protocol.ComQuery, "LOAD DATA LOCAL INFILE 'x' INTO TABLE t")))
	if _, err := w.raw(); err != nil { // the request for the file
		t.Fatal(err)
	}
	content := file(strings.Repeat("1\n", 10_000), strings.Repeat("2\n", 10_000))
	half := len(content) / 2
	w.send(content[:half])
	// A statement too long to be kept whole is already on its way to the server.
	statement, _ := protocol.AppendPacket(nil, []byte("\x03SELECT LENGTH('"+strings.Repeat("x", 17<<20)+"')"), 0)
	long.send(statement[:len(statement)/2])
	time.Sleep(50 * time.Millisecond)

	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*wireTimeout)
		defer cancel()
		done <- e.Shutdown(ctx)
	}()
	time.Sleep(100 * time.Millisecond)
	w.send(content[half:])
	long.send(statement[len(statement)/2:])
	if got := w.receive(protocol.ShapeResult, nil); got[4] != 0 {
		t.Errorf("LOAD DATA: %v", serverError(t, got))
	}
	w.ended()
	if got := split(long.receive(protocol.ShapeResult, nil)); string(got[len(got)-2]) != "\x0817825792" {
		t.Errorf("long statement: got %q", got[len(got)-2])
	}
	long.ended()
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if got := value(t, e.DirectConn(t, 0, e.Schemas[0], nil), "SELECT COUNT(*) FROM t"); got != "20000" {
		t.Errorf("rows: got %s, want 20000", got)
	}
}
