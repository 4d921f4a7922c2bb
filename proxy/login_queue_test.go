package proxy_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"seqproxy/proxy"
)

// silent connects and logs in only as far as the greeting, which it waits for.
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
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.MaxLogins, o.LoginTimeout = 2, 5*time.Second }})
	e.Wire(t, e.Addr(), wireLogin{}).ping("a login") // sessions are not counted
	a, _ := silent(t, e.Addr()), silent(t, e.Addr())
	done := make(chan error, 1)
	go func() { done <- e.tryLogin(t, e.Addr(), "", nil) }()
	select {
	case err := <-done:
		t.Fatalf("a third login ended with %v while two others were going on", err)
	case <-time.After(200 * time.Millisecond):
	}
	a.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("login after its turn has come: %v", err)
		}
	case <-time.After(4 * time.Second):
		t.Error("the third login goes on waiting though one of the others has ended")
	}
}

func TestALoginThatWaitsForItsTurnEndsWithTheProxy(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.MaxLogins, o.LoginTimeout = 1, time.Minute }})
	silent(t, e.Addr())
	dialTCP(t, e.Addr())
	e.awaitSessions(t, 2)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := e.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
