package login

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

func rulesOf(free int) *Rules {
	r := NewRules(free, 5*time.Second, nil)
	return &r
}

func TestFailedLoginsAreForgottenWithTime(t *testing.T) {
	f, rules, now := NewFailures(), rulesOf(3), time.Unix(1_800_000_000, 0)
	p := netip.MustParsePrefix("192.0.2.7/32")
	delay := func() time.Duration {
		d, done, _ := f.Delay(rules, p, "app", now)
		if done != nil {
			done()
		}
		return d
	}
	for range 5 {
		f.Failed(rules, p, "app", now)
	}
	for _, step := range []struct {
		after time.Duration
		want  time.Duration
	}{
		{0, 400 * time.Millisecond},
		{59 * time.Second, 400 * time.Millisecond},
		{time.Second, 200 * time.Millisecond},
		{time.Minute, 100 * time.Millisecond},
		{time.Minute, 0},
		{time.Hour, 0},
	} {
		now = now.Add(step.after)
		if got := delay(); got != step.want {
			t.Errorf("%s later: got a delay of %s, want %s", step.after, got, step.want)
		}
	}
	// An hour ends the delays, however many failures there were, and no delay exceeds the longest.
	for range 1000 {
		f.Failed(rules, p, "app", now)
	}
	if got := delay(); got != 5*time.Second {
		t.Errorf("after 1000 failures: got a delay of %s, want 5s", got)
	}
	if now = now.Add(time.Hour + time.Minute); delay() != 0 {
		t.Errorf("an hour after 1000 failures: got a delay of %s, want none", delay())
	}
	// One failure a minute, as of a health check with a wrong password, never leads to a delay.
	for range 100 {
		now = now.Add(time.Minute)
		f.Failed(rules, p, "app", now)
		if delay() != 0 {
			t.Fatal("one failure a minute led to a delay")
		}
	}
}

// Whoever knows one password does not get guesses of another for it.
func TestASuccessMakesUpForNoFailuresOfOtherUsers(t *testing.T) {
	f, rules, now := NewFailures(), rulesOf(3), time.Now()
	p, other := netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("192.0.2.8/32")
	delay := func(p netip.Prefix, user string) time.Duration {
		d, done, refused := f.Delay(rules, p, user, now)
		if refused {
			t.Fatalf("%s from %s: refused", user, p)
		}
		if d > 0 {
			done()
		}
		return d
	}
	for round := range 20 {
		f.Failed(rules, p, "admin", now)
		f.Failed(rules, p, "admin", now)
		f.Succeeded(p, "app")
		if round == 0 && !f.Any() {
			t.Error("no failure is remembered")
		}
		if d := delay(p, "app"); d != 0 {
			t.Fatalf("round %d: app, whose login succeeds, waits %s", round, d)
		}
	}
	if d := delay(p, "admin"); d != rules.longest {
		t.Errorf("after 40 failures admin waits %s, want %s", d, rules.longest)
	}
	if d := delay(other, "admin"); d != 0 {
		t.Errorf("admin waits %s at another address, want 0", d)
	}
	f.Succeeded(p, "admin")
	if d := delay(p, "admin"); d != 0 || f.Any() {
		t.Errorf("after its success admin waits %s, want 0; any failures: %v", d, f.Any())
	}
	// Before a success everyone from the address waits, as the guesser has not proved who he is.
	for range 3 {
		f.Failed(rules, p, "admin", now)
	}
	if d := delay(p, "app"); d != firstDelay {
		t.Errorf("after failures alone app waits %s, want %s", d, firstDelay)
	}
}

func TestAddressesWithFailedLoginsAreBounded(t *testing.T) {
	f, rules, now := NewFailures(), rulesOf(1), time.Now()
	for i := range 3 * maxFailing {
		f.Failed(rules, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32), "app", now)
	}
	if got := f.by.Len(); got != maxFailing {
		t.Errorf("got %d addresses remembered, want %d", got, maxFailing)
	}
}

func TestAnAddressIsANetworkOf64BitsWithIPv6(t *testing.T) {
	rules := rulesOf(1)
	rules.exempt = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for addr, want := range map[string]string{
		"192.0.2.7":              "192.0.2.7/32",
		"::ffff:192.0.2.7":       "192.0.2.7/32",
		"2001:db8:1:2:3:4:5:6":   "2001:db8:1:2::/64",
		"2001:db8:1:2:9999::1":   "2001:db8:1:2::/64",
		"fe80::1%eth0":           "fe80::/64",
		"10.1.2.3":               "invalid Prefix",
		"::ffff:10.1.2.3":        "invalid Prefix",
		"2001:db8:1:3:3:4:5:6":   "2001:db8:1:3::/64",
		"2001:db8:ffff:ffff::10": "2001:db8:ffff:ffff::/64",
	} {
		got := rules.Network(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 99)))
		if got.String() != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
	if got := rules.Network(&net.UnixAddr{Name: "x", Net: "unix"}); got.IsValid() {
		t.Errorf("a Unix socket: got %s, want none", got)
	}
}
