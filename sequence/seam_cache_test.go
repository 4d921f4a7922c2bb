package sequence

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seqproxy/sequence/cache"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// Cache is what is in memory of the sequence that a name means.
func (in Inner) Cache(name string) Cache { return in.cacheOf(in.s.names.get([]byte(name))) }

// Cached is how many numbers of it are in memory.
func (in Inner) Cached(name string) uint64 { return in.Cache(name).Cached() }

// Meet makes the cache of a sequence whose row was read as found.
func (in Inner) Meet(name string, found store.Row) (Cache, error) {
	q, err := in.s.sequenceFor(name, found, in.s.obeyed())
	return in.cacheOf(q), err
}

// Reserving reports whether a reservation of a sequence is in flight, or of steps of it.
func (in Inner) Reserving(name string) bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return slices.ContainsFunc(in.s.sequences[name].cachesLocked(), func(c *cache.Cache) bool { return c.State(time.Now()).Reserving })
}

// ReservingAny reports whether one of any sequence is.
func (in Inner) ReservingAny() bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	for _, q := range in.s.sequences {
		if in.cacheOf(q).Reserving() {
			return true
		}
	}
	return false
}

// Names are the sequences and counters that have something in memory.
func (in Inner) Names() []string {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return slices.Collect(maps.Keys(in.s.sequences))
}

// Parts is how many caches a sequence has, with those of steps.
func (in Inner) Parts(name string) int { return len(in.s.cachesOf(in.Cache(name).q)) }

// Step makes a cache of whole steps.
func (in Inner) Step(c Cache, n uint64) error {
	_, err := in.s.stepCache(c.q, n)
	return err
}

// End ends what is in memory of a sequence that is gone, and Ending is how many reservations of
// such ones are in flight.
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
	return in.s.moveAbove(ctx, c.q, n)
}

// Avoid moves a counter above numbers that are to be given to nobody.
func (in Inner) Avoid(ctx context.Context, c Cache, numbers []uint64, deadline time.Time) error {
	return in.s.moveFor(ctx, c.q, numbers, deadline)
}

// Spell has a cache be known by one more spelling.
func (in Inner) Spell(name string, c Cache) { in.s.names.put(name, c.q) }

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
func (in Inner) Unknown() int { return len(in.s.unknown.known) }

// MostUnknown is how many may be.
const MostUnknown = maxUnknown

// Find finds a sequence as requests do.
func (in Inner) Find(ctx context.Context, name string, patience time.Duration) (Cache, error) {
	q, err := in.s.find(ctx, []byte(name), patience)
	return in.cacheOf(q), err
}

// FindForLater reads the row of a sequence. What it returns makes a cache of it.
func (in Inner) FindForLater(ctx context.Context, name string) (meet func() error, err error) {
	before := in.s.obeyed()
	found, err := in.s.members.Find(ctx, name)
	return func() error {
		_, err := in.s.sequenceFor(name, found, before)
		return err
	}, err
}

// ErrOutdated is why no cache is made of a row that was read before a change.
var ErrOutdated = errOutdated

// FlushTickets gives up what is in memory of a ticket table.
func FlushTickets(t *TicketTable) { t.Flush() }

// CachedTickets is what is in memory of a ticket table.
func CachedTickets(t *TicketTable) Cache { return Cache{c: t.Cache()} }

// ListHere is what is in memory, as SHOW SEQUENCES has it while no server answers.
func (in Inner) ListHere() []Info { return in.s.listHere() }

// Cache is what is in memory of one sequence, or of a ticket table.
type Cache struct {
	c *cache.Cache
	q *sequence
	s *Sequences
}

func (in Inner) cacheOf(q *sequence) Cache {
	if q == nil {
		return Cache{}
	}
	return Cache{q.numbers, q, in.s}
}

// Exists reports whether there is one.
func (c Cache) Exists() bool { return c.c != nil }

// Cached is how many numbers are in memory.
func (c Cache) Cached() uint64 {
	switch {
	case c.c == nil:
		return 0
	case c.q != nil:
		return c.q.tally().Cached
	}
	return c.c.Tally().Cached
}

// Reserving reports whether a reservation is in flight.
func (c Cache) Reserving() bool { return c.c.State(time.Now()).Reserving }

// HoldUp has reservations wait, until GoOn.
func (c Cache) HoldUp() { c.c.Reserving.MustAcquire() }

// GoOn ends HoldUp.
func (c Cache) GoOn() { c.c.Reserving.Release() }

// Waiting is how many callers wait.
func (c Cache) Waiting() int { return c.c.State(time.Now()).Waiting }

// HasWaited is how many callers have waited.
func (c Cache) HasWaited() uint64 { return c.c.Tally().Waits }

// Void gives up what is held.
func (c Cache) Void(why stats.Unused) { c.c.Void(why) }

// Next is the number that the next take gives from memory, or 0.
func (c Cache) Next() uint64 { return c.c.Next() }

// TakeUnused takes the upper end out of memory, to give it back.
func (c Cache) TakeUnused() segment.Segment { return c.c.Unused() }

// Pace has it be as after hours at a rate, and none above.
func (c Cache) Pace(rate float64) {
	pace := c.c.Pace()
	pace.Recent, pace.Peak = rate*segment.PaceWindow.Seconds(), 0
	c.c.Expect(pace)
}

// KeepUp is what each sign of life does for it.
func (c Cache) KeepUp(now time.Time) { c.q.keepUp(now) }

// Exact is the CACHE that was typed, or 0.
func (c Cache) Exact() uint64 {
	if is := c.c.State(time.Now()); is.Exact {
		return is.Size
	}
	return 0
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
	of    store.Grant
}

func granted(g store.Grant) Grant { return Grant{g.Segment, g.Max, g.Exact, g.Rule, g.Order, g} }

func (g *Grant) grant() store.Grant {
	of := g.of
	of.Segment, of.Max, of.Exact, of.Rule, of.Order = g.Seg, g.Max, g.Exact, g.Rule, g.Order
	return of
}

// Reserver is where a cache has its numbers from.
type Reserver interface {
	Reserve(ctx context.Context, name string, want, need uint64) (Grant, error)
	GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error)
}

// ReserveFrom has all numbers come from another reserver, which may use the one before. Nothing is
// in flight.
func (c Cache) ReserveFrom(wrap func(Reserver) Reserver) {
	c.s.reserver = inward{wrap(outward{c.s.reserver})}
}

// ReserveFrom is that without the one before.
func (in Inner) ReserveFrom(r Reserver) { in.s.reserver = inward{r} }

// inward is a reserver of a test.
type inward struct{ r Reserver }

func (i inward) Reserve(ctx context.Context, name string, want, need uint64) (store.Grant, error) {
	g, err := i.r.Reserve(ctx, name, want, need)
	return g.grant(), err
}

func (i inward) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	return i.r.GiveBack(ctx, name, epoch, seg)
}

// outward is a reserver of the program, for a test.
type outward struct{ r reserver }

func (o outward) Reserve(ctx context.Context, name string, want, need uint64) (Grant, error) {
	g, err := o.r.Reserve(ctx, name, want, need)
	return granted(g), err
}

func (o outward) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	return o.r.GiveBack(ctx, name, epoch, seg)
}

// Unused is how many numbers were given up.
func (c Cache) Unused() uint64 {
	t := c.c.Tally()
	return t.Unused.Sum()
}

// Highest is the highest number in memory, or 0.
func (c Cache) Highest() uint64 { return c.c.State(time.Now()).Last }

// Size is how many numbers are reserved at a time.
func (c Cache) Size() uint64 { return c.c.Look(nil).Size }

// revised are the versions of rows that were heard of by Revise.
var revised atomic.Uint64

// Revise has the row of the sequence be heard of, as a later version.
func (c Cache) Revise(r *store.Row) {
	r.Version = revised.Add(1)
	c.q.revise(r)
}

// Kind is that of its keys.
func (c Cache) Kind() kind.Kind { return c.q.kind }

// Workers is how many workers make keys that have a time.
func (c Cache) Workers() int { return len(c.q.clocked.keys.Workers()) }

// TakeBy is a take that waits until a time.
func (c Cache) TakeBy(ctx context.Context, n uint64, deadline time.Time) error {
	_, _, err := c.c.Take(ctx, n, deadline)
	return err
}

// Flush gives up what is held.
func (c Cache) Flush() { c.c.Flush() }
