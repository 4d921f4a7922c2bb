package login

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Failures slows down whoever guesses passwords: behind a number of failures every
// login from the same address waits before it is judged, longer after each. A login that
// succeeds, and time, make up for failures. Other addresses notice nothing.
//
// An address of IPv6 stands for its network of 64 bits, which one host may have whole.
type Failures struct {
	some atomic.Bool // there may be an address with failures: else no lock is taken

	mu sync.Mutex // guards what follows
	by *simplelru.LRU[netip.Prefix, *failures]
}

// Rules say what failures cost.
type Rules struct {
	free    int           // those that cost nothing; 0: none costs anything
	longest time.Duration // a wait is never longer
	exempt  []netip.Prefix
}

// NewRules are rules by which free failures of an address cost nothing, 0: none ever does. A wait
// is never longer than longest, and there is none for addresses that are exempt.
func NewRules(free int, longest time.Duration, exempt []netip.Prefix) Rules {
	return Rules{free: free, longest: longest, exempt: exempt}
}

// Any says whether any address has failed. It takes no lock.
func (f *Failures) Any() bool { return f.some.Load() }

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

func NewFailures() *Failures {
	by, err := simplelru.NewLRU[netip.Prefix, *failures](maxFailing, nil)
	if err != nil {
		panic(err) // for a size below 1 only
	}
	return &Failures{by: by}
}

// Network is what failures of a client are counted for; not valid if they are not.
func (r *Rules) Network(addr net.Addr) netip.Prefix {
	p, exempt := r.Source(addr)
	if r.free <= 0 || exempt {
		return netip.Prefix{}
	}
	return p
}

// Source is the address that a client comes from, or its network, and whether that is
// exempt; not valid if it is no address of a network.
func (r *Rules) Source(addr net.Addr) (p netip.Prefix, exempt bool) {
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

// Delay is how long a login of the address has to wait now. If that is not 0, done has to
// be called when it has; refused says that there are too many that wait.
func (f *Failures) Delay(r *Rules, p netip.Prefix, now time.Time) (wait time.Duration, done func(), refused bool) {
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

// Failed counts a failure; first says that logins of the address wait from now on.
func (f *Failures) Failed(r *Rules, p netip.Prefix, now time.Time) (first bool) {
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

// Succeeded forgets what an address has done.
func (f *Failures) Succeeded(p netip.Prefix) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by.Remove(p)
	f.some.Store(f.by.Len() > 0)
}
