package proxy_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// Checklist 35.
func TestAnIdleSessionEndsWithItsBackendConnectionAndWithTheSameWords(t *testing.T) {
	serverTLS, clientTLS := testTLS()
	server := mysqltest.Start(t)
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) { o.TLS = serverTLS }})
	root := server.DB(t, "")
	kill := func(id string) error {
		_, err := root.Exec("KILL " + id)
		return err
	}
	for name, c := range map[string]struct {
		tls    *tls.Config // of the client of the proxy
		age    time.Duration
		before string
		end    func(id string) error // ends the backend connection; nil: it ends by itself
	}{
		"KILL":                    {age: 400 * time.Millisecond, end: kill},
		"KILL of a young session": {end: kill},
		"wait_timeout":            {before: "SET wait_timeout = 1"},
		"wait_timeout, TLS":       {before: "SET wait_timeout = 1", tls: clientTLS},
		"in a transaction":        {before: "BEGIN", age: 400 * time.Millisecond, end: kill},
	} {
		t.Run(name, func(t *testing.T) {
			var answers [2][]byte
			for i, w := range []*wire{
				e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], TLS: c.tls}), e.Wire(t, server.Addr(), wireLogin{Schema: e.Schemas[0]}),
			} {
				id := w.backendID()
				if c.before != "" {
					w.alone(c.before)
				}
				time.Sleep(c.age)
				if c.end != nil {
					if err := c.end(id); err != nil {
						t.Fatal(err)
					}
				}
				answers[i] = w.ended()
			}
			if !bytes.Equal(answers[0], answers[1]) {
				t.Errorf("before the end: got %q, want %q as direct", answers[0], answers[1])
			}
		})
	}
	t.Run("shutdown of the server", func(t *testing.T) {
		through, direct := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]}), e.Wire(t, server.Addr(), wireLogin{})
		if err := root.Close(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		if got, want := through.ended(), direct.ended(); !bytes.Equal(got, want) {
			t.Errorf("before the end: got %q, want %q as direct", got, want)
		}
	})
	e.awaitSessions(t, 0)
}

// backendID returns the server's own number of the connection.
func (w *wire) backendID() string {
	w.t.Helper()
	return w.rows("SELECT id FROM information_schema.processlist WHERE id = CONNECTION_ID()")[0]
}

func TestAnIdleConnectionToAnotherShardMayEndWithoutTheSession(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})
	w.query("SET @x = 7")
	// Not w.backendID, because the session then asks that server for LAST_INSERT_ID(). The account
	// may have other connections, as of the proxy's probe.
	var gone string
	server := e.Servers[1].DB(t, "")
	if err := server.QueryRow("SELECT id FROM information_schema.processlist WHERE user = ? AND db = ?", e.User, e.Schemas[1]).Scan(&gone); err != nil {
		t.Fatal(err)
	}
	w.query("USE " + e.Schemas[0])
	time.Sleep(400 * time.Millisecond)
	e.Servers[1].Exec(t, "KILL "+gone)
	eventually(t, "the connection is gone", func() bool { return !strings.Contains(","+e.connections(e.Servers[1]), ","+gone+" ") })
	w.ping("the end of the other connection")
	w.query("USE " + e.Schemas[1])
	if got := w.rows("SELECT @x, @@port"); fmt.Sprint(got) != fmt.Sprint([]string{"7", e.port(1)}) {
		t.Errorf("on the shard again: got %v, want 7 and port %s", got, e.port(1))
	}
	if got := w.backendID(); got == gone {
		t.Errorf("on the shard again: got connection %s, want another", got)
	}
}

func TestACommandThatComesWithTheEndOfTheBackendConnectionIsNotLost(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	id := w.backendID()
	time.Sleep(400 * time.Millisecond)
	ping := packet(command(protocol.ComPing, ""))
	w.send(ping[:3]) // the beginning of a command
	e.Servers[0].Exec(t, "KILL "+id)
	if got := w.ended(); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
}
