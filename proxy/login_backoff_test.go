package proxy_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/proxy"
)

// loginFrom logs in from an address of this machine, and says how long that took.
func (e *env) loginFrom(t testing.TB, ip string, change func(*mysql.Config)) (time.Duration, error) {
	t.Helper()
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	config := e.config(e.Addr(), "", change)
	config.DialFunc = from.DialContext
	start := time.Now()
	err := ping(t, config)
	return time.Since(start), err
}

// awaitRefused waits until the log tells of n logins that were refused.
func (e *env) awaitRefused(t testing.TB, n int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if e.Logs.FilterMessage("login refused").Len() >= n {
			return
		}
	}
	t.Errorf("the log does not tell of %d logins that were refused", n)
}

func wrongPassword(c *mysql.Config) { c.Passwd = "wrong" }

func TestLoginsAreDelayedWhereManyHaveFailed(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.FailedLogins, o.FailedLoginDelay = 3, 400*time.Millisecond
		o.FailedLoginExempt = []netip.Prefix{netip.MustParsePrefix("127.0.0.4/32")}
		o.MaxLogins = 1 // a login that is delayed must not be in the others' way
	}})
	var refused atomic.Int32
	const guesser, other, exempt = "127.0.0.2", "127.0.0.3", "127.0.0.4"
	fail := func(ip string) time.Duration {
		t.Helper()
		took, err := e.loginFrom(t, ip, wrongPassword)
		checkError(t, "wrong password", err, 1045, "'"+ip+"'")
		e.awaitRefused(t, int(refused.Add(1))) // it counts a moment after the answer
		return took
	}
	for range 3 {
		fail(guesser)
	}
	// Checks that come and go are no failures.
	for range 20 {
		nc, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(other)}}).Dial("tcp", e.Addr())
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	var waited []time.Duration
	for range 4 {
		waited = append(waited, fail(guesser))
	}
	for i, least := range []time.Duration{100, 200, 400, 400} {
		if least *= time.Millisecond; waited[i] < least {
			t.Errorf("failure %d: got its answer after %s, want %s or more", 3+i+1, waited[i], least)
		}
	}
	// While one of the guesser's waits, others do not.
	var wg sync.WaitGroup
	wg.Go(func() { fail(guesser) })
	time.Sleep(100 * time.Millisecond)
	if took, err := e.loginFrom(t, other, nil); err != nil || took >= 300*time.Millisecond {
		t.Errorf("login from another address: got error %v after %s, want none, at once", err, took)
	}
	wg.Wait()
	for range 6 {
		fail(exempt)
	}
	if took, err := e.loginFrom(t, exempt, nil); err != nil || took >= 100*time.Millisecond {
		t.Errorf("login from an exempt address: got error %v after %s, want none, at once", err, took)
	}
	// The right password waits as well, or the wait would tell which it is; and ends it.
	if took, err := e.loginFrom(t, guesser, nil); err != nil || took < 400*time.Millisecond {
		t.Errorf("right password: got error %v after %s, want none, after 400ms", err, took)
	}
	if took, err := e.loginFrom(t, guesser, nil); err != nil || took >= 400*time.Millisecond {
		t.Errorf("after a login that succeeded: got error %v after %s, want none, at once", err, took)
	}
	if n := e.Logs.FilterMessage("logins delayed").Len(); n != 1 {
		t.Errorf("the log tells of an address whose logins are delayed %d times, want once", n)
	}
}

func TestTooManyDelayedLoginsOfAnAddressAreRefused(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.FailedLogins, o.FailedLoginDelay = 1, 2*time.Second
	}})
	const guesser = "127.0.0.2"
	for range 6 { // up to 1.6 seconds
		_, _ = e.loginFrom(t, guesser, wrongPassword)
	}
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
		t.Errorf("of 24 logins side by side %d were refused at once and %d judged, want 8 and 16", blocked, denied)
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
				if told := serverError(t, w.change(e.User, "wrong", "", "")); told.Code != 1045 {
					t.Errorf("change of user with a wrong password: got %v, want 1045", told)
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

func TestADelayedLoginEndsWithItsClientAndWithTheProxy(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.LoginTimeout = 60 * time.Second
		o.FailedLogins, o.FailedLoginDelay = 1, 30*time.Second
	}})
	for range 8 { // then it is 12.8 seconds
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		pool := e.DB(t, "", wrongPassword)
		_ = pool.PingContext(ctx) // the client gives up
		cancel()
		e.awaitSessions(t, 0)
	}
	nc := dialTCP(t, e.Addr())
	defer nc.Close()
	go func() { _, _ = e.loginFrom(t, "127.0.0.1", wrongPassword) }()
	time.Sleep(50 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := e.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
