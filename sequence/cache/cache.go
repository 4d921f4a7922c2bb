package cache

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// Reserver takes numbers out of durable storage.
type Reserver interface {
	// Reserve returns a segment of at most want and at least need numbers, which are the caller's
	// alone. If the outcome of the commit is unknown it returns an error, and the range is never
	// used. Apart from the context's own, errors are [define.ErrUnknown], [define.ErrExhausted]
	// (fewer than need remain), [link.ErrUnfit], or temporary.
	Reserve(ctx context.Context, name string, want, need uint64) (store.Grant, error)
}

// Owner is the maker of a cache, as the cache sees it.
type Owner interface {
	// Go runs f on a goroutine that the owner waits for. The owner first shuts all caches, and ends
	// ctx when it no longer waits. The caller has the lock of a cache that was not shut.
	Go(f func(ctx context.Context))
	// Sleep waits for d, or until the caches are about to be shut.
	Sleep(d time.Duration)
	// Patience returns how long a caller with ctx waits.
	Patience(ctx context.Context) time.Duration
	// WhyNot returns which server gives the numbers of a sequence, and the known reason why it
	// cannot.
	WhyNot(sequence string) (server string, err error)
	// Sizing returns how many numbers to reserve.
	Sizing() Sizing
}

// Sizing is how many numbers to reserve, for sequences whose definition does not say so.
type Sizing struct {
	Least uint64        // for a sequence that is used little
	Cover time.Duration // how long they should last at the present rate
	Share segment.Share // of several servers: how they divide the numbers
}

// Timing has the intervals of caches.
type Timing struct {
	// A failed reservation is tried again after FirstBackoff, doubling up to LastBackoff, or up to
	// FrozenBackoff while the members are changed.
	FirstBackoff, LastBackoff, FrozenBackoff time.Duration
	// AlarmRest is the least time between two checks of the waiting callers.
	AlarmRest time.Duration
	// Idle is for how long no number must have been taken before a sequence is filled up.
	Idle time.Duration
}

// Common is what the caches of a process share.
type Common struct {
	Owner    Owner
	Log      *zap.Logger
	Timing   Timing
	Counters *stats.Counters
	Notices  Notices
}

// Cache has the numbers of one sequence in memory and gives them. A take of a cached number is one
// short critical section, without I/O or allocation. At most one reservation is in flight; callers
// that find no number wait for it in the order they came.
type Cache struct {
	Name     string // as in the table
	all      *Common
	reserver Reserver
	// Reserving is locked during a reservation. Those of one counter must come back in order, for
	// any of its caches, because a late one would look like a row that went back. The next cache of
	// the name shares the lock.
	Reserving await.Lock
	waiters   waiterPool
	Score     *stats.Score // of all caches of the sequence

	mu         sync.Mutex // guards all that follows
	stock      stock
	sizes      sizes
	counter    counter
	exhaustion exhaustion
	line       line
	alarm      alarm

	version   uint64    // of the options in force
	order     bool      // an ORDER sequence, which caches nothing; see ordered.go
	batches   batches   // for an ORDER sequence
	gathering gathering // for an ORDER sequence

	flying     bool         // a reservation is in flight; its goroutine clears this
	generation uint64       // changes when a reservation in flight becomes void
	overtaken  stats.Unused // reason of the last change
	trouble    Trouble      // of the reservation in flight
	reservedAt time.Time    // zero: nothing was reserved yet
	dry        bool         // nothing remains beyond the cache: no prefetch until the next caller
	resting    bool         // the server is unfit: no prefetch until the next take

	end    error // not nil: the cache gives nothing any more
	buried bool  // its counts are kept elsewhere
	waits  uint64
}

// New makes the cache of a sequence whose row was read as found. It starts nothing.
func New(all *Common, from Reserver, found store.Row) *Cache {
	c := &Cache{
		Name: found.Name, all: all, Score: all.Counters.Scores.Of(found.Name), reserver: from, Reserving: await.NewLock(),
		counter:    counter{rule: found.Common(), top: found.Position(), max: found.Max, cycle: found.Def.Cycle, past: found.Past},
		sizes:      sizes{exact: found.Exact, cover: define.CoverOf(&found.Def)},
		exhaustion: exhaustion{limits: LimitsOf(&found)}, version: found.Version, order: found.Def.Order,
	}
	c.alarm = alarm{ring: c.impatient}
	c.replan(time.Now())
	c.sizes.low = 0 // a query about a sequence must not fetch numbers
	return c
}

// Take returns the first of n consecutive numbers and the distance between them. It waits at most
// until deadline, if that is not zero, and otherwise for the caller's patience, or until ctx is
// done. It gives cached numbers without looking at ctx.
func (c *Cache) Take(ctx context.Context, n uint64, deadline time.Time) (first, step uint64, err error) {
	c.mu.Lock()
	if c.end == nil && c.line.first == nil {
		// Callers that came earlier go first: otherwise single takes would starve a long run.
		if number, ok := c.stock.take(n); ok {
			c.resting = false
			step := c.stock.cur.Step
			if c.stock.cached < c.sizes.low && !c.flying && !c.dry {
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
	if c.flying && errors.Is(c.trouble.Err, link.ErrUnfit) {
		defer c.mu.Unlock()
		// The reservation in flight pauses; the first take after that tries again.
		return 0, 0, &AboutError{define.ShownName(c.Name), c.trouble.Err}
	}
	if c.order && c.line.length >= maxOrderedQueue {
		defer c.mu.Unlock()
		return 0, 0, c.unavailableLocked(0, errCrowded)
	}
	var patience time.Duration
	if deadline.IsZero() {
		patience = c.all.Owner.Patience(ctx)
	} else {
		patience = max(time.Until(deadline), 0)
	}
	w := c.waiters.get(n, patience)
	begin := w.since
	c.line.push(w)
	c.alarm.set(w.deadline)
	c.gathering.arrived(c.line.length)
	if !c.order {
		c.waits++
	}
	if !c.flying {
		c.flyLocked()
	}
	c.mu.Unlock()
	first, step, err = c.wait(ctx, w)
	c.Score.Ended(time.Since(begin), endOfWait(err))
	return first, step, err
}

// missLocked counts numbers that were reserved and are not cached.
func (c *Cache) missLocked(why stats.Unused, n uint64) {
	if c.buried {
		c.all.Counters.Lose(c.Name, why, n)
		return
	}
	c.stock.miss(why, n)
}

// Settle counts n numbers that were to be returned to the table, unless the cache was dropped
// meanwhile, and they are counted.
func (c *Cache) Settle(why stats.Unused, n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stock.settle(why, n)
}

// Empty discards all cached numbers, for a cache that has ended.
func (c *Cache) Empty(why stats.Unused) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stock.empty(why)
}

// Bury is Empty for a cache that was dropped, and returns its counts. It counts a reservation in
// flight as [stats.Counters.Lose] does.
func (c *Cache) Bury() stats.Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stock.empty(stats.UnusedDrop)
	c.overtakeLocked(stats.UnusedDrop)
	c.buried = true
	return c.tallyLocked()
}

// flyLocked starts the goroutine that reserves until nothing is wanted. The caller has checked that
// none is in flight.
func (c *Cache) flyLocked() {
	c.flying = true
	c.all.Owner.Go(c.fly)
}

// fly reserves segments, one at a time, until nothing is wanted or the cache has ended. It retries
// a failure with a growing backoff for as long as numbers are wanted, even without a waiting
// caller, so that an outage heals by itself. It asks an unfit server again only after a take or for
// a waiting caller, because each attempt there may cost a gap.
func (c *Cache) fly(ctx context.Context) {
	for {
		c.mu.Lock()
		want, need := c.demandLocked(time.Now())
		if want == 0 || c.end != nil {
			c.flying = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()

		c.Reserving.MustAcquire()
		c.mu.Lock()
		generation := c.generation
		var boarded time.Time
		switch {
		case c.end != nil: // the next cache of its name may be reserving
			want = 0
		case c.order:
			want, need = c.batches.board(&c.line)
			boarded = time.Now()
		}
		c.mu.Unlock()
		if want == 0 { // no caller waits any more
			c.Reserving.Release()
			continue
		}
		g, err := c.reserver.Reserve(ctx, c.Name, want, need)
		c.mu.Lock()
		if err == nil {
			c.resting = false
			c.trouble.Over(c.all.Log, c.Name)
			if c.generation == generation {
				c.installLocked(g)
			} else {
				c.missLocked(c.overtaken, g.Segment.Remaining())
			}
		}
		c.Reserving.Release() // only now: the next holder of the lock knows of every reserved number
		if err == nil {
			var most time.Duration
			if c.order && !boarded.IsZero() {
				most = c.gathering.begin(c.reservedAt.Sub(boarded), c.batches.served, c.line.length)
			}
			hurry := !c.order || c.line.first == nil && most == 0
			c.mu.Unlock()
			if !hurry {
				c.gather(ctx, most)
			}
			continue
		}
		pause := c.failLocked(err, need)
		c.mu.Unlock()
		if pause > 0 {
			c.all.Owner.Sleep(await.Jitter(pause)) // closing cuts this short, which the next round sees
		}
	}
}

// installLocked adds a reserved segment behind the cached ones and serves the waiting callers.
func (c *Cache) installLocked(g store.Grant) {
	c.counter.max, c.counter.top = g.Max, g.Segment.Last()
	if !g.Shared {
		c.counter.spent = c.counter.top
	}
	if g.Rule.Step != 0 {
		c.counter.rule, c.counter.cycle = g.Rule, g.Cycle
	}
	if g.Version >= c.version { // otherwise a newer version is in force
		c.sizes.exact = g.Exact
		c.orderLocked(g.Order)
	}
	c.reservedAt = time.Now()
	c.watchEndLocked(c.reservedAt)
	c.dry = false
	c.stock.add(g.Segment)
	if c.order {
		c.batches.land(&c.line, &c.stock)
		return
	}
	if c.line.first != nil {
		c.line.first.joinTried = true
	}
	if c.end != nil {
		return // closed meanwhile: kept, so that it can be returned to the table
	}
	c.serveLocked()
	if c.sizes.exact > 0 {
		// The CACHE n in force may be newer than this reservation.
		c.stock.trim(c.sizes.exact)
	}
}

// failLocked handles a refused reservation of at least need numbers and returns the pause before
// the next attempt.
func (c *Cache) failLocked(err error, need uint64) (pause time.Duration) {
	if c.end != nil {
		return 0
	}
	switch {
	case errors.Is(err, define.ErrUnknown):
		c.goneLocked(err)
		return 0
	case errors.Is(err, define.ErrExhausted), errors.Is(err, define.ErrSeveral):
		// Only the first caller gets the error, because the others may want fewer. So may the
		// first, if the one that it is about has gone.
		switch w := c.line.first; {
		case w == nil:
			c.dry = true
		case w.n >= need && (!c.order || c.batches.has(w)):
			c.line.refuse(w, err)
			c.serveLocked()
		}
		return 0
	case errors.Is(err, link.ErrUnfit):
		// Waiting does not help, so no caller is made to wait; the log has the reason.
		c.line.refuseAll(&AboutError{define.ShownName(c.Name), err})
		c.resting = true
	case c.order && errors.Is(err, store.OutcomeUnknown):
		c.batches.strand(&c.line, c.unavailableLocked(0, err))
	}
	pause = c.trouble.GoesOn(c.all.Log, c.Name, c.stock.cached, err, &c.all.Timing)
	if errors.Is(err, store.OutcomeFrozen) {
		// The change is short, and its end is awaited.
		c.trouble.pause = min(c.trouble.pause, c.all.Timing.FrozenBackoff)
	}
	return pause
}

// goneLocked ends the cache because its row is gone. The cached numbers stay unique, but the
// sequence no longer exists. Somebody has deleted the row, or the sequence was dropped, and the
// follower has not heard of it yet.
func (c *Cache) goneLocked(err error) {
	if c.end != nil {
		return
	}
	if gone := new(define.NameError); errors.As(err, &gone) && gone.Deleted > 0 {
		c.warnRowGoneLocked()
	}
	c.endLocked(err)
}

// warnRowGoneLocked logs that somebody has deleted the row.
func (c *Cache) warnRowGoneLocked() {
	remedy := define.PutBack(define.ShownName(c.Name))
	if define.IsPeriod(c.Name) {
		remedy = "FLUSH SEQUENCES on every proxy, and then ALTER SEQUENCE " + define.Quote(define.ShownName(c.Name)) + " RESTART WITH a number above the counters of all keys of the present period"
	}
	c.all.Log.Warn("sequence row gone", logfield.Sequence(define.ShownName(c.Name)), zap.Uint64("reserved_up_to", c.counter.top), zap.String("remedy", remedy))
}

// endLocked makes the cache give nothing any more, with err for the waiting callers.
func (c *Cache) endLocked(err error) {
	if c.end == nil {
		c.end = err
	}
	c.line.refuseAll(err)
	c.alarm.stop()
}

// Shut ends the cache with err.
func (c *Cache) Shut(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(err)
}

// Ended returns the reason why the cache gives nothing any more, or nil.
func (c *Cache) Ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

// Unused removes and returns the segment at the upper end of the cache: the only one after which
// nothing was reserved. It is about to be returned to the table, so its numbers no longer count as
// spent.
func (c *Cache) Unused() segment.Segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counter.spent = 0
	return c.stock.release()
}

// Regain caches numbers of one segment again that were given and not used, in front of those that a
// last reservation may have brought.
func (c *Cache) Regain(s segment.Segment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stock.regain(s)
}

// endOfWait returns how a wait for numbers is counted.
func endOfWait(err error) stats.End {
	if Unserved(err) {
		return stats.Unserved
	}
	return stats.Served
}

// Unserved reports whether a wait ended without a number, other than by its caller or because there
// is no such sequence.
func Unserved(err error) bool {
	return errors.As(err, new(*UnavailableError)) || errors.Is(err, define.ErrExhausted) || errors.Is(err, link.ErrUnfit)
}

// Next returns the number that the next take gives from memory, or 0.
func (c *Cache) Next() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stock.next()
}

// Start returns the first number of each period: the counter of the sequence itself never moves.
func (c *Cache) Start() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, _ := c.counter.next()
	return next
}

// Used reports whether numbers were given.
func (c *Cache) Used() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stock.given > 0
}

// Increment returns the distance between the sequence's numbers.
func (c *Cache) Increment() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counter.increment()
}

// Ordered reports whether it is an ORDER sequence.
func (c *Cache) Ordered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order
}
