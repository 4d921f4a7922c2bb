package proxy_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// reset closes a connection with bytes unread, as a killed client does.
func reset(nc net.Conn) {
	_ = nc.(*net.TCPConn).SetLinger(0)
	_ = nc.Close()
}

// noMoreSessionsThan waits until n sessions remain.
func (e *env) noMoreSessionsThan(t testing.TB, n int) {
	t.Helper()
	if !eventually(t, fmt.Sprint(n, " sessions remain"), func() bool { return e.Proxy.Sessions() == n }) {
		t.Fatalf("got %d sessions", e.Proxy.Sessions())
	}
}

// Twenty thousand connections without a login leave no resources behind, and clients that log in
// meanwhile are served.
func TestTwentyThousandConnectsLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("CI runs it: 20,000 connections")
	}
	e := newEnv(t, setup{Shards: noShards, Proxy: func(o *proxy.Options) { o.MaxConnections, o.MaxLogins = 200, 100 }})
	createSequence(t, e, "photos")
	c := e.Conn(t, "", nil)
	noise := make([]byte, 100)
	var wg sync.WaitGroup
	const workers, each = 16, 1250
	for worker := range workers {
		wg.Go(func() {
			greeting := make([]byte, 512)
			for i := range each {
				nc, err := net.DialTimeout("tcp", e.Addr(), wireTimeout)
				if err != nil {
					t.Errorf("connect %d: %v", i, err)
					return
				}
				_ = nc.SetDeadline(time.Now().Add(wireTimeout))
				switch (worker + i) % 4 {
				case 0: // closes at once
				case 1: // reads the greeting
					_, _ = nc.Read(greeting)
				case 2: // sends no login
					_, _ = nc.Write(noise)
					_, _ = io.ReadFull(nc, greeting)
				case 3: // sends a part of a login
					_, _ = nc.Read(greeting)
					_, _ = nc.Write([]byte{200, 0, 0, 1, 0xff})
				}
				reset(nc)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for n := 1; ; n++ {
		select {
		case <-done:
		default:
			if got := value(t, c, "SELECT NEXTVAL('photos')"); got != fmt.Sprint(n) {
				t.Fatalf("got %s, want %d", got, n)
			}
			continue
		}
		break
	}
	e.noMoreSessionsThan(t, 1)
	if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
		t.Errorf("a login after them: %v", err)
	}
}

// Two thousand clients are killed in all states. No session, server connection, lock or memory of
// theirs remains; the harness looks for the rest.
func TestClientsKilledInEveryStateLeaveNothing(t *testing.T) {
	e := newEnv(t, setup{Proxy: withMemory(4 << 20)})
	createSequence(t, e, "photos")
	d := e.DirectConn(t, 0, e.Schemas[0], nil)
	exec(t, d, "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, a TEXT) ENGINE=InnoDB", "INSERT INTO t VALUES (1, REPEAT('x', 60000))", "CREATE TABLE u (a INT)")
	large := largeText("SELECT 1", 1<<20)
	text := func(sql string) []byte { return packet(command(protocol.ComQuery, sql)) }
	states := map[string]func(w *wire){
		"idle":          func(*wire) {},
		"half a header": func(w *wire) { w.send([]byte{1, 0}) },
		"half a text":   func(w *wire) { w.send(text("SELECT 1")[:8]) },
		"half a large":  func(w *wire) { w.send(large[:500_000]) },
		"asleep":        func(w *wire) { w.send(text("SELECT SLEEP(100)")) },
		"a transaction": func(w *wire) { w.query("BEGIN"); w.send(text("SELECT id FROM t WHERE id = 1 FOR UPDATE")) },
		"a lock's name": func(w *wire) { w.send(text("SELECT GET_LOCK('killed', 100)")) },
		"mid-result": func(w *wire) {
			w.send(text("SELECT a FROM t, (SELECT 1 UNION SELECT 2 UNION SELECT 3) x"))
			_, _ = w.raw()
		},
		"unread results": func(w *wire) {
			w.send(append(text("SELECT REPEAT('x', 1000000)"), text("SELECT NEXTVAL('photos')")...))
		},
		"numbered rows": func(w *wire) { w.send(text("SELECT NEXTVAL('photos'), a FROM t")); _, _ = w.raw() },
		"prepared": func(w *wire) {
			w.do(protocol.ComStmtPrepare, "INSERT INTO t VALUES (NEXTVAL('photos'), ?)")
			w.send(packet(command(protocol.ComStmtLongData, "\x01\x00\x00\x00\x00\x00abc")))
		},
		"a file":           func(w *wire) { w.send(text("LOAD DATA LOCAL INFILE 'x' INTO TABLE t")); _, _ = w.raw() },
		"temporary tables": func(w *wire) { w.query("CREATE TEMPORARY TABLE tt (a INT)"); w.send(text("LOCK TABLES u WRITE")) },
		"a change of user": func(w *wire) { w.send(packet(command(protocol.ComChangeUser, e.User+"\x00\x00\x00"))) },
	}
	for range 72 {
		var wires []*wire
		for name, enter := range states {
			for range 2 {
				w, err := e.tryWire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				enter(w)
				wires = append(wires, w)
			}
		}
		for _, w := range wires {
			reset(w.nc)
			w.Close()
		}
	}
	e.noMoreSessionsThan(t, 0)
	e.noMemoryTaken(t)
	exec(t, d, "UPDATE t SET a = '' WHERE id = 1", "DO GET_LOCK('killed', 0)")
	if got := value(t, e.Conn(t, "", nil), "SELECT NEXTVAL('photos') > 0"); got != "1" {
		t.Errorf("a number afterwards: got %s", got)
	}
}

// A shard and a sequence server that hang delay only the clients that need them, and serve again
// afterwards.
func TestServersThatStandStillTakeNobodyAlong(t *testing.T) {
	numbers, still := mysqltest.Start(t), mysqltest.Start(t)
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{mysqltest.Shared(t), still},
		Sequence: func(o *sequence.Options) {
			o.Servers[0] = sequence.ServerOptions{Addr: numbers.Addr(), User: "root", Database: numbers.Schema(t)}
		},
	})
	createSequence(t, e, "photos")
	create(t, e, sequence.CreateOptions{Name: "albums", Cache: 1})
	on0, on1 := e.Conn(t, e.Schemas[0], nil), e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})
	for _, name := range []string{"photos", "albums"} {
		eventually(t, "a number of "+name, func() bool { return run(t.Context(), on0, "text", "SELECT NEXTVAL('"+name+"')") == nil })
	}
	on1.query("SET @x = 5")
	shardGoesOn, numbersGoOn := mysqltest.StandStill(t, still.PID()), mysqltest.StandStill(t, numbers.PID())
	e.impatient()
	on1.send(packet(command(protocol.ComQuery, "SELECT @x")))
	for range 50 {
		exec(t, on0, "SELECT NEXTVAL('photos')", "SELECT 1", "DO NEXTVAL('photos')")
	}
	for range 3 {
		wantError(t, on0, 1105, "SELECT NEXTVAL('albums', 1000)", "albums", "unavailable")
	}
	if got := serverError(t, e.Wire(t, e.Addr(), wireLogin{}).query("USE "+e.Schemas[1])); got.Code != erShardLost {
		t.Errorf("a new connection to the shard: got %v, want %d", got, erShardLost)
	}
	if err := e.tryLogin(t, e.Addr(), e.Schemas[0], nil); err != nil {
		t.Errorf("a login: %v", err)
	}
	shardGoesOn()
	if rows := on1.decode(on1.receive(protocol.ShapeResult, nil)); len(rows) != 1 || rows[0][0] != "5" {
		t.Errorf("what waited for the shard: got %q, want 5", rows)
	}
	numbersGoOn()
	eventually(t, "numbers of albums", func() bool { return run(t.Context(), on0, "text", "SELECT NEXTVAL('albums', 1000)") == nil })
}
