package backend

import (
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

// gate is what a shard keeps when its nodes change.
type gate struct {
	bit    uint64                // that stands for it in a set
	paused atomic.Pointer[Pause] // nil: it is not
}

// gates counts those that were made.
var gates atomic.Uint64

func newGate() *gate { return &gate{bit: 1 << (gates.Add(1) % 64)} }

// Bit stands for the shard in a set of shards. Of many shards one may have the bit of
// another.
func (s *Shard) Bit() uint64 { return s.gate.bit }
