package proxy_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// refusal logs in and returns the server's error.
func (e *env) refusal(t testing.TB, addr string, l wireLogin) *protocol.ServerError {
	t.Helper()
	_, err := e.tryWire(t, addr, l)
	var refused *protocol.ServerError
	if !errors.As(err, &refused) {
		t.Fatalf("login at %s: got error %v, want one of the server's", addr, err)
	}
	return refused
}

// reconnect logs in as soon as the place of a closed connection is free.
func (e *env) reconnect(t testing.TB, addr string, l wireLogin) *wire {
	t.Helper()
	var err error
	for end := time.Now().Add(wireTimeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var w *wire
		if w, err = e.tryWire(t, addr, l); err == nil {
			return w
		}
	}
	t.Fatalf("login at %s after a connection has ended: %v", addr, err)
	return nil
}

func TestAUsersConnectionsEndAtTheLimitAsOnTheServer(t *testing.T) {
	// Accounts with all rights have no limit.
	server := mysqltest.Start(t, "--max-user-connections=3")
	server.Exec(t, "ALTER USER CURRENT_USER() WITH MAX_USER_CONNECTIONS 100") // the connections of the test itself
	user, password := "few", "s3cret pässword"
	for name, c := range map[string]struct {
		limit string // of the account on the server that the test compares with
		most  int
		proxy func(*proxy.Options)
	}{
		"the account's own": {"WITH MAX_USER_CONNECTIONS 2", 2, func(o *proxy.Options) {
			o.MaxUserConnections = 7
			o.Users = append(o.Users, proxy.User{Name: user, Password: password, MaxConnections: 2})
		}},
		"all accounts'": {"", 3, func(o *proxy.Options) {
			o.MaxUserConnections = 3
			o.Users = append(o.Users, proxy.User{Name: user, Password: password})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: c.proxy})
			server.Exec(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s' %s", user, password, c.limit))
			t.Cleanup(func() { server.Exec(t, "DROP USER "+user) })
			login := wireLogin{User: &user, Password: &password, Capabilities: allFraming &^ protocol.SessionTrack}
			var refused [2]*protocol.ServerError
			var again, into [2][]byte // answers to a change of user: to the same user, and from another
			for i, addr := range []string{e.Addr(), server.Addr()} {
				var all []*wire
				for range c.most {
					all = append(all, e.Wire(t, addr, login))
				}
				e.Wire(t, addr, wireLogin{}).ping("of another user") // another user's connection is not counted
				refused[i] = e.refusal(t, addr, login)

				all[0].send(packet(command(protocol.ComQuit, "")))
				all[0].ended()
				w := e.reconnect(t, addr, login)
				again[i] = numberedFrom(w.change(user, password, "", ""), 0)
				if again[i][4] == 0xff {
					w.ended()
					w = e.reconnect(t, addr, login)
				}
				into[i] = numberedFrom(e.Wire(t, addr, wireLogin{}).change(user, password, "", ""), 0)
				if got := w.change(e.User, e.Password, "", ""); got[4] != 0 {
					t.Fatalf("%s: change to another user: got %q", addr, got)
				}
				e.reconnect(t, addr, login) // its place is free then
				if refusal := e.refusal(t, addr, login); refusal.Code == 0 {
					t.Errorf("%s: one more login: got %v", addr, refusal)
				}
			}
			if *refused[0] != *refused[1] {
				t.Errorf("one login more: got %q, want %q as the server", refused[0], refused[1])
			}
			compare(t, "a change to the same user", again[0], again[1])
			compare(t, "a change from another user", into[0], into[1])
		})
	}
}

func TestUsersThatTheServerChecksAreCountedToo(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		byServer(o)
		o.MaxUserConnections = 2
	}})
	a := e.Wire(t, e.Addr(), wireLogin{})
	e.Wire(t, e.Addr(), wireLogin{})
	if refusal := e.refusal(t, e.Addr(), wireLogin{}); refusal.Code != 1203 {
		t.Errorf("third login: got %v, want 1203", refusal)
	}
	a.Close()
	e.reconnect(t, e.Addr(), wireLogin{}).ping("a place became free")
}
