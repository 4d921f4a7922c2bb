package proxy_test

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// refusesAsDirect checks that a login through the proxy that needs the server gets what a direct
// one gets at the same moment, in bytes and as clients report it.
func (e *env) refusesAsDirect(t *testing.T, direct string, code uint16) {
	t.Helper()
	got, want := e.tryLogin(t, e.Addr(), e.Schemas[0], nil), e.tryLogin(t, direct, "", nil)
	checkError(t, "direct", want, code)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("driver: got %v, want %v as direct", got, want)
	}
	compareTexts(t, e.CLI(t, e.Addr(), e.Schemas[0], "SELECT 1", "--skip-ssl"), e.CLI(t, direct, "", "SELECT 1", "--skip-ssl"))

	nc := dialTCP(t, direct)
	first := make([]byte, 512)
	n, err := nc.Read(first)
	if err != nil || n < protocol.HeaderSize {
		t.Fatalf("read the direct answer: %d bytes, %v", n, err)
	}
	_, err = e.tryWire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	refused, _ := err.(*protocol.ServerError)
	wanted, ok := protocol.ParseServerError(first[protocol.HeaderSize:n]).(*protocol.ServerError)
	if !ok || refused == nil || *refused != *wanted {
		t.Errorf("wire: got %+v, want %+v, of %q", refused, wanted, first[:n])
	}
}

// exhaust takes all connections that a server has to give, without logging in, and returns a
// function that closes them. It opens a few more: the server notices closed connections a little
// late.
func exhaust(t *testing.T, addr string) (release func()) {
	t.Helper()
	var open []net.Conn
	release = func() {
		for _, c := range open {
			c.Close()
		}
		open = nil
	}
	t.Cleanup(release)
	refused := 0
	for range 100 {
		c := dialTCP(t, addr)
		open = append(open, c)
		_ = c.SetReadDeadline(time.Now().Add(wireTimeout))
		b := make([]byte, 512)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(b[protocol.HeaderSize:n], []byte{0xff, 0x10, 0x04}) {
			refused = 0
			continue
		}
		if refused++; refused == 4 {
			return release
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the server accepts any number of connections")
	return nil
}

// Checklist 1.
func TestTooManyConnectionsOfAServerAreToldAsItTellsThem(t *testing.T) {
	for _, byServerToo := range []bool{false, true} {
		t.Run(fmt.Sprintf("users checked by the server: %v", byServerToo), func(t *testing.T) {
			s := mysqltest.Start(t, "--max-connections=10")
			e := newEnv(t, setup{Servers: []*mysqltest.Server{s}, Proxy: func(o *proxy.Options) {
				if byServerToo {
					byServer(o)
				}
			}})
			var c *wire
			if !byServerToo { // otherwise the login has opened the connection
				c = e.Wire(t, e.Addr(), wireLogin{Capabilities: withoutTracking})
			}
			// It connects before the server is full.
			look := s.DB(t, "")
			release := exhaust(t, s.Addr())
			e.refusesAsDirect(t, s.Addr(), 1040)
			if !byServerToo {
				for range 3 {
					answer := serverError(t, c.query("SELECT 1"))
					if want := (protocol.ServerError{Code: 1040, State: "HY000", Message: "Too many connections"}); *answer != want {
						t.Errorf("at a command: got %+v, want %+v", *answer, want)
					}
				}
			}
			// The proxy does not take the server for dead: it asks again at once.
			release()
			// The server notices closed connections a little late.
			eventually(t, "the closed connections are gone", func() bool {
				var name string
				var connected int
				err := look.QueryRow("SHOW GLOBAL STATUS LIKE 'Threads_connected'").Scan(&name, &connected)
				return err == nil && connected <= 5
			})
			look.Close()
			if !byServerToo {
				if got := c.rows("SELECT 5")[0]; got != "5" {
					t.Errorf("after that: got %s, want 5", got)
				}
			}
			if err := e.tryLogin(t, e.Addr(), e.Schemas[0], nil); err != nil {
				t.Errorf("a login after that: %v", err)
			}
		})
	}
}

// Checklist 1.
func TestAHostThatAServerDoesNotLetInIsToldSo(t *testing.T) {
	s := mysqltest.Start(t)
	e := newEnv(t, setup{Backend: func(o *backend.Options) {
		o.Shards[0].Nodes, o.Shards[0].Login = []string{s.Addr()}, &backend.Credentials{User: "root"}
	}})
	c := e.Wire(t, e.Addr(), wireLogin{Capabilities: withoutTracking})
	accounts := "mysql.global_priv"
	if !s.IsMariaDB() {
		accounts = "mysql.user"
	}
	s.Exec(t, "CREATE USER elsewhere@'192.0.2.1'", "DELETE FROM "+accounts+" WHERE Host <> '192.0.2.1'", "FLUSH PRIVILEGES")
	e.refusesAsDirect(t, s.Addr(), 1130)
	if answer := serverError(t, c.query("SELECT 1")); answer.Code != 1130 || answer.State != "HY000" {
		t.Errorf("at a command: got %+v, want 1130", *answer)
	}
}
