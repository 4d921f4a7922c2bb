package backend

import (
	"slices"
	"sync/atomic"
	"time"
)

// Pause is a time in which a shard gets no new statement. It is over for good once it is
// resumed.
type Pause struct {
	since   time.Time
	resumed chan struct{}
}

// Since is when the pause began.
func (p *Pause) Since() time.Time { return p.since }

// Resumed is closed when the pause is over.
func (p *Pause) Resumed() <-chan struct{} { return p.resumed }

// Pause pauses the shard, and returns the pause that is in force then: one that has begun
// before goes on. Those who send statements have to look at Paused.
func (s *Shard) Pause() *Pause {
	begun := &Pause{since: time.Now(), resumed: make(chan struct{})}
	for {
		if s.gate.paused.CompareAndSwap(nil, begun) {
			return begun
		}
		if p := s.gate.paused.Load(); p != nil {
			return p
		}
	}
}

// Paused returns the pause that is in force, nil if there is none. It costs nothing.
func (s *Shard) Paused() *Pause { return s.gate.paused.Load() }

// Resume ends the pause, and says whether there was one.
func (s *Shard) Resume() bool {
	p := s.gate.paused.Swap(nil)
	if p != nil {
		close(p.resumed)
	}
	return p != nil
}

// gate stays the same for a shard whose nodes change, as long as anybody uses the old or the new
// ones.
type gate struct {
	alone  *ShardSet             // of nothing else
	paused atomic.Pointer[Pause] // nil: it is not
}

func newGate() *gate {
	g := &gate{}
	g.alone = &ShardSet{[]*gate{g}}
	return g
}

// ShardSet is a set of shards. One whose nodes have changed is the same there. A set does
// not change; nil is the empty one.
type ShardSet struct{ gates []*gate }

// Has says whether a shard is in the set.
func (s *ShardSet) Has(shard *Shard) bool {
	return s == shard.gate.alone || s.hasGate(shard.gate)
}

func (s *ShardSet) hasGate(g *gate) bool { return s != nil && slices.Contains(s.gates, g) }

// With returns the set and a shard: of one alone, without an allocation.
func (s *ShardSet) With(shard *Shard) *ShardSet {
	switch {
	case s == nil:
		return shard.gate.alone
	case s.Has(shard):
		return s
	}
	return &ShardSet{append(slices.Clone(s.gates), shard.gate)}
}

// Meets says whether some shard is in both sets.
func (s *ShardSet) Meets(other *ShardSet) bool {
	return s != nil && slices.ContainsFunc(s.gates, other.hasGate)
}

// Many says whether it is more than one shard.
func (s *ShardSet) Many() bool { return s != nil && len(s.gates) > 1 }
