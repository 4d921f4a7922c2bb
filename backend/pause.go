package backend

import (
	"slices"
	"sync/atomic"
	"time"
)

// Pause is a time in which a shard gets no new statement. A resumed Pause never begins again.
type Pause struct {
	since   time.Time
	resumed chan struct{}
}

// Since is when the pause began.
func (p *Pause) Since() time.Time { return p.since }

// Resumed is closed when the pause is over.
func (p *Pause) Resumed() <-chan struct{} { return p.resumed }

// Pause pauses the shard and returns the pause in force. A second call returns the pause of the
// first. Callers that send statements must look at Paused.
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

// Paused returns the pause in force, or nil. It is cheap enough for every statement.
func (s *Shard) Paused() *Pause { return s.gate.paused.Load() }

// Resume ends the pause, and reports whether there was one.
func (s *Shard) Resume() bool {
	p := s.gate.paused.Swap(nil)
	if p != nil {
		close(p.resumed)
	}
	return p != nil
}

// gate outlives a change of a shard's nodes: the old Shard and the new one share it.
type gate struct {
	paused atomic.Pointer[Pause] // nil: not paused
}

// ShardSet is an immutable set of shards; nil is the empty set. A shard whose nodes have changed
// counts as the same shard.
type ShardSet struct{ gates []*gate }

// Has reports whether a shard is in the set.
func (s *ShardSet) Has(shard *Shard) bool {
	return s == shard.alone || s != nil && slices.Contains(s.gates, shard.gate)
}

// With returns the set with one shard added. With an empty set it does not allocate.
func (s *ShardSet) With(shard *Shard) *ShardSet {
	switch {
	case s == nil:
		return shard.alone
	case s.Has(shard):
		return s
	}
	return &ShardSet{append(slices.Clone(s.gates), shard.gate)}
}

// Meets reports whether some shard is in both sets.
func (s *ShardSet) Meets(other *ShardSet) bool {
	return s != nil && other != nil && slices.ContainsFunc(s.gates, func(g *gate) bool { return slices.Contains(other.gates, g) })
}

// Many reports whether the set has more than one shard.
func (s *ShardSet) Many() bool { return s != nil && len(s.gates) > 1 }
