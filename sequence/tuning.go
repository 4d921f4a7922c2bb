package sequence

import (
	"cmp"
	"context"
	"time"
)

// Tuning is the part of [Options] that can be changed while numbers are given; zero values mean the
// defaults, as there.
type Tuning struct {
	CacheSize       uint64
	OutageCover     time.Duration
	AllocateTimeout time.Duration
	CreateUnknown   bool

	CreateTable         bool
	OrderWithoutReplica bool
	NoDirectWriters     bool
}

// tuning is the tuning in options with their defaults filled in.
func (o *Options) tuning() *Tuning {
	return &Tuning{
		CacheSize: o.CacheSize, OutageCover: o.OutageCover, AllocateTimeout: o.AllocateTimeout, CreateUnknown: o.CreateUnknown,
		CreateTable: o.CreateTable, OrderWithoutReplica: o.OrderWithoutReplica, NoDirectWriters: o.NoDirectWriters,
	}
}

// Tune replaces the tuning. What waits goes on to wait as long as before; sizes count from the next
// reservation on, and numbers in memory stay.
func (s *Sequences) Tune(t Tuning) {
	t.CacheSize = cmp.Or(t.CacheSize, DefaultCacheSize)
	t.OutageCover = cmp.Or(t.OutageCover, DefaultOutageCover)
	t.AllocateTimeout = cmp.Or(t.AllocateTimeout, DefaultAllocateTimeout)
	s.tuning.Store(&t)
}

// WaiterKey is the key of a context's value, a [Waiter]: what it has waited counts among the
// allocate timeout of a call with that context.
type WaiterKey struct{}

// Waiter says for how long a request has waited for numbers so far.
type Waiter interface{ Waited() time.Duration }

// patience is how long a caller waits with ctx: for the allocate timeout, all that he waits for in
// one request together. See [Options.AllocateTimeout].
func (s *Sequences) patience(ctx context.Context) time.Duration {
	limit := s.tuning.Load().AllocateTimeout
	if request, ok := ctx.Value(WaiterKey{}).(Waiter); ok {
		return max(limit-request.Waited(), min(limit, s.timing.leastPatience))
	}
	return limit
}
