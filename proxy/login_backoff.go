package proxy

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.uber.org/zap"

	"seqproxy/protocol"
)

// failedLogins slows down whoever guesses passwords: behind a number of failures every
// login from the same address waits before it is judged, longer after each. A login that
// succeeds, and time, make up for failures. Other addresses notice nothing.
//
// An address of IPv6 stands for its network of 64 bits, which one host may have whole.
type failedLogins struct {
	some atomic.Bool // there may be an address with failures: else no lock is taken

	mu sync.Mutex // guards what follows
	by *simplelru.LRU[netip.Prefix, *failures]
}

// failureRules say what failures cost.
type failureRules struct {
	free    int           // those that cost nothing; 0: none costs anything
	longest time.Duration // a wait is never longer
	exempt  []netip.Prefix
}

func newFailureRules(o *Options) failureRules {
	return failureRules{free: o.FailedLogins, longest: min(o.FailedLoginDelay, o.LoginTimeout/2), exempt: o.FailedLoginExempt}
}

// failures is what an address has done.
type failures struct {
	count   int
	since   time.Time // one is forgotten with each forgetEvery from here on
	waiting int       // logins that wait now
}

const (
	// maxFailing bounds the addresses that are remembered; the one that failed longest
	// ago is forgotten first. It is about a megabyte.
	maxFailing = 8192
	// forgetEvery is how long it takes until one failure of an address is forgotten.
	forgetEvery = time.Minute
	// maxFailures is where counting ends: an hour without a failure forgets all.
	maxFailures = 60
	// firstDelay is the first wait; each further failure doubles it.
	firstDelay = 100 * time.Millisecond
	// maxDelayed bounds the logins of one address that wait at the same time. Without it
	// guesses made side by side would be as many as ever.
	maxDelayed = 16
)

func newFailedLogins() *failedLogins {
	by, err := simplelru.NewLRU[netip.Prefix, *failures](maxFailing, nil)
	if err != nil {
		panic(err) // for a size below 1 only
	}
	return &failedLogins{by: by}
}

// network is what failures of a client are counted for; not valid if they are not.
func (r *failureRules) network(addr net.Addr) netip.Prefix {
	p, exempt := r.source(addr)
	if r.free <= 0 || exempt {
		return netip.Prefix{}
	}
	return p
}

// source is the address that a client comes from, or its network, and whether that is
// exempt; not valid if it is no address of a network.
func (r *failureRules) source(addr net.Addr) (p netip.Prefix, exempt bool) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return p, false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ = ip.Prefix(bits)
	return p, slices.ContainsFunc(r.exempt, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// forget lets time make up for failures.
func (e *failures) forget(now time.Time) {
	if n := int(now.Sub(e.since) / forgetEvery); n > 0 {
		e.count = max(0, e.count-n)
		e.since = e.since.Add(time.Duration(n) * forgetEvery)
	}
}

// delay is how long a login of the address has to wait now. If that is not 0, done has to
// be called when it has; refused says that there are too many that wait.
func (f *failedLogins) delay(r *failureRules, p netip.Prefix, now time.Time) (wait time.Duration, done func(), refused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.by.Peek(p)
	if !ok {
		return 0, nil, false
	}
	e.forget(now)
	if e.count < r.free {
		return 0, nil, false
	}
	if e.waiting >= maxDelayed {
		return 0, nil, true
	}
	e.waiting++
	wait = r.longest
	if doublings := e.count - r.free; doublings < 16 {
		wait = min(wait, firstDelay<<doublings)
	}
	return wait, func() {
		f.mu.Lock()
		e.waiting--
		f.mu.Unlock()
	}, false
}

// failed counts a failure; first says that logins of the address wait from now on.
func (f *failedLogins) failed(r *failureRules, p netip.Prefix, now time.Time) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.some.Store(true)
	e, ok := f.by.Get(p)
	if !ok {
		e = &failures{since: now}
		f.by.Add(p, e)
	}
	e.forget(now)
	if e.count == 0 {
		e.since = now
	}
	e.count = min(e.count+1, r.free+maxFailures)
	return e.count == r.free
}

// succeeded forgets what an address has done.
func (f *failedLogins) succeeded(p netip.Prefix) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by.Remove(p)
	f.some.Store(f.by.Len() > 0)
}

// backOff makes a login wait that was received and not yet judged, if its address has
// failed too often. An error is the end of the session, and the client has its answer.
func (s *session) backOff() error {
	f, rules := s.srv.failed, &s.set.failures
	if !f.some.Load() {
		return nil
	}
	p := rules.network(s.client.RemoteAddr())
	if !p.IsValid() {
		return nil
	}
	wait, done, refused := f.delay(rules, p, time.Now())
	if refused {
		s.packetNum = s.client.PacketNum()
		err := &loginRefused{sqlError(mysql.ER_HOST_IS_BLOCKED, "HY000",
			"Host '%.64s' is blocked because of many connection errors (seqproxy: failed logins; try again later)", protocol.HostOf(s.client.RemoteAddr()))}
		s.refuseLogin(err)
		return err
	}
	if wait == 0 {
		return nil
	}
	defer done()
	queued := s.queue != nil
	s.leaveLogin() // others need not wait for this one
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.srv.stopping:
		return errShutdown
	case <-s.ctx.Done():
		return errClientGone
	}
	until := time.Now().Add(s.set.LoginTimeout)
	if queued {
		if err := s.enterLogin(until); err != nil {
			s.packetNum = s.client.PacketNum()
			s.refuseLogin(err)
			return err
		}
	}
	return s.setDeadline(until)
}

// judged takes note of how a login was judged.
func (s *session) judged(err error) {
	f, rules := s.srv.failed, &s.set.failures
	if err == nil && !f.some.Load() {
		return
	}
	if err != nil && !isFailure(err) {
		return
	}
	p := rules.network(s.client.RemoteAddr())
	switch {
	case !p.IsValid():
	case err == nil:
		f.succeeded(p)
	case f.failed(rules, p, time.Now()):
		s.srv.log.Warn("logins delayed", zap.Stringer("network", p))
	}
}

// isFailure says whether a login failed by what the client has done: a password that was
// refused, or a dialogue with the server that the client has not gone through with.
func isFailure(err error) bool {
	var auth *protocol.AuthError
	var relayed *protocol.RelayError
	return errors.As(err, &auth) || errors.As(err, &relayed) && !relayed.Unsupported
}
