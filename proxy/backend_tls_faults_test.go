package proxy_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/tlsfiles"
	"seqproxy/test/mysqltest"
)

// greeter relays a server's greeting, and answers what comes next with fixed bytes. It keeps what
// it receives.
type greeter struct {
	listener net.Listener
	answer   []byte // nil: no answer, and the connection stays open
	wait     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn   // guarded by mu
	sent  bytes.Buffer // guarded by mu
}

func newGreeter(t *testing.T, server string, answer []byte) *greeter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &greeter{listener: l, answer: answer}
	g.wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			g.conns = append(g.conns, c)
			g.mu.Unlock()
			g.wait.Go(func() { g.serve(c, server) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.mu.Lock()
		for _, c := range g.conns {
			c.Close()
		}
		g.mu.Unlock()
		g.wait.Wait()
	})
	return g
}

func (g *greeter) serve(c net.Conn, server string) {
	defer c.Close()
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	b := make([]byte, 4096)
	n, err := up.Read(b)
	up.Close()
	if err != nil {
		return
	}
	if _, err := c.Write(b[:n]); err != nil {
		return
	}
	for {
		n, err := c.Read(b)
		g.mu.Lock()
		g.sent.Write(b[:n])
		g.mu.Unlock()
		if err != nil {
			return
		}
		if g.answer != nil {
			_, _ = c.Write(g.answer)
			_, _ = io.Copy(io.Discard, c)
			return
		}
	}
}

// Checklist 9.
func TestAHandshakeThatFailsIsNeverFollowedByALoginInPlain(t *testing.T) {
	const limit = 1500 * time.Millisecond // a busy machine needs this long to ask for TLS
	ca := mysqltest.NewCA(t)
	s := mysqltest.Start(t, ca.Server(t, "127.0.0.1").ServerArgs(ca)...)
	for name, answer := range map[string][]byte{
		"no TLS":  []byte("\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"), // an OK
		"alert":   []byte("\x15\x03\x03\x00\x02\x02\x28"),                 // handshake_failure
		"silence": nil,
	} {
		t.Run(name, func(t *testing.T) {
			g := newGreeter(t, s.Addr(), answer)
			e := newEnv(t, setup{Servers: []*mysqltest.Server{s}, Backend: func(o *backend.Options) {
				o.ConnectTimeout = limit
				o.Shards[0].Nodes = []string{g.listener.Addr().String()}
				o.Shards[0].Security = secured(t, tlsfiles.ClientFiles{Mode: tlsfiles.Preferred})
			}})
			c := e.Conn(t, "", nil)
			wantErrorInTime(t, c, 1429, "SELECT 1", "shard s0: node "+g.listener.Addr().String()+" cannot be used: ")
			wantErrorInTime(t, c, 1429, "SELECT 1")
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.sent.Len() == 0 {
				t.Error("the proxy did not ask for TLS")
			}
			if bytes.Contains(g.sent.Bytes(), []byte(e.User)) {
				t.Error("the user's name was sent in plain")
			}
		})
	}
}
