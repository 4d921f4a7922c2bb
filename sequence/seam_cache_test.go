package sequence

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"seqproxy/sequence/kind"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// Cache is what is in memory of the sequence that a name means.
func (in Inner) Cache(name string) Cache { return Cache{in.s.names.get([]byte(name))} }

// Cached is how many numbers of it are in memory.
func (in Inner) Cached(name string) uint64 { return in.Cache(name).Cached() }

// Meet makes the cache of a sequence whose row was read as found.
func (in Inner) Meet(name string, found store.Row) (Cache, error) {
	c, err := in.s.cacheFor(name, found, in.s.obeyed())
	return Cache{c}, err
}

// Reserving reports whether a reservation of a sequence is in flight, or of steps of it.
func (in Inner) Reserving(name string) bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return slices.ContainsFunc(in.s.cachesLocked(name), func(c *cache) bool { return Cache{c}.Reserving() })
}

// ReservingAny reports whether one of any sequence is.
func (in Inner) ReservingAny() bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	for _, c := range in.s.caches {
		if (Cache{c}).Reserving() {
			return true
		}
	}
	return false
}

// Names are the sequences and counters that have something in memory.
func (in Inner) Names() []string {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return slices.Collect(maps.Keys(in.s.caches))
}

// Parts is how many caches a sequence has, with those of steps.
func (in Inner) Parts(name string) int { return len(in.s.cachesOf(in.Cache(name).c)) }

// Step makes a cache of whole steps.
func (in Inner) Step(c Cache, n uint64) error {
	_, err := in.s.stepped(c.c, n)
	return err
}

// End ends what is in memory of a sequence that is gone, and Ending is how many reservations of such
// ones are in flight.
func (in Inner) End(name string) { in.s.end(name) }

// Ending is for how many names a reservation outlives its sequence.
func (in Inner) Ending() int {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return len(in.s.ending)
}

// Hold has nobody come by a cache until end, which ends that of a sequence, or letGo.
func (in Inner) Hold() (end func(name string), letGo func()) {
	in.s.mu.Lock()
	return in.s.endLocked, sync.OnceFunc(in.s.mu.Unlock)
}

// MoveAbove moves a counter above a number.
func (in Inner) MoveAbove(ctx context.Context, c Cache, n uint64) error {
	return in.s.moveAbove(ctx, c.c, n)
}

// Avoid has numbers be given to nobody.
func (in Inner) Avoid(ctx context.Context, c Cache, numbers []uint64, deadline time.Time) error {
	return in.s.avoid(ctx, c.c, numbers, deadline)
}

// Spell has a cache be known by one more spelling.
func (in Inner) Spell(name string, c Cache) { in.s.names.put(name, c.c) }

// Spellings is how many are known, and MostSpellings how many may be.
func (in Inner) Spellings() (n int) {
	for i := range in.s.names.shards {
		n += len(in.s.names.shards[i].load())
	}
	return n
}

// MostSpellings is how many may be known of one sequence.
const MostSpellings = nameShards*(maxAliases+1) + 1

// NoSequence has a name be remembered as unknown.
func (in Inner) NoSequence(name string) {
	in.s.unknown.add(name, time.Now(), in.s.unknown.generation())
}

// Unknown is how many unknown names are remembered.
func (in Inner) Unknown() int { return len(in.s.unknown.until) }

// MostUnknown is how many may be.
const MostUnknown = maxUnknown

// Find finds a sequence as requests do.
func (in Inner) Find(ctx context.Context, name string, patience time.Duration) (Cache, error) {
	c, err := in.s.find(ctx, []byte(name), patience)
	return Cache{c}, err
}

// FindForLater reads the row of a sequence. What it returns makes a cache of it.
func (in Inner) FindForLater(ctx context.Context, name string) (meet func() error, err error) {
	before := in.s.obeyed()
	found, err := in.s.servers.find(ctx, name)
	return func() error {
		_, err := in.s.cacheFor(name, found, before)
		return err
	}, err
}

// ErrOutdated is why no cache is made of a row that was read before a change.
var ErrOutdated = errOutdated

// FlushTickets gives up what is in memory of a ticket table.
func FlushTickets(t *TicketTable) { t.flush() }

// CachedTickets is what is in memory of a ticket table.
func CachedTickets(t *TicketTable) Cache { return Cache{t.cache} }

// ListHere is what is in memory, as SHOW SEQUENCES has it while no server answers.
func (in Inner) ListHere() []Info { return in.s.listHere() }

// Cache is what is in memory of one sequence.
type Cache struct{ c *cache }

// Known reports whether there is one.
func (c Cache) Known() bool { return c.c != nil }

// Cached is how many numbers are in memory.
func (c Cache) Cached() uint64 {
	if c.c == nil {
		return 0
	}
	return c.c.tally().Cached
}

// Reserving reports whether a reservation is in flight.
func (c Cache) Reserving() bool {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	return c.c.flying
}

// HoldUp has reservations wait, until GoOn.
func (c Cache) HoldUp() { c.c.reserving.MustAcquire() }

// GoOn ends HoldUp.
func (c Cache) GoOn() { c.c.reserving.Release() }

// Waiting is how many callers wait.
func (c Cache) Waiting() int {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	return c.c.queued
}

// HasWaited is how many callers have waited.
func (c Cache) HasWaited() uint64 { return c.c.tally().Waits }

// Void gives up what is held.
func (c Cache) Void(why stats.Unused) { c.c.void(why) }

// Next is the number that the next take gives from memory, or 0.
func (c Cache) Next() uint64 { return c.c.next() }

// TakeUnused takes the upper end out of memory, to give it back.
func (c Cache) TakeUnused() segment.Segment { return c.c.unused() }

// Pace has it be as after hours at a rate, and none above.
func (c Cache) Pace(rate float64) {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	c.c.pace.Recent, c.c.pace.Peak = rate*segment.PaceWindow.Seconds(), 0
}

// KeepUp is what each sign of life does for it.
func (c Cache) KeepUp(now time.Time) { c.c.keepUp(now) }

// Exact is the CACHE that was typed, or 0.
func (c Cache) Exact() uint64 {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	return c.c.exact
}

// Typed reports whether the CACHE of a row of SHOW SEQUENCES was typed.
func Typed(i *Info) bool { return i.exact }

// Grant is a reserved segment.
type Grant struct {
	Seg   segment.Segment
	Max   uint64
	Exact uint64
	Rule  segment.Rule
	Order bool
	of    grant
}

func granted(g grant) Grant { return Grant{g.seg, g.max, g.exact, g.rule, g.order, g} }

func (g *Grant) grant() grant {
	of := g.of
	of.seg, of.max, of.exact, of.rule, of.order = g.Seg, g.Max, g.Exact, g.Rule, g.Order
	return of
}

// Reserver is where a cache has its numbers from.
type Reserver interface {
	Reserve(ctx context.Context, name string, want, need uint64) (Grant, error)
	GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error)
}

// ReserveFrom has numbers come from another reserver, which may use the one before. Nothing is in
// flight.
func (c Cache) ReserveFrom(wrap func(Reserver) Reserver) {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	c.c.reserver = inward{wrap(outward{c.c.reserver})}
}

// ReserveFrom is that of all caches to come.
func (in Inner) ReserveFrom(r Reserver) { in.s.reserver = inward{r} }

// inward is a reserver of a test.
type inward struct{ r Reserver }

func (i inward) reserve(ctx context.Context, name string, want, need uint64) (grant, error) {
	g, err := i.r.Reserve(ctx, name, want, need)
	return g.grant(), err
}

func (i inward) giveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	return i.r.GiveBack(ctx, name, epoch, seg)
}

// outward is a reserver of the program, for a test.
type outward struct{ r reserver }

func (o outward) Reserve(ctx context.Context, name string, want, need uint64) (Grant, error) {
	g, err := o.r.reserve(ctx, name, want, need)
	return granted(g), err
}

func (o outward) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	return o.r.giveBack(ctx, name, epoch, seg)
}

// Counted is how many numbers are counted as held, and how many there are.
func (c Cache) Counted() (counted, sum uint64) {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	sum = c.c.cur.Remaining()
	for i := range c.c.queue {
		sum += c.c.queue[i].Remaining()
	}
	return c.c.cached, sum
}

// Pieces is how many segments wait behind the one that is given from.
func (c Cache) Pieces() int {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	return len(c.c.queue)
}

// MostPieces is how many there are at most.
const MostPieces = maxQueued + 1

// Unused is how many numbers were given up.
func (c Cache) Unused() uint64 {
	t := c.c.tally()
	return t.Unused.Sum()
}

// Highest is the highest number in memory, or 0.
func (c Cache) Highest() uint64 {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	return c.c.highestLocked()
}

// Size is how many numbers are reserved at a time.
func (c Cache) Size() uint64 { return c.c.info(nil).Cache }

// Revise has the row of the sequence be heard of, as a later version.
func (c Cache) Revise(r *store.Row) {
	c.c.mu.Lock()
	r.Version = c.c.version + 1
	c.c.mu.Unlock()
	c.c.revise(r)
}

// Kind is that of its keys.
func (c Cache) Kind() kind.Kind { return c.c.kind }

// Workers is how many workers make keys that have a time.
func (c Cache) Workers() int { return len(c.c.clocked.Workers()) }

// Holding makes the cache of a row, which has numbers in memory that nobody reserved.
func (in Inner) Holding(found store.Row, cur segment.Segment, queue ...segment.Segment) Cache {
	c := newCache(in.s, found)
	c.cur, c.queue, c.cached = cur, queue, cur.Remaining()
	for _, q := range queue {
		c.cached += q.Remaining()
	}
	return Cache{c}
}

// TakeHeld takes a number out of memory.
func (c Cache) TakeHeld() (n uint64, ok bool) {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	return c.c.takeLocked(1)
}

// Progress is what is known of how fast the sequence goes on.
func (c Cache) Progress() any {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	return c.c.advance
}

// TakeBy is a take that waits until a time.
func (c Cache) TakeBy(ctx context.Context, n uint64, deadline time.Time) error {
	_, _, err := c.c.takeRun(ctx, n, deadline)
	return err
}

// ServeOneWho has a caller be served who then looks at its context.
func (c Cache) ServeOneWho(ctx context.Context, number uint64) (got uint64, err error) {
	w := c.c.newWaiter(1, time.Minute)
	c.c.mu.Lock()
	c.c.pushLocked(w)
	c.c.finishLocked(w, number, nil)
	c.c.mu.Unlock()
	got, _, err = c.c.wait(ctx, w)
	return got, err
}

// Crowd has so many others wait, of whom nothing is heard.
func (c Cache) Crowd(n int) {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	c.c.queued += n
}

// MostWaiting is how many may wait for an ORDER sequence.
const MostWaiting = maxOrderedQueue

// Gathers reports whether those who were served last are waited for.
func (c Cache) Gathers() bool {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	return c.c.gathering.target != 0
}

// GatherTime is how long they are, at most, where a reservation takes so long.
func GatherTime(took time.Duration) time.Duration { return gatherTime(took) }

// BoardAll has all who wait be of the last batch, which is a fault.
func (c Cache) BoardAll() {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	for w := c.c.first; w != nil; w = w.next {
		w.batch = c.c.boarded
	}
}

// Flush gives up what is held.
func (c Cache) Flush() { c.c.flush() }
