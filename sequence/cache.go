package sequence

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Backoff of a reservation that failed, doubling from first to last.
const (
	firstBackoff = 10 * time.Millisecond
	lastBackoff  = time.Second

	frozenBackoff = 100 * time.Millisecond // the longest while the sequence is being restarted
)

// maxQueued bounds the segments that wait behind the current one without adjoining it.
const maxQueued = 64

// grant is a reserved segment and what the table said about its sequence.
type grant struct {
	seg   Segment
	max   uint64 // the highest number that the id column holds
	exact uint64 // the typed CACHE n, or 0 for adaptive
	rule  rule   // which numbers may follow
	cycle bool   // the sequence begins again at its end
}

// reserver takes numbers out of durable storage, and puts back those that were not used.
type reserver interface {
	// reserve returns a segment of at most want and at least need numbers, which are the caller's alone. If the outcome
	// of the commit is unknown it returns an error and the range is never used. Besides what the context brings, errors
	// are ErrUnknown, ErrExhausted (fewer than need are left), ErrUnfit, or temporary.
	reserve(ctx context.Context, name string, want, need uint64) (grant, error)
	// giveBack returns seg, the unused upper end of a reservation, if nobody has reserved since. It reports whether it did.
	// epoch is the one in which seg was in memory; if it is over, nothing is given back.
	giveBack(ctx context.Context, name string, epoch uint64, seg Segment) (bool, error)
}

// cache holds the numbers of one sequence and hands them out. Taking a number that is in memory is one short critical
// section, without I/O or allocation. At most one reservation is in flight; callers that find nothing wait for it
// in the order they came.
//
// The numbers that leave rise strictly: once a number has left, no smaller one does. A rest that is too short for a
// run is therefore skipped if the next segment does not adjoin it.
type cache struct {
	name     string // as the table spells it
	owner    *Sequences
	reserver reserver
	// reserving is held during a reservation: those of one counter must come back in order, whichever cache they are for.
	reserving *sync.Mutex
	exact     uint64        // guarded by mu; the typed CACHE n, or 0 for adaptive
	replaced  atomic.Uint64 // how often CREATE OR REPLACE here made another sequence of it

	mu     sync.Mutex
	cur    Segment   // numbers are taken from here
	queue  []Segment // segments behind cur, rising, adjoining neither cur nor each other
	held   uint64    // numbers in cur and queue
	low    uint64    // below this many held, the next segment is fetched
	given  uint64    // numbers handed out since the cache was made
	end    error     // not nil: gives nothing any more
	flying bool      // a reservation is in flight; its goroutine clears this
	first  *waiter   // callers without a number, in the order they came
	final  *waiter

	// What the reservations know; guarded by mu.
	pace     pace
	measured uint64  // given, when pace was last told
	size     uint64  // of the next segment
	rule     rule    // which numbers follow top
	limits   limits  // where the numbers end
	cycle    bool    // they begin again there
	advance  advance // of top
	warned   int     // how many of warnAt were crossed
	past     uint64  // numbers up to this one were given up
	version  uint64  // of the options that are obeyed

	generation uint64        // moves when a reservation that is in flight is void
	top        uint64        // the highest number reserved
	max        uint64        // the highest number that the sequence may give
	dry        bool          // nothing is left beyond what is held: no prefetch until somebody asks again
	resting    bool          // the server is unfit: no prefetch until the next take
	backoff    time.Duration // before the next attempt after a refusal; grows until a success
	lastErr    error         // why the reservation in flight was last refused; nil after a success
	failedAt   time.Time
	skipped    uint64
	waits      uint64
	fetches    uint64 // reservations begun while nobody waited
}

// waiter is a caller that waits for n consecutive numbers.
type waiter struct {
	n          uint64
	joinTried  bool // an exact cache has tried to complete the rest that it holds
	prev, next *waiter
	done       bool // guarded by cache.mu: first/err are set and it is off the list
	number     uint64
	step       uint64
	err        error
	ready      chan struct{} // closed when done
}

// newCache makes the cache of a sequence whose row was read as found. It starts nothing.
func newCache(owner *Sequences, found row) *cache {
	c := &cache{
		name: found.name, owner: owner, reserver: owner.reserver, reserving: new(sync.Mutex),
		exact: found.exact, top: found.position(), max: found.max,
		rule: found.rule(), limits: limitsOf(&found), past: found.past, version: found.version,
		pace: pace{base: owner.opts.CacheSize, cover: owner.opts.OutageCover},
	}
	c.replan(time.Now())
	c.low = 0 // nothing is fetched for a sequence that was only asked about
	return c
}

// take is takeRun for callers that know the step or need no other number.
func (c *cache) take(ctx context.Context, n uint64, patience time.Duration) (uint64, error) {
	first, _, err := c.takeRun(ctx, n, patience)
	return first, err
}

// takeRun returns the first of n consecutive numbers and the distance between them. It waits at most for patience or until ctx is
// done; numbers in memory are handed out without looking at ctx.
func (c *cache) takeRun(ctx context.Context, n uint64, patience time.Duration) (first, step uint64, err error) {
	c.mu.Lock()
	if c.end == nil && c.first == nil {
		// Callers that came earlier go first: otherwise single takes would starve a long run.
		if number, ok := c.takeLocked(n); ok {
			step := c.cur.step
			if c.held < c.low && !c.flying && !c.dry {
				c.flyLocked()
			}
			c.mu.Unlock()
			return number, step, nil
		}
	}
	if c.end != nil {
		defer c.mu.Unlock()
		return 0, 0, c.end
	}
	if c.flying && errors.Is(c.lastErr, ErrUnfit) {
		defer c.mu.Unlock()
		return 0, 0, c.lastErr // the reservation in flight pauses; the first take after that tries again
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	c.pushLocked(w)
	c.waits++
	if !c.flying {
		c.flyLocked()
	}
	c.mu.Unlock()
	return c.wait(ctx, w, patience)
}

// takeLocked takes n numbers from what is held, skipping rests that are too short.
func (c *cache) takeLocked(n uint64) (uint64, bool) {
	number, ok := c.cur.Take(n)
	if !ok {
		if len(c.queue) == 0 || !c.advanceLocked(n) {
			return 0, false
		}
		number, _ = c.cur.Take(n)
	}
	c.held -= n
	c.given += n
	c.resting = false
	return number, true
}

// advanceLocked makes the first queued segment with n numbers the current one. It changes nothing if there is none.
func (c *cache) advanceLocked(n uint64) bool {
	for i := range c.queue {
		if c.queue[i].Remaining() < n {
			continue
		}
		skip := c.cur.Remaining()
		for j := range i {
			skip += c.queue[j].Remaining()
		}
		c.skipped += skip
		c.held -= skip
		c.cur = c.queue[i]
		c.queue = append(c.queue[:0], c.queue[i+1:]...)
		return true
	}
	return false
}

// discardLocked gives up all that is held.
func (c *cache) discardLocked() {
	c.skipped += c.held
	c.held, c.cur, c.queue = 0, Segment{}, c.queue[:0]
}

// wait blocks until w is served, ctx is done or patience has run out.
func (c *cache) wait(ctx context.Context, w *waiter, patience time.Duration) (first, step uint64, err error) {
	begin := time.Now()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var cause error
	select {
	case <-w.ready:
		return w.number, w.step, w.err
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-timer.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.done { // served at the same moment: the numbers must not be lost
		return w.number, w.step, w.err
	}
	c.removeLocked(w)
	// The waiters behind this one may be satisfied with what it could not use.
	c.serveLocked()
	if cause == nil {
		if cause = c.lastErr; cause == nil {
			cause = c.owner.whyNot()
		}
		return 0, 0, &UnavailableError{Sequence: c.name, Server: c.owner.serverName(), Waited: time.Since(begin), Err: cause}
	}
	return 0, 0, cause
}

// flyLocked starts the goroutine that reserves until nothing is wanted. The caller has checked that none is in flight.
func (c *cache) flyLocked() {
	c.flying = true
	c.owner.spawn(c.fly)
}

// fly reserves segments, one at a time, until nothing is wanted or the cache has ended. A failure is retried with
// a growing backoff for as long as numbers are wanted, whether or not somebody still waits: so an outage heals by itself. An unfit
// server is asked again only if somebody has taken or waits for a number since: each attempt there may cost a gap.
func (c *cache) fly() {
	for {
		c.mu.Lock()
		want, need := c.demandLocked(time.Now())
		if want == 0 || c.end != nil {
			c.flying = false
			c.mu.Unlock()
			return
		}
		if c.first == nil {
			c.fetches++
		}
		c.mu.Unlock()

		c.reserving.Lock()
		c.mu.Lock()
		generation := c.generation
		c.mu.Unlock()
		g, err := c.reserver.reserve(c.owner.ctx, c.name, want, need)
		c.mu.Lock()
		if err == nil {
			c.healedLocked()
			if c.generation == generation {
				c.installLocked(g)
			} else {
				c.skipped += g.seg.Remaining()
			}
		}
		c.reserving.Unlock() // only now: who holds it knows of every number that was reserved
		if err == nil {
			c.mu.Unlock()
			continue
		}
		pause := c.failLocked(err)
		c.mu.Unlock()
		if pause > 0 {
			c.owner.sleep(jitter(pause)) // cut short by closing, which the next round sees
		}
	}
}

// jitter spreads d over its upper half, so that proxies which failed together do not come back together.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

// installLocked adds a reserved segment behind what is held and serves those who wait.
func (c *cache) installLocked(g grant) {
	c.exact, c.max, c.top = g.exact, g.max, g.seg.Last()
	if g.rule.step != 0 {
		c.rule, c.cycle = g.rule, g.cycle
	}
	c.watchEndLocked(time.Now())
	c.dry = false
	if c.first != nil {
		c.first.joinTried = true
	}
	c.held += g.seg.Remaining()
	switch {
	case c.cur.Remaining() == 0 && len(c.queue) == 0:
		c.cur = g.seg
	case len(c.queue) == 0 && c.cur.Join(g.seg):
	case len(c.queue) > 0 && c.queue[len(c.queue)-1].Join(g.seg):
	default:
		c.queue = append(c.queue, g.seg)
	}
	if c.cur.Remaining() == 0 {
		c.advanceLocked(1)
	}
	if c.end != nil {
		return // closed meanwhile: kept, so that it can be given back
	}
	c.serveLocked()
	if c.exact > 0 {
		// CACHE n may have been typed after this reservation was sized: what exceeds it is given up at once.
		c.trimLocked(c.exact)
	}
}

// trimLocked gives up the highest numbers until at most n are held.
func (c *cache) trimLocked(n uint64) {
	for c.held > n {
		tail := &c.cur
		if len(c.queue) > 0 {
			tail = &c.queue[len(c.queue)-1]
		}
		have := tail.Remaining()
		cut := tail.Trim(have - min(have, c.held-n))
		c.held -= cut
		c.skipped += cut
		if len(c.queue) > 0 && tail.Remaining() == 0 {
			c.queue = c.queue[:len(c.queue)-1]
		}
	}
}

// serveLocked gives numbers to those who wait, first come first served, as far as they go.
func (c *cache) serveLocked() {
	for c.first != nil {
		number, ok := c.takeLocked(c.first.n)
		if !ok {
			return
		}
		c.first.step = c.cur.step
		c.finishLocked(c.first, number, nil)
	}
}

// failLocked deals with a refused reservation and says how long to pause before the next attempt.
func (c *cache) failLocked(err error) (pause time.Duration) {
	if c.end != nil {
		return 0
	}
	switch {
	case errors.Is(err, ErrUnknown):
		// The row was deleted. What is left in memory stays unique, but the sequence is no more. Of a DROP the follower mostly tells
		// first.
		c.owner.log.Warn("the row of a sequence is gone", zap.String("sequence", c.name), zap.Uint64("given_or_reserved_up_to", c.top),
			zap.String("to_make_it_again", "CREATE SEQUENCE "+quote(c.name)),
			zap.String("and_to_begin_again", "ALTER SEQUENCE "+quote(c.name)+" RESTART WITH 1 FORCE"))
		c.endLocked(err)
		return 0
	case errors.Is(err, ErrExhausted):
		// Only the first in line is told: the others may want fewer.
		if c.first != nil {
			c.finishLocked(c.first, 0, err)
			c.serveLocked()
		} else {
			c.dry = true
		}
		return 0
	case errors.Is(err, ErrUnfit):
		// Waiting does not mend it, so nobody is made to; the operator reads why.
		for c.first != nil {
			c.finishLocked(c.first, 0, err)
		}
		c.resting = true
	}
	if c.lastErr == nil {
		c.failedAt = time.Now()
		c.owner.log.Warn("reserving numbers fails, retrying", zap.String("sequence", c.name),
			zap.Uint64("left", c.held), zap.Error(err))
	}
	c.lastErr = err
	pause = max(c.backoff, firstBackoff)
	c.backoff = min(2*pause, lastBackoff)
	if errors.Is(err, errFrozen) {
		c.backoff = min(c.backoff, frozenBackoff) // it is short, and the end of it is wanted
	}
	return pause
}

// healedLocked notes that a reservation succeeded.
func (c *cache) healedLocked() {
	c.resting, c.backoff = false, 0
	if c.lastErr != nil {
		c.owner.log.Info("reserving numbers works again", zap.String("sequence", c.name),
			zap.Duration("after", time.Since(c.failedAt)))
		c.lastErr = nil
	}
}

// endLocked makes the cache give nothing any more and tells those who wait why.
func (c *cache) endLocked(err error) {
	if c.end == nil {
		c.end = err
	}
	for c.first != nil {
		c.finishLocked(c.first, 0, err)
	}
}

// demandLocked says how many numbers to reserve now: want ideally, need at least; want 0 means none.
func (c *cache) demandLocked(now time.Time) (want, need uint64) {
	c.replan(now)
	if c.exact > 0 {
		return c.demandExactLocked()
	}
	switch {
	case c.first != nil:
		return max(c.size, c.first.n), c.first.n
	case c.held < c.low && !c.dry && !c.resting && len(c.queue) < maxQueued:
		return c.size, 1
	}
	return 0, 0
}

// demandExactLocked is the demand under a typed CACHE n: never are more than n unused numbers in memory, apart from a
// run that somebody waits for and that is longer than n by itself.
func (c *cache) demandExactLocked() (want, need uint64) {
	w := c.first
	switch {
	case w == nil:
		if c.held < c.low && !c.dry && !c.resting {
			return c.exact - c.held, 1
		}
		return 0, 0
	case w.n > c.exact:
		return w.n, w.n
	case c.held > 0 && c.held < c.exact && !w.joinTried:
		// What is missing to n may adjoin the rest and complete the run.
		return c.exact - c.held, 1
	}
	c.discardLocked()
	return c.exact, w.n
}

// replan brings the measured rate, the size and the low-water mark up to date. mu is held, or c is not shared yet.
func (c *cache) replan(now time.Time) {
	c.pace.observe(now, c.given-c.measured)
	c.measured = c.given
	if c.exact > 0 {
		c.size, c.low = c.exact, c.exact/2+1
		if c.exact == 1 {
			c.low = 0 // whoever types CACHE 1 wants numbers in the order of time: none is fetched ahead
		}
		return
	}
	left := uint64(math.MaxUint64)
	if c.max > 0 {
		left = (c.max - min(c.top, c.max)) / max(c.rule.step, 1)
	}
	c.size, c.low = c.pace.plan(left)
}

// finishLocked takes w off the list and wakes it.
func (c *cache) finishLocked(w *waiter, number uint64, err error) {
	c.removeLocked(w)
	w.done, w.number, w.err = true, number, err
	close(w.ready)
}

func (c *cache) pushLocked(w *waiter) {
	w.prev = c.final
	if c.final != nil {
		c.final.next = w
	} else {
		c.first = w
	}
	c.final = w
}

func (c *cache) removeLocked(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		c.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		c.final = w.prev
	}
	w.prev, w.next = nil, nil
}

// shut ends the cache with err.
func (c *cache) shut(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(err)
}

// ended is the reason why the cache gives nothing any more, or nil.
func (c *cache) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

// unused removes and returns the segment at the upper end of what is held: the only one that nobody has reserved after.
func (c *cache) unused() Segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := &c.cur
	if n := len(c.queue); n > 0 {
		tail = &c.queue[n-1]
	}
	s := *tail
	c.held -= s.Remaining()
	*tail = Segment{}
	return s
}
