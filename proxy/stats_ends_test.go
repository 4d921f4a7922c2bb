package proxy_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// ends returns how many connections have ended, and logins failed, by reason; the latter as "auth:
// reason".
func ends(s *proxy.Server) map[string]uint64 {
	st := s.Stats()
	counts := make(map[string]uint64)
	for _, c := range st.Disconnects {
		counts[c.Name] = c.N
	}
	for _, c := range st.AuthFailures {
		counts["auth: "+c.Name] = c.N
	}
	maps.DeleteFunc(counts, func(_ string, n uint64) bool { return n == 0 })
	return counts
}

// ending runs a function and checks that it ends one connection for these reasons.
func (e *env) ending(t *testing.T, what string, run func(), reasons ...string) {
	t.Helper()
	before := ends(e.Proxy)
	run()
	want := make(map[string]uint64)
	for _, r := range reasons {
		want[r]++
	}
	var got map[string]uint64
	if !eventually(t, what, func() bool {
		got = ends(e.Proxy)
		for r, n := range before {
			if got[r] -= n; got[r] == 0 {
				delete(got, r)
			}
		}
		return maps.Equal(got, want)
	}) {
		t.Errorf("%s: counted %v, want %v", what, got, want)
	}
}

// raw connects, waits for the greeting and sends bytes.
func (e *env) raw(t *testing.T, b []byte) net.Conn {
	t.Helper()
	nc := silent(t, e.Addr())
	if _, err := nc.Write(b); err != nil {
		t.Fatal(err)
	}
	return nc
}

func TestTheEndOfEachConnectionIsCountedWithItsReason(t *testing.T) {
	serverTLS, _ := testTLS()
	user, wrong := "few", "wrong"
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.TLS = serverTLS
		o.Users = append(o.Users, proxy.User{Name: user, Password: "p", MaxConnections: 1},
			proxy.User{Name: "secure", Password: "p", Require: protocol.Requirement{TLS: true}})
	}})
	few := wireLogin{User: &user, Password: new(string)}
	*few.Password = "p"
	few.Capabilities = withoutTracking // such a login needs no server, which does not know the user

	e.ending(t, "quit", func() { e.Wire(t, e.Addr(), wireLogin{}).send(packet(command(protocol.ComQuit, ""))) }, "quit")
	e.ending(t, "a client that closes", func() { e.Wire(t, e.Addr(), wireLogin{}).nc.Close() }, "client_gone")
	e.ending(t, "a health check", func() { silent(t, e.Addr()).Close() }, "client_gone")
	e.ending(t, "a health check that does not read", func() { dialTCP(t, e.Addr()).Close() }, "client_gone")
	e.ending(t, "a client that closes in mid-statement", func() {
		w := e.Wire(t, e.Addr(), wireLogin{})
		w.query("SELECT 1")
		w.send(packet(command(protocol.ComQuery, "SELECT SLEEP(100), 'gone'")))
		e.awaitStatement(e.Servers[0], "SELECT SLEEP(100), 'gone'")
		w.nc.Close()
	}, "client_gone")
	e.ending(t, "a server that closes", func() {
		w := e.Wire(t, e.Addr(), wireLogin{})
		id := w.rows("SELECT id FROM information_schema.processlist WHERE id = CONNECTION_ID()")[0]
		e.Servers[0].Exec(t, "KILL "+id)
		w.ended()
	}, "backend_gone")
	e.ending(t, "a server that closes in mid-statement", func() {
		w := e.Wire(t, e.Addr(), wireLogin{})
		id := w.rows("SELECT id FROM information_schema.processlist WHERE id = CONNECTION_ID()")[0]
		w.send(packet(command(protocol.ComQuery, "SELECT SLEEP(100), 'lost'")))
		e.awaitStatement(e.Servers[0], "SELECT SLEEP(100), 'lost'")
		e.Servers[0].Exec(t, "KILL "+id)
		w.ended()
	}, "backend_gone")
	e.ending(t, "KILL", func() {
		w := e.Wire(t, e.Addr(), wireLogin{})
		killer := e.Wire(t, e.Addr(), wireLogin{})
		killer.query(fmt.Sprintf("KILL %d", w.hello.Greeting.ConnectionID))
		w.ended()
		killer.send(packet(command(protocol.ComQuit, "")))
	}, "killed", "quit")

	login := func(user, password, schema string) func() {
		return func() {
			_ = e.tryLogin(t, e.Addr(), schema, func(c *mysql.Config) { c.User, c.Passwd = user, password })
		}
	}
	e.ending(t, "a wrong password", login(e.User, wrong, ""), "auth", "auth: password")
	e.ending(t, "no password", login(e.User, "", ""), "auth", "auth: password")
	e.ending(t, "an unknown user", login("nobody_here", wrong, ""), "auth", "auth: unknown_user")
	e.ending(t, "no TLS", login("secure", "p", ""), "auth", "auth: requirement")
	e.ending(t, "an unknown schema", login(e.User, e.Password, "no_such_schema"), "auth", "auth: server")
	e.ending(t, "a change to a wrong password", func() { e.Wire(t, e.Addr(), wireLogin{}).change(e.User, wrong, "", "") }, "auth", "auth: password")

	e.ending(t, "no login at all", func() { e.raw(t, packet([]byte("\x01\x02"))) }, "malformed")
	e.ending(t, "a login that is too long", func() { e.raw(t, []byte{0xff, 0xff, 0x7f, 1}) }, "malformed")
	e.ending(t, "half of a login", func() { e.raw(t, []byte{0x20, 0, 0, 1, 0x05}).Close() }, "client_gone")
	e.ending(t, "what is no TLS", func() {
		// With SSL.
		request := packet([]byte("\x05\xae\x0f\x00\x00\x00\x00\x01\x2d" + string(make([]byte, 23))))
		request[3] = 1
		e.raw(t, append(request, "GET / HTTP/1.1\r\n\r\n"...))
	}, "malformed")
	e.ending(t, "a broken frame", func() {
		w := e.Wire(t, e.Addr(), wireLogin{Packing: mysqltest.Zlib})
		if _, err := w.nc.Write([]byte("\x05\x00\x00\x07\x00\x00\x00\x01\x00\x00\x00\x0e")); err != nil {
			t.Fatal(err)
		}
	}, "malformed")
	e.ending(t, "a character set that no client can have", func() { _, _ = e.tryWire(t, e.Addr(), wireLogin{Collation: 35}) }, "error")

	e.ending(t, "a user's limit", func() {
		w := e.Wire(t, e.Addr(), few)
		e.refusal(t, e.Addr(), few)
		w.send(packet(command(protocol.ComQuit, "")))
	}, "limit", "quit")

	w := e.Wire(t, e.Addr(), wireLogin{})
	busy := e.Wire(t, e.Addr(), wireLogin{})
	busy.send(packet(command(protocol.ComQuery, "SELECT SLEEP(100), 'drained'")))
	e.awaitStatement(e.Servers[0], "SELECT SLEEP(100), 'drained'")
	e.ending(t, "a shutdown", func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := e.Shutdown(ctx); err == nil {
			t.Error("the busy session was not ended")
		}
		w.ended()
	}, "drain", "drain")
}

func TestLoginsAboveLimitsAndSlowOnesAreCountedAsSuch(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.MaxConnections = 1 }})
	e.ending(t, "no room", func() {
		first := silent(t, e.Addr())
		e.awaitSessions(t, 1)
		readToEnd(t, dialTCP(t, e.Addr()))
		first.Close()
	}, "limit", "client_gone")
	slow := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.LoginTimeout = time.Second }})
	slow.ending(t, "no login in time", func() { silent(t, slow.Addr()) }, "timeout")
}

func TestLoginsThatAreRefusedElsewhereAreCountedAsSuch(t *testing.T) {
	server := mysqltest.Start(t)
	me := osUser(t)
	how := "VIA mysql_native_password USING PASSWORD('pw') OR unix_socket"
	if !server.IsMariaDB() {
		server.Exec(t, "INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'")
		how = "WITH auth_socket"
	}
	server.Exec(t, fmt.Sprintf("DROP USER IF EXISTS `%s`@localhost", me), fmt.Sprintf("CREATE USER `%s`@localhost IDENTIFIED %s", me, how))
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: byServer, Backend: overSocket(server)})
	wrong := "wrong"
	e.ending(t, "a password that the server refuses", func() { e.refusal(t, e.Addr(), wireLogin{Password: &wrong}) }, "auth", "auth: server")
	e.ending(t, "a schema that the server refuses", func() { e.refusal(t, e.Addr(), wireLogin{Schema: "no_such_schema"}) }, "auth", "auth: server")
	e.ending(t, "a user whom the server would know by the proxy", func() { e.refusal(t, e.Addr(), wireLogin{User: &me, Password: &wrong}) }, "auth", "auth: relay")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	e.ending(t, "no server to ask", func() { e.refusal(t, e.Addr(), wireLogin{}) }, "backend_gone")
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}

	serverTLS, clientTLS := testTLS()
	secure := newEnv(t, setup{AdminAddress: true, Proxy: func(o *proxy.Options) {
		o.TLS, o.RequireTLS = serverTLS, true
		withWatcher(o)
	}})
	secure.ending(t, "no TLS where all need it", func() { secure.refusal(t, secure.Addr(), wireLogin{}) }, "auth", "auth: requirement")
	secure.ending(t, "at the admin address, no admin", func() {
		login := asWire(stranger)
		login.TLS = clientTLS
		secure.refusal(t, secure.AdminAddr(), login)
	}, "auth", "auth: not_admin")
}

func TestClientsThatAreTooSlowAreCountedAsSuch(t *testing.T) {
	e := newEnv(t, setup{Shards: noShards})
	e.ending(t, "idle for wait_timeout", func() {
		w := e.Wire(t, e.Addr(), wireLogin{})
		w.alone("SET SESSION wait_timeout = 1")
		w.ended()
	}, "timeout")

	slow := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.WriteTimeout = 300 * time.Millisecond }})
	slow.ending(t, "an answer that is not read", func() {
		w := slow.Wire(t, slow.Addr(), wireLogin{Schema: slow.Schemas[0]})
		w.send(packet(command(protocol.ComQuery, "SELECT seq, REPEAT('x', 1000) FROM "+slow.Servers[0].Numbers(10_000_000))))
	}, "timeout")
}
