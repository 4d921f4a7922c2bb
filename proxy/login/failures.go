package login

import (
	"hash/maphash"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Failures slows down guessing of passwords: after a number of failures every login from the same
// address waits before it is judged, longer each time. A successful login, and time, make up for
// failures. Other addresses are not affected. Failures for one user from an address count beside
// all from there: only that user's success makes up for them.
//
// An IPv6 address stands for its network of 64 bits, since one host may have all of it.
type Failures struct {
	some atomic.Bool // false: no address has failures, and no lock is needed
	seed maphash.Seed

	mu sync.Mutex // guards the fields below
	by *simplelru.LRU[source, *failures]
}

// source is an address, or one user's name from there.
type source struct {
	network netip.Prefix
	user    uint64 // hash of the name; 0: all users
}

// sources returns what a login counts for.
func (f *Failures) sources(p netip.Prefix, user string) [2]source {
	return [...]source{{p, 0}, {p, maphash.String(f.seed, user)}}
}

// Rules are the cost of failures.
type Rules struct {
	free    int           // failures without a cost; 0: none has a cost
	longest time.Duration // bounds a wait
	exempt  []netip.Prefix
}

// NewRules returns rules by which the first free failures of an address cost nothing. With 0 no
// failure does. longest bounds a wait, and exempt addresses never wait.
func NewRules(free int, longest time.Duration, exempt []netip.Prefix) Rules {
	return Rules{free: free, longest: longest, exempt: exempt}
}

// Any reports whether any address has failed. It takes no lock.
func (f *Failures) Any() bool { return f.some.Load() }

// failures is the record of a source.
type failures struct {
	count   int
	since   time.Time // each forgetEvery since then removes a failure
	waiting int       // logins that wait at present
}

const (
	// maxFailing bounds the sources with a record. The record of the longest ago goes first. All
	// together take about a megabyte.
	maxFailing = 8192
	// forgetEvery is how long it takes to forget one failure of a source.
	forgetEvery = time.Minute
	// maxFailures is where counting ends: an hour without a failure forgets all.
	maxFailures = 60
	// firstDelay is the first wait. Each further failure doubles it.
	firstDelay = 100 * time.Millisecond
	// maxDelayed bounds the logins of one source that wait at the same time. Otherwise parallel
	// guesses would be as many as ever.
	maxDelayed = 16
)

func NewFailures() *Failures {
	by, err := simplelru.NewLRU[source, *failures](maxFailing, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &Failures{seed: maphash.MakeSeed(), by: by}
}

// Network returns the network that a client's failures count for. It is invalid if they do not
// count.
func (r *Rules) Network(addr net.Addr) netip.Prefix {
	p, exempt := r.Source(addr)
	if r.free <= 0 || exempt {
		return netip.Prefix{}
	}
	return p
}

// Source returns the address that a client comes from, or its network, and whether that is exempt.
// It is invalid for other kinds of addresses.
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

// forget removes failures as time has passed.
func (e *failures) forget(now time.Time) {
	if n := int(now.Sub(e.since) / forgetEvery); n > 0 {
		e.count = max(0, e.count-n)
		e.since = e.since.Add(time.Duration(n) * forgetEvery)
	}
}

// Delay returns how long a login of a user from the address must wait now. If that is not 0, the
// caller calls done afterwards. refused reports whether too many wait already.
func (f *Failures) Delay(r *Rules, p netip.Prefix, user string, now time.Time) (wait time.Duration, done func(), refused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var slowed []*failures
	for _, from := range f.sources(p, user) {
		e, ok := f.by.Peek(from)
		if !ok {
			continue
		}
		if e.forget(now); e.count < r.free {
			continue
		}
		if e.waiting >= maxDelayed {
			return 0, nil, true
		}
		slowed = append(slowed, e)
		wait = max(wait, r.wait(e.count))
	}
	for _, e := range slowed {
		e.waiting++
	}
	return wait, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range slowed {
			e.waiting--
		}
	}, false
}

// wait returns the wait after so many failures, which cost something.
func (r *Rules) wait(failures int) time.Duration {
	if doublings := failures - r.free; doublings < 16 {
		return min(r.longest, firstDelay<<doublings)
	}
	return r.longest
}

// Failed counts a failure. first reports whether more logins wait from now on.
func (f *Failures) Failed(r *Rules, p netip.Prefix, user string, now time.Time) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.some.Store(true)
	for _, from := range f.sources(p, user) {
		e, ok := f.by.Get(from)
		if !ok {
			e = &failures{since: now}
			f.by.Add(from, e)
		}
		e.forget(now)
		if e.count == 0 {
			e.since = now
		}
		e.count = min(e.count+1, r.free+maxFailures)
		first = first || e.count == r.free
	}
	return first
}

// Succeeded forgets the failures of an address, except those for other users.
func (f *Failures) Succeeded(p netip.Prefix, user string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, from := range f.sources(p, user) {
		f.by.Remove(from)
	}
	f.some.Store(f.by.Len() > 0)
}
