package proxy_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// Checklist 31.
func TestAClientThatVanishesInMidQueryTakesTheQueryAlong(t *testing.T) {
	serverTLS, clientTLS := testTLS()
	e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) { o.TLS = serverTLS }})
	locked := e.DirectConn(t, 0, e.Schemas[0], nil)
	exec(t, locked, "CREATE TABLE locked (a INT PRIMARY KEY) ENGINE=InnoDB", "CREATE TABLE written (a INT) ENGINE=InnoDB",
		"INSERT INTO locked VALUES (1)",
		"BEGIN", "SELECT * FROM locked FOR UPDATE")
	for name, c := range map[string]struct {
		tls       *tls.Config
		before    []string
		age       time.Duration
		statement string
		shard     int
	}{
		"young":         {statement: "SELECT SLEEP(100), 'young'"},
		"old":           {statement: "SELECT SLEEP(100), 'old'", age: 400 * time.Millisecond},
		"TLS":           {statement: "SELECT SLEEP(100), 'TLS'", age: 400 * time.Millisecond, tls: clientTLS},
		"a lock":        {statement: "SELECT * FROM locked WHERE a = 1 FOR UPDATE", age: 400 * time.Millisecond},
		"a transaction": {before: []string{"BEGIN", "INSERT INTO written VALUES (1)"}, statement: "DO SLEEP(100)"},
		"a shard that came later": {
			age: 400 * time.Millisecond, before: []string{"USE " + e.Schemas[1]}, statement: "SELECT SLEEP(100), 'later'", shard: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], TLS: c.tls})
			time.Sleep(c.age)
			for _, sql := range c.before {
				w.query(sql)
			}
			w.send(packet(command(protocol.ComQuery, c.statement)))
			e.awaitStatement(e.Servers[c.shard], c.statement)
			w.nc.Close()
			began := time.Now()
			e.awaitNoStatement(t, e.Servers[c.shard], c.statement)
			t.Logf("the statement ended after %s", time.Since(began).Round(time.Millisecond))
		})
	}
	exec(t, locked, "COMMIT")
	if got := value(t, locked, "SELECT COUNT(*) FROM written"); got != "0" {
		t.Errorf("rows: got %s, want 0: the transaction of a client that is gone was not rolled back", got)
	}
	e.awaitSessions(t, 0)
}

// awaitNoStatement waits until a server no longer runs a statement.
func (e *env) awaitNoStatement(t *testing.T, server *mysqltest.Server, info string) {
	t.Helper()
	eventually(t, info+" runs no more", func() bool { return !strings.Contains(e.connections(server), info) })
}

func TestAStatementThatIsSoonDoneOutlivesItsClient(t *testing.T) {
	e := newEnv(t, setup{})
	direct := e.DirectConn(t, 0, e.Schemas[0], nil)
	exec(t, direct, "CREATE TABLE t (a INT)")
	eventually(t, "a statement is soon done, also on a busy machine, and leaves its row", func() bool {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		time.Sleep(400 * time.Millisecond) // long enough to be watched
		w.send(append(packet(command(protocol.ComQuery, "INSERT INTO t SELECT SLEEP(0.02)")), packet(command(protocol.ComQuit, ""))...))
		w.nc.Close()
		e.awaitSessions(t, 0)
		return value(t, direct, "SELECT COUNT(*) FROM t") != "0"
	})
}

// Checklist 31.
func TestManyClientsThatVanishInMidQueryLeaveNothing(t *testing.T) {
	deaths, atOnce := 10_000, 500
	if testing.Short() {
		deaths = 1000
	}
	server := mysqltest.Start(t, fmt.Sprintf("--max-connections=%d", atOnce+50))
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) { o.MaxConnections = 2 * atOnce }})
	// The statement does not SLEEP: MariaDB takes two seconds to end a SLEEP while another thread
	// begins one.
	holder := server.DB(t, "")
	holder.SetMaxOpenConns(1)
	if _, err := holder.Exec("DO GET_LOCK('held', 0)"); err != nil {
		t.Fatal(err)
	}
	e.dieInMidQuery(t) // what the first of them allocates stays
	e.awaitNothing(t, server)
	// The goroutines that serve the next client, and watch young sessions, end by then.
	time.Sleep(500 * time.Millisecond)
	before := e.resources(t)
	began := time.Now()
	for done := 0; done < deaths; done += atOnce {
		var wires sync.WaitGroup
		for range 8 {
			wires.Go(func() {
				for range atOnce / 8 {
					e.dieInMidQuery(t)
				}
			})
		}
		wires.Wait()
		e.awaitNothing(t, server)
	}
	t.Logf("%d clients died in %s", deaths, time.Since(began).Round(time.Millisecond))
	var after resources
	if !eventually(t, "goroutines and descriptors are as before", func() bool {
		after = e.resources(t)
		return after.goroutines <= before.goroutines && after.descriptors <= before.descriptors
	}) {
		t.Errorf("after %d deaths: got %+v, want no more than %+v", deaths, after, before)
	}
}

// awaitNothing waits until no session remains, in the proxy and on a server.
func (e *env) awaitNothing(t *testing.T, server *mysqltest.Server) {
	t.Helper()
	e.awaitSessions(t, 0)
	connections := ""
	if !eventually(t, "no connection remains", func() bool { connections = e.connections(server); return connections == "" }) {
		t.Fatalf("connections remain: %.300s", connections)
	}
}

// dieInMidQuery is a client that goes away while its statement runs.
func (e *env) dieInMidQuery(t *testing.T) {
	w, err := e.tryWire(t, e.Addr(), wireLogin{})
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := w.Write(packet(command(protocol.ComQuery, "SELECT GET_LOCK('held', 1000)"))); err != nil {
		t.Error(err)
	}
	w.nc.Close()
}

// resources are what sessions take of the process.
type resources struct{ goroutines, descriptors int }

func (e *env) resources(t *testing.T) resources {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("descriptors cannot be counted: %v", err)
	}
	return resources{runtime.NumGoroutine(), len(fds)}
}

func TestAClientThatVanishesInAPipelineTakesTheRestAlong(t *testing.T) {
	e := newEnv(t, setup{})
	// The statement does not use GET_LOCK, which notices by itself that its client has gone.
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE TABLE locked (a INT PRIMARY KEY) ENGINE=InnoDB",
		"INSERT INTO locked VALUES (1)", "BEGIN", "SELECT * FROM locked FOR UPDATE")
	const statement = "SELECT * FROM locked FOR UPDATE"
	for range 3 {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		w.send(append(packet(command(protocol.ComQuery, "SELECT REPEAT('x', 1000000)")), packet(command(protocol.ComQuery, statement))...))
		e.awaitStatement(e.Servers[0], statement)
		w.nc.Close() // with the first answer unread, so that the next write to it fails
		e.awaitNoStatement(t, e.Servers[0], statement)
	}
	e.awaitSessions(t, 0)

	// A reset before the first answer makes its write fail while the second statement already runs.
	const first = "SELECT * FROM gate FOR UPDATE"
	gate := e.DirectConn(t, 0, e.Schemas[0], nil)
	exec(t, gate, "CREATE TABLE gate (a INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO gate VALUES (1)", "BEGIN", first)
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.send(append(packet(command(protocol.ComQuery, first)), packet(command(protocol.ComQuery, statement))...))
	e.awaitStatement(e.Servers[0], first)
	if err := w.nc.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	w.nc.Close()
	exec(t, gate, "ROLLBACK")
	e.awaitSessions(t, 0)
	e.awaitNoStatement(t, e.Servers[0], statement)
}

func TestAClientThatVanishesWhileItWaitsForANumberLeavesNothing(t *testing.T) {
	e := newEnvWithoutNumbers(t)
	w := e.Wire(t, e.Addr(), wireLogin{})
	w.send(packet(command(protocol.ComQuery, "SELECT NEXTVAL('s')")))
	time.Sleep(50 * time.Millisecond)
	w.nc.Close()
	e.awaitSessions(t, 0)
	if err := e.Servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
}
