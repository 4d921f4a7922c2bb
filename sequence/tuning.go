package sequence

import (
	"cmp"
	"time"
)

// Tuning is the part of [Options] that can be changed while numbers are given; a zero value means the same.
type Tuning struct {
	CacheSize       uint64
	OutageCover     time.Duration
	AllocateTimeout time.Duration
	CreateUnknown   bool

	CreateTable         bool
	OrderWithoutReplica bool
	DirectWriters       string
}

// tuning is the tuning in options with their defaults filled in.
func (o *Options) tuning() *Tuning {
	return &Tuning{
		CacheSize: o.CacheSize, OutageCover: o.OutageCover, AllocateTimeout: o.AllocateTimeout, CreateUnknown: o.CreateUnknown,
		CreateTable: o.CreateTable, OrderWithoutReplica: o.OrderWithoutReplica, DirectWriters: o.DirectWriters,
	}
}

// Tune replaces the tuning. What waits goes on to wait as long as before; sizes count from the next reservation on, and numbers in memory
// stay.
func (s *Sequences) Tune(t Tuning) {
	t.CacheSize = cmp.Or(t.CacheSize, DefaultCacheSize)
	t.OutageCover = cmp.Or(t.OutageCover, DefaultOutageCover)
	t.AllocateTimeout = cmp.Or(t.AllocateTimeout, DefaultAllocateTimeout)
	t.DirectWriters = cmp.Or(t.DirectWriters, DirectWritersAuto)
	s.tuning.Store(&t)
}

// patience is how long one caller waits.
func (s *Sequences) patience() time.Duration { return s.tuning.Load().AllocateTimeout }
