package proxy_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/proxy"
)

// loginFrom logs in from an address of this machine, and returns how long that took.
func (e *env) loginFrom(t testing.TB, ip string, change func(*mysql.Config)) (time.Duration, error) {
	t.Helper()
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	config := e.config(e.Addr(), "", change)
	config.DialFunc = from.DialContext
	start := time.Now()
	err := ping(t, config)
	return time.Since(start), err
}

// awaitRefused waits until the log has n refused logins.
func (e *env) awaitRefused(t testing.TB, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the log has %d refused logins", n), func() bool {
		return e.Logs.FilterMessage("login refused").Len() >= n
	})
}

// slowDown fails so many logins from an address that the next one waits for the longest time. A
// single failure must already cause a wait.
func (e *env) slowDown(t testing.TB, ip string) {
	t.Helper()
	fail := func() {
		_, err := e.loginFrom(t, ip, wrongPassword)
		checkError(t, "wrong password", err, 1045)
	}
	fail()
	e.awaitRefused(t, 1)
	const further = 10
	var all sync.WaitGroup
	for range further { // at the same time they wait for the shortest time
		all.Go(fail)
	}
	all.Wait()
	e.awaitRefused(t, 1+further)
}

func wrongPassword(c *mysql.Config) { c.Passwd = "wrong" }

func TestLoginsAreDelayedWhereManyHaveFailed(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.FailedLogins, o.FailedLoginDelay = 3, 400*time.Millisecond
	}})
	const guesser, other = "127.0.0.2", "127.0.0.3"
	refused := 0
	fail := func() time.Duration {
		t.Helper()
		took, err := e.loginFrom(t, guesser, wrongPassword)
		checkError(t, "wrong password", err, 1045, "'"+guesser+"'")
		refused++
		e.awaitRefused(t, refused) // the proxy counts a moment after the answer
		return took
	}
	delayed := func() int { return e.Logs.FilterMessage("logins delayed").Len() }
	for range 3 {
		fail()
	}
	// Health checks without a login are no failures.
	for range 20 {
		nc, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(other)}}).Dial("tcp", e.Addr())
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	var waited []time.Duration
	for range 4 {
		waited = append(waited, fail())
	}
	for i, least := range []time.Duration{100, 200, 400, 400} {
		if least *= time.Millisecond; waited[i] < least {
			t.Errorf("failure %d: got its answer after %s, want %s or more", 3+i+1, waited[i], least)
		}
	}
	// The right password waits as well, because the wait would tell which one is right; it ends the
	// waits.
	if took, err := e.loginFrom(t, guesser, nil); err != nil || took < 400*time.Millisecond {
		t.Errorf("right password: got error %v after %s, want none, after 400ms", err, took)
	}
	if n := delayed(); n != 1 {
		t.Errorf("the log has %d lines about delayed logins, want 1", n)
	}
	for range 3 {
		fail()
	}
	if n := delayed(); n != 2 {
		t.Errorf("after a login that succeeded, and as many failures as at first, the log has %d lines about delayed logins, want 2", n)
	}
}

func TestTooManyDelayedLoginsOfAnAddressAreRefused(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.FailedLogins, o.FailedLoginDelay = 1, 5*time.Second // all logins come within this time
	}})
	const guesser = "127.0.0.2"
	e.slowDown(t, guesser)
	var wg sync.WaitGroup
	errs := make(chan error, 24)
	for range cap(errs) {
		wg.Go(func() {
			_, err := e.loginFrom(t, guesser, wrongPassword)
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	blocked, denied := 0, 0
	for err := range errs {
		switch text := fmt.Sprint(err); {
		case strings.Contains(text, "Error 1129") && strings.Contains(text, "'127.0.0.2' is blocked"):
			blocked++
		case strings.Contains(text, "Error 1045"):
			denied++
		default:
			t.Errorf("got %s, want 1129 or 1045", text)
		}
	}
	if blocked != 8 || denied != 16 {
		t.Errorf("of 24 logins at the same time %d were refused at once and %d checked, want 8 and 16", blocked, denied)
	}
}

// An application with an old password may share its address with an admin.
func TestTheAdminAddressCountsFailuresOfItsOwn(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: func(o *proxy.Options) {
		o.LoginTimeout = 2 * time.Minute
		o.FailedLogins, o.FailedLoginDelay = 1, time.Minute // longer than a client waits for its answer
	}})
	e.slowDown(t, "127.0.0.1")
	atAdmin := func(change func(*mysql.Config)) error { return ping(t, e.config(e.AdminAddr(), "", change)) }
	if err := atAdmin(nil); err != nil {
		t.Errorf("an admin, behind failures where clients connect: %v", err)
	}
	refused := e.Logs.FilterMessage("login refused").Len()
	checkError(t, "wrong password at the admin address", atAdmin(wrongPassword), 1045)
	e.awaitRefused(t, refused+1)
	if n := e.Logs.FilterMessage("logins delayed").Len(); n != 2 {
		t.Errorf("the log has %d lines about delayed logins, want one for each address", n)
	}
}

func TestChangesOfUserCountAsLogins(t *testing.T) {
	for name, relay := range map[string]bool{"known to the proxy": false, "known to the server": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
				if relay {
					byServer(o)
				}
				o.FailedLogins, o.FailedLoginDelay = 2, 300*time.Millisecond
			}})
			first, second, third := e.Wire(t, e.Addr(), wireLogin{}), e.Wire(t, e.Addr(), wireLogin{}), e.Wire(t, e.Addr(), wireLogin{})
			for i, w := range []*wire{first, second} {
				if refusal := serverError(t, w.change(e.User, "wrong", "", "")); refusal.Code != 1045 {
					t.Errorf("change of user with a wrong password: got %v, want 1045", refusal)
				}
				e.awaitRefused(t, i+1)
			}
			start := time.Now()
			if got := third.change(e.User, e.Password, "", ""); got[4] != 0 {
				t.Errorf("change of user with the right password: got %q, want OK", got)
			}
			if took := time.Since(start); took < 100*time.Millisecond {
				t.Errorf("change of user after two failures: got its answer after %s, want 100ms or more", took)
			}
			third.ping("a change of user that waited")
		})
	}
}

func TestADelayedLoginIsInNobodysWayAndEndsWithItsClientAndWithTheProxy(t *testing.T) {
	const guesser, other, exempt = "127.0.0.2", "127.0.0.3", "127.0.0.4"
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.LoginTimeout = 2 * time.Minute
		o.FailedLogins, o.FailedLoginDelay = 1, time.Minute
		o.FailedLoginExempt = []netip.Prefix{netip.MustParsePrefix(exempt + "/32")}
		o.MaxLogins = 1
	}})
	e.slowDown(t, guesser)
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(guesser)}}
	pool := e.DB(t, "", func(c *mysql.Config) {
		wrongPassword(c)
		c.DialFunc = from.DialContext
	})
	pool.SetMaxOpenConns(1)
	login := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() { done <- pool.PingContext(ctx) }()
		e.awaitSessions(t, 1)
		return done
	}
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	done := login(ctx)
	if _, err := e.loginFrom(t, other, nil); err != nil {
		t.Errorf("login from another address: %v", err)
	}
	for range 12 {
		_, err := e.loginFrom(t, exempt, wrongPassword)
		checkError(t, "wrong password", err, 1045, "'"+exempt+"'")
	}
	if _, err := e.loginFrom(t, exempt, nil); err != nil {
		t.Errorf("login from an exempt address: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("the delayed login ended early with %v", err)
	default:
	}
	giveUp()
	e.awaitSessions(t, 0)
	done = login(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), wireTimeout)
	defer cancel()
	if err := e.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("a delayed login with a wrong password: got no error, want one")
	}
}
