package sequence

import (
	"cmp"
	"context"
	"time"
)

// Tuning is the part of [Options] that can be changed while numbers are given; zero values mean the
// default that each field names.
type Tuning struct {
	// CacheSize is how many numbers are reserved at once while a sequence is used little; 0 means
	// 1000.
	CacheSize uint64
	// OutageCover is for how long the numbers in memory should last at the present rate; 0 means 15
	// minutes.
	OutageCover time.Duration
	// AllocateTimeout bounds how long one caller waits for a number; 0 means 3 seconds. Where the
	// context of a call has a value for [WaiterKey], that says for how long its caller has waited
	// here already for the same answer, and the call waits only for what is left, or a moment.
	AllocateTimeout time.Duration
	// CreateUnknown makes Take create a sequence that does not exist, starting at 1 (or above its
	// tombstone).
	CreateUnknown bool
	// CreateTable allows the table to be created when it is missing.
	CreateTable bool
	// OrderWithoutReplica lets ORDER sequences of a group give numbers while no majority of its
	// nodes is seen: see group.Ceilings.StillHolds.
	OrderWithoutReplica bool
	// NoDirectWriters: no application counts in the table itself, which matters when the set of
	// sequence servers is changed.
	NoDirectWriters bool
}

func (t *Tuning) setDefaults() {
	t.CacheSize = cmp.Or(t.CacheSize, DefaultCacheSize)
	t.OutageCover = cmp.Or(t.OutageCover, DefaultOutageCover)
	t.AllocateTimeout = cmp.Or(t.AllocateTimeout, DefaultAllocateTimeout)
}

// Tune replaces the tuning. What waits goes on to wait as long as before; sizes count from the next
// reservation on, and numbers in memory stay.
func (s *Sequences) Tune(t Tuning) {
	t.setDefaults()
	s.tuning.Store(&t)
}

// WaiterKey is the key of a context's value, a [Waiter]: what it has waited counts among the
// allocate timeout of a call with that context.
type WaiterKey struct{}

// Waiter says for how long a request has waited for numbers so far.
type Waiter interface{ Waited() time.Duration }

// patience is how long a caller waits with ctx: for the allocate timeout, all that he waits for in
// one request together. See [Tuning.AllocateTimeout].
func (s *Sequences) patience(ctx context.Context) time.Duration {
	limit := s.tuning.Load().AllocateTimeout
	if request, ok := ctx.Value(WaiterKey{}).(Waiter); ok {
		return max(limit-request.Waited(), min(limit, s.timing.leastPatience))
	}
	return limit
}
