package sequence

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// maxQueued bounds the segments that wait behind the current one without adjoining it.
const maxQueued = 64

// grant is a reserved segment and what the table said about its sequence.
type grant struct {
	seg   segment.Segment
	max   uint64       // the highest number that the id column holds
	exact uint64       // the typed CACHE n, or 0 for adaptive
	rule  segment.Rule // which numbers may follow
	cycle bool         // the sequence begins again at its end

	order   bool   // the sequence is an ORDER sequence
	shared  bool   // other sequence servers give numbers of it, too
	version uint64 // of the options that say all this

	due member.Due // beside its caller
}

// reserver takes numbers out of durable storage, and puts back those that were not used.
type reserver interface {
	// reserve returns a segment of at most want and at least need numbers, which are the caller's
	// alone. If the outcome of the commit is unknown it returns an error and the range is never
	// used. Besides what the context brings, errors are ErrUnknown, ErrExhausted (fewer than need
	// are left), ErrUnfit, or temporary.
	reserve(ctx context.Context, name string, want, need uint64) (grant, error)
	// giveBack returns seg, the unused upper end of a reservation, if nobody has reserved since. It
	// reports whether it did. epoch is the one in which seg was in memory; if it is over, nothing
	// is given back.
	giveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error)
}

// cache holds the numbers of one sequence and hands them out. Taking a number that is in memory is
// one short critical section, without I/O or allocation. At most one reservation is in flight;
// callers that find nothing wait for it in the order they came.
//
// The numbers that leave rise strictly: once a number has left, no smaller one does. A rest that is
// too short for a run is therefore skipped if the next segment does not adjoin it.
type cache struct {
	name     string               // as the table spells it
	kind     kind.Kind            // of the keys that owner makes of the numbers
	clocked  *snowflake.Generator // of the keys that have a time; nil: the numbers are counters
	periods  *periods             // whose counters give the keys; nil: the numbers here do
	hidden   bool                 // it counts for another sequence, and no client reaches it
	owner    *Sequences
	reserver reserver
	// reserving is held during a reservation: those of one counter must come back in order,
	// whichever cache they are for, or the later one would be taken for a row gone back. The next
	// cache of the name has the same one.
	reserving await.Lock
	exact     uint64        // guarded by mu; the typed CACHE n, or 0 for adaptive
	replaced  atomic.Uint64 // how often CREATE OR REPLACE here made another sequence of it
	waiters   sync.Pool     // those that nobody uses
	score     *stats.Score  // of all caches of the sequence

	mu     sync.Mutex
	cur    segment.Segment   // numbers are taken from here
	queue  []segment.Segment // segments behind cur, rising, adjoining neither cur nor each other
	cached uint64            // numbers in cur and queue
	low    uint64            // below this many held, the next segment is fetched
	given  uint64            // numbers handed out since the cache was made
	passed uint64            // keys that took no number, since then; they count as reserved and given
	end    error             // not nil: gives nothing any more
	flying bool              // a reservation is in flight; its goroutine clears this
	first  *waiter           // callers without a number, in the order they came
	final  *waiter
	queued int // how many they are
	alarm  alarm

	// What the reservations know; guarded by mu.
	pace     segment.Pace
	cover    time.Duration // of the sequence's own definition; 0: Tuning.OutageCover
	measured uint64        // given, when pace was last told
	// when pace was last told of numbers given; not when somebody only looked
	usedAt  time.Time
	size    uint64       // of the next segment
	rule    segment.Rule // which numbers follow top
	limits  limits       // where the numbers end
	cycle   bool         // they begin again there
	advance advance      // of top
	warned  int          // how many of warnAt were crossed
	past    uint64       // numbers up to this one were given up
	version uint64       // of the options that are obeyed
	order   bool         // see ordered.go; then nothing is held
	boarded uint64       // the last batch of an ORDER sequence
	served  int          // callers, of that batch

	gathering gathering // of an ORDER sequence; see ordered_gather.go

	generation uint64       // moves when a reservation that is in flight is void
	overtaken  stats.Unused // why it moved last
	top        uint64       // the highest number reserved, or where the row was found
	// no server gives a number up to this one any more, but to who has it in memory: this proxy has
	// reserved up to it, or moved the counter there
	spent uint64
	max   uint64 // the highest number that the sequence may give
	// nothing is left beyond what is held: no prefetch until somebody asks again
	dry        bool
	resting    bool          // the server is unfit: no prefetch until the next take
	idle       bool          // it is filled up as nothing was taken for a while
	backoff    time.Duration // before the next attempt after a refusal; grows until a success
	lastErr    error         // why the reservation in flight was last refused; nil after a success
	failedAt   time.Time
	reservedAt time.Time // zero: nothing was reserved yet
	// numbers that came since the cache was made: those that are held, leaving, given and, in gaps,
	// unused
	reserved uint64
	leaving  uint64 // numbers that are held no more, and are being given back
	gaps     stats.UnusedCounts
	buried   bool // its counts are kept elsewhere
	waits    uint64
	fetches  uint64 // reservations begun while nobody waited
}

// newCache makes the cache of a sequence whose row was read as found. It starts nothing.
func newCache(owner *Sequences, found store.Row) *cache {
	c := &cache{
		name: found.Name, owner: owner, score: owner.scores.Of(found.Name), reserver: owner.reserver, reserving: await.NewLock(),
		exact: found.Exact, top: found.Position(), max: found.Max,
		rule: found.Common(), limits: limitsOf(&found), past: found.Past, version: found.Version, order: found.Def.Order, cycle: found.Def.Cycle,
		cover: define.CoverOf(&found.Def), kind: found.Def.Kind, hidden: define.IsHidden(found.Name),
	}
	c.clocked, c.periods = c.newClocked(), c.newPeriods()
	c.replan(time.Now())
	c.low = 0 // nothing is fetched for a sequence that was only asked about
	return c
}

// take is takeRun for callers that know the step or need no other number.
func (c *cache) take(ctx context.Context, n uint64) (uint64, error) {
	first, _, err := c.takeRun(ctx, n, time.Time{})
	return first, err
}

// takeRun returns the first of n consecutive numbers and the distance between them. It waits at
// most until deadline, if that is not zero, and else for the caller's patience, or until ctx is
// done; numbers in memory are handed out without looking at ctx.
func (c *cache) takeRun(ctx context.Context, n uint64, deadline time.Time) (first, step uint64, err error) {
	if !c.kind.Counts() {
		return c.uncounted()
	}
	c.mu.Lock()
	if c.end == nil && c.first == nil {
		// Callers that came earlier go first: otherwise single takes would starve a long run.
		if number, ok := c.takeLocked(n); ok {
			step := c.cur.Step
			if c.cached < c.low && !c.flying && !c.dry {
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
		// the reservation in flight pauses; the first take after that tries again
		return 0, 0, &aboutError{define.ShownName(c.name), c.lastErr}
	}
	if c.order && c.queued >= maxOrderedQueue {
		defer c.mu.Unlock()
		return 0, 0, c.unavailableLocked(0, errCrowded)
	}
	patience := c.owner.patience(ctx)
	if !deadline.IsZero() {
		patience = max(time.Until(deadline), 0)
	}
	w := c.newWaiter(n, patience)
	begin := w.since
	c.pushLocked(w)
	if !c.order {
		c.waits++
	}
	if !c.flying {
		c.flyLocked()
	}
	c.mu.Unlock()
	first, step, err = c.wait(ctx, w)
	c.score.Ended(time.Since(begin), endOf(err))
	return first, step, err
}

// takeLocked takes n numbers from what is held, skipping rests that are too short.
func (c *cache) takeLocked(n uint64) (uint64, bool) {
	number, ok := c.cur.Take(n)
	if !ok {
		if c.cur.Run == 0 && len(c.queue) == 0 || !c.advanceLocked(n) {
			return 0, false
		}
		number, _ = c.cur.Take(n)
	}
	c.cached -= n
	c.given += n
	c.resting = false
	return number, true
}

// advanceLocked makes the first segment that can give n numbers, behind a border or in the queue,
// the current one. It changes nothing if there is none.
func (c *cache) advanceLocked(n uint64) bool {
	if skip, ok := c.cur.Skip(n); ok {
		c.gaps[stats.UnusedRun] += skip
		c.cached -= skip
		return true
	}
	for i := range c.queue {
		skip, ok := c.queue[i].Skip(n)
		if !ok {
			continue
		}
		skip += c.cur.Remaining()
		for j := range i {
			skip += c.queue[j].Remaining()
		}
		c.gaps[stats.UnusedRun] += skip
		c.cached -= skip
		c.cur = c.queue[i]
		c.queue = append(c.queue[:0], c.queue[i+1:]...)
		return true
	}
	return false
}

// discardLocked gives up all that is held.
func (c *cache) discardLocked(why stats.Unused) {
	c.gaps[why] += c.cached
	c.cached, c.cur, c.queue = 0, segment.Segment{}, c.queue[:0]
}

// missLocked counts numbers that came, and that are not held.
func (c *cache) missLocked(why stats.Unused, n uint64) {
	if c.buried {
		c.owner.counters.Lose(c.name, why, n)
		return
	}
	c.reserved += n
	c.gaps[why] += n
}

// settle counts n numbers that were to be given back, unless the cache was dropped meanwhile, and
// they are counted.
func (c *cache) settle(why stats.Unused, n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked(why, min(n, c.leaving))
}

func (c *cache) settleLocked(why stats.Unused, n uint64) {
	c.leaving -= n
	c.gaps[why] += n
}

// empty gives up all that is in memory, of a cache that has ended.
func (c *cache) empty(why stats.Unused) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.emptyLocked(why)
}

func (c *cache) emptyLocked(why stats.Unused) {
	c.settleLocked(why, c.leaving)
	c.discardLocked(why)
}

// bury is empty for a cache that was dropped, and returns its counts. A reservation in flight is
// counted as [stats.Counters.Lose] does.
func (c *cache) bury() stats.Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.emptyLocked(stats.UnusedDrop)
	c.overtakeLocked(stats.UnusedDrop)
	c.buried = true
	return c.tallyLocked()
}

// flyLocked starts the goroutine that reserves until nothing is wanted. The caller has checked that
// none is in flight.
func (c *cache) flyLocked() {
	c.flying = true
	c.owner.spawn(c.fly)
}

// fly reserves segments, one at a time, until nothing is wanted or the cache has ended. A failure
// is retried with a growing backoff for as long as numbers are wanted, whether or not somebody
// still waits: so an outage heals by itself. An unfit server is asked again only if somebody has
// taken or waits for a number since: each attempt there may cost a gap.
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

		c.reserving.MustAcquire()
		c.mu.Lock()
		generation := c.generation
		var boarded time.Time
		switch {
		case c.end != nil: // the next cache of its name may be reserving
			want = 0
		case c.order:
			want, need = c.boardLocked()
			boarded = time.Now()
		}
		c.mu.Unlock()
		if want == 0 { // everybody has gone
			c.reserving.Release()
			continue
		}
		g, err := c.reserver.reserve(c.owner.ctx, c.name, want, need)
		c.owner.takeNote()
		c.mu.Lock()
		if err == nil {
			c.healedLocked()
			if c.generation == generation {
				c.installLocked(g)
			} else {
				c.missLocked(c.overtaken, g.seg.Remaining())
			}
		}
		c.reserving.Release() // only now: who holds it knows of every number that was reserved
		if err == nil {
			if g.due.Server != nil {
				c.owner.spawnBounded(func(ctx context.Context) { c.owner.servers.goAhead(ctx, c.name, g.due) })
			}
			most := c.gatherLocked(boarded)
			hurry := !c.order || c.first == nil && most == 0
			c.mu.Unlock()
			if !hurry {
				c.gather(most)
			}
			continue
		}
		pause := c.failLocked(err, need)
		c.mu.Unlock()
		if pause > 0 {
			c.owner.sleep(await.Jitter(pause)) // cut short by closing, which the next round sees
		}
	}
}

// installLocked adds a reserved segment behind what is held and serves those who wait.
func (c *cache) installLocked(g grant) {
	c.reserved += g.seg.Remaining()
	c.exact, c.max, c.top = g.exact, g.max, g.seg.Last()
	if !g.shared {
		c.spent = c.top
	}
	if g.rule.Step != 0 {
		c.rule, c.cycle = g.rule, g.cycle
	}
	c.obeyOrderLocked(&g)
	c.reservedAt = time.Now()
	c.watchEndLocked(c.reservedAt)
	c.dry = false
	if c.order {
		c.landLocked(g.seg)
		return
	}
	if c.first != nil {
		c.first.joinTried = true
	}
	c.cached += g.seg.Remaining()
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
		// CACHE n may have been typed after this reservation was sized: what exceeds it is given up
		// at once.
		c.trimLocked(c.exact)
	}
}

// trimLocked gives up the highest numbers until at most n are held.
func (c *cache) trimLocked(n uint64) {
	for c.cached > n {
		tail := &c.cur
		if len(c.queue) > 0 {
			tail = &c.queue[len(c.queue)-1]
		}
		have := tail.Remaining()
		cut := tail.Trim(have - min(have, c.cached-n))
		c.cached -= cut
		c.gaps[stats.UnusedCache] += cut
		if len(c.queue) > 0 && tail.Remaining() == 0 {
			c.queue = c.queue[:len(c.queue)-1]
		}
	}
}

// failLocked deals with a refused reservation of at least need numbers and says how long to pause
// before the next attempt.
func (c *cache) failLocked(err error, need uint64) (pause time.Duration) {
	if c.end != nil {
		return 0
	}
	switch {
	case errors.Is(err, ErrUnknown):
		c.goneLocked(err)
		return 0
	case errors.Is(err, ErrExhausted), errors.Is(err, ErrSeveral):
		// Only the first in line is told: the others may want fewer. So may he, if the one that it
		// is about has gone.
		switch w := c.first; {
		case w == nil:
			c.dry = true
		case w.n >= need && (!c.order || w.batch == c.boarded):
			c.finishLocked(w, 0, err)
			c.serveLocked()
		}
		return 0
	case errors.Is(err, ErrUnfit):
		// Waiting does not mend it, so nobody is made to; the operator reads why.
		for c.first != nil {
			c.finishLocked(c.first, 0, &aboutError{define.ShownName(c.name), err})
		}
		c.resting = true
	case c.order && errors.Is(err, store.OutcomeUnknown):
		c.strandLocked(err)
	}
	if c.lastErr == nil {
		c.failedAt = time.Now()
		c.owner.log.Warn("reserving numbers fails", logfield.Sequence(c.name),
			zap.Uint64("left", c.cached), logfield.Err(err))
	}
	c.lastErr = err
	pause = max(c.backoff, c.owner.timing.firstBackoff)
	c.backoff = min(2*pause, c.owner.timing.lastBackoff)
	if errors.Is(err, store.OutcomeFrozen) {
		// it is short, and the end of it is wanted
		c.backoff = min(c.backoff, c.owner.timing.frozenBackoff)
	}
	return pause
}

// goneLocked ends the cache as its row was deleted. What is left in memory stays unique, but the
// sequence is no more. Of a DROP the follower mostly tells first.
func (c *cache) goneLocked(err error) {
	if c.end != nil {
		return
	}
	remedy := "CREATE SEQUENCE " + define.Quote(define.ShownName(c.name)) + " OWNED BY the column of its keys, or START WITH a number above those of all proxies"
	if define.IsPeriod(c.name) {
		remedy = "FLUSH SEQUENCES on every proxy, and then ALTER SEQUENCE " + define.Quote(define.ShownName(c.name)) + " RESTART WITH a number above the counters of all keys of the present period"
	}
	c.owner.log.Warn("sequence row gone", logfield.Sequence(c.name), zap.Uint64("reserved_up_to", c.top), zap.String("remedy", remedy))
	c.endLocked(err)
}

// healedLocked notes that a reservation succeeded.
func (c *cache) healedLocked() {
	c.resting, c.backoff = false, 0
	if c.lastErr != nil {
		c.owner.log.Info("reserving numbers works again", logfield.Sequence(c.name),
			logfield.Duration(time.Since(c.failedAt)))
		c.lastErr = nil
	}
}

// endLocked makes the cache give nothing any more and tells those who wait why.
func (c *cache) endLocked(err error) {
	if c.end == nil {
		c.end = err
	}
	if c.clocked != nil {
		c.clocked.End(c.end)
	}
	for c.first != nil {
		c.finishLocked(c.first, 0, err)
	}
	if c.alarm.timer != nil {
		c.alarm.timer.Stop() // nobody waits here any more
	}
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

// unused removes and returns the segment at the upper end of what is held: the only one that nobody
// has reserved after. It is about to be put back, so its numbers are not spent any more.
func (c *cache) unused() segment.Segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent = 0
	return c.unusedLocked()
}

// regain has numbers that were given, and not used, be held again, in front of those that a last
// reservation may have brought. They are in one segment.
func (c *cache) regain(s segment.Segment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := &c.cur
	if len(c.queue) > 0 {
		held = &c.queue[len(c.queue)-1]
	}
	switch {
	case held.Remaining() == 0:
		*held = s
	case held.Next() == s.Last()+1:
		*held = segment.New(s.Next(), held.Last())
		held.Plan = s.Plan
	default:
		return
	}
	c.cached += s.Remaining()
	c.given -= min(s.Remaining(), c.given)
}

func (c *cache) unusedLocked() segment.Segment {
	tail := &c.cur
	if n := len(c.queue); n > 0 {
		tail = &c.queue[n-1]
	}
	s := *tail
	c.cached -= s.Remaining()
	c.leaving += s.Remaining()
	*tail = segment.Segment{}
	return s
}
