package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// silent connects, and returns a connection that has received the greeting and sends no login.
func silent(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc := dialTCP(t, addr)
	if _, err := io.ReadFull(nc, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return nc
}

// Checklist 2.
func TestLoginsAboveTheLimitWaitForTheirTurn(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.MaxLogins, o.LoginTimeout = 2, time.Minute }})
	e.Wire(t, e.Addr(), wireLogin{}).ping("a login") // the limit does not count sessions
	a, _ := silent(t, e.Addr()), silent(t, e.Addr())
	done := make(chan error, 1)
	go func() { done <- e.tryLogin(t, e.Addr(), "", nil) }()
	select {
	case err := <-done:
		t.Fatalf("a third login ended with %v during two others, want it to wait", err)
	case <-time.After(200 * time.Millisecond):
	}
	a.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("a login that has waited for its place: %v", err)
		}
	case <-time.After(wireTimeout):
		t.Error("the third login still waits after the end of another")
	}
}

func TestALoginThatWaitsForItsTurnEndsWithTheProxy(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.MaxLogins, o.LoginTimeout = 1, time.Minute }})
	silent(t, e.Addr())
	dialTCP(t, e.Addr())
	e.awaitSessions(t, 2)
	ctx, cancel := context.WithTimeout(context.Background(), wireTimeout)
	defer cancel()
	if err := e.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// A shard that hangs holds up the logins that name its schema, and no others.
func TestLoginsThatWaitForAShardLeaveTheirPlaces(t *testing.T) {
	still := mysqltest.Start(t)
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{mysqltest.Shared(t), still},
		Backend: func(o *backend.Options) { o.ConnectTimeout = wireTimeout },
		Proxy:   func(o *proxy.Options) { o.MaxLogins, o.LoginTimeout = 2, 2*wireTimeout },
	})
	goOn := mysqltest.StandStill(t, still.PID())
	const waiting = 4
	done := make(chan error, waiting)
	for range waiting {
		go func() { done <- e.tryLogin(t, e.Addr(), e.Schemas[1], nil) }()
	}
	e.awaitSessions(t, waiting)
	if err := e.tryLogin(t, e.Addr(), e.Schemas[0], nil); err != nil {
		t.Errorf("a login at the other shard: %v", err)
	}
	if n := len(done); n != 0 {
		t.Errorf("%d logins at the shard that stands still have ended", n)
	}
	goOn()
	for range waiting {
		if err := <-done; err != nil {
			t.Errorf("a login at the shard once it goes on: %v", err)
		}
	}
}

// Clients that wait to log in are connections. Those of one address leave some to the others.
func TestSilentClientsOfOneAddressDoNotTakeAllConnections(t *testing.T) {
	const silentOnes, connections, most = 100, 60, 55
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.MaxLogins, o.MaxConnections, o.LoginTimeout = 20, connections, time.Minute
	}})
	for range silentOnes {
		dialTCP(t, e.Addr())
	}
	var remain, refused int
	looks, before := 0, 0 // of which the last ones saw no further client refused
	if !eventually(t, "further clients are refused", func() bool {
		remain, refused = e.Proxy.Sessions(), int(ends(e.Proxy)["limit"])
		if looks++; refused != before {
			looks, before = 0, refused
		}
		return remain+refused == silentOnes && remain <= most && looks > 20
	}) {
		t.Fatalf("%d silent clients remain and %d were refused, want at most %d of %d to remain", remain, refused, most, silentOnes)
	}
	for range 5 {
		if _, err := e.loginFrom(t, "127.0.0.2", nil); err != nil {
			t.Errorf("login from another address: %v", err)
		}
	}
	if n := e.Proxy.Sessions(); n < remain {
		t.Errorf("%d silent clients remain, want %d: the logins waited for them", n, remain)
	}
}

// Clients that connect and send nothing do not block those of other addresses.
func TestSilentClientsOfOneAddressDoNotKeepOthersOut(t *testing.T) {
	const silentOnes = 60
	few := func(o *proxy.Options) { o.MaxLogins, o.LoginTimeout = 20, time.Minute }
	t.Run("direct", func(t *testing.T) {
		e := newEnv(t, setup{Proxy: few})
		for range silentOnes {
			dialTCP(t, e.Addr())
		}
		e.awaitSessions(t, silentOnes)
		for range 5 {
			if _, err := e.loginFrom(t, "127.0.0.2", nil); err != nil {
				t.Errorf("login from another address: %v", err)
			}
		}
		if n := e.Proxy.Sessions(); n < silentOnes {
			t.Errorf("%d of %d silent clients remain, want all: the logins waited for them", n, silentOnes)
		}
	})
	t.Run("behind a balancer", func(t *testing.T) {
		e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
			few(o)
			fromThisMachine(o)
		}})
		through := func(ctx context.Context, client string) (net.Conn, error) {
			nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", e.Addr())
			if err == nil {
				_, err = fmt.Fprintf(nc, "PROXY TCP4 %s 127.0.0.1 56324 4306\r\n", client)
			}
			return nc, err
		}
		for range silentOnes {
			nc, err := through(t.Context(), "192.0.2.7")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { nc.Close() })
		}
		e.awaitSessions(t, silentOnes)
		config := e.config(e.Addr(), "", nil)
		config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return through(ctx, "192.0.2.8") }
		for range 5 {
			if err := ping(t, config); err != nil {
				t.Errorf("login from another address: %v", err)
			}
		}
		if n := e.Proxy.Sessions(); n < silentOnes {
			t.Errorf("%d of %d silent clients remain, want all: the logins waited for them", n, silentOnes)
		}
	})
}
