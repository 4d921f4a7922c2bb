package cache

import (
	"errors"

	"seqproxy/sequence/stats"
)

// This file is how numbers of ORDER sequences are given: strictly rising in real time over all
// proxies. Who asks after another has been answered, wherever, gets a higher number.
//
// That follows from one rule: a number goes only to a caller that waited before the UPDATE was sent
// that reserved it. So every number leaves while its caller waits, and the callers of all proxies
// are in the order of the UPDATEs, which the row's lock has. Nothing is held: what a caller that
// has gone would have got is nobody's.
//
// The callers that wait when an UPDATE is about to be sent share it: their batch. Who comes later
// is in the next one, which is sent when the answer is there. So the more callers, the fewer
// UPDATEs for each.

const (
	// maxOrderedQueue bounds the callers that wait for numbers of one ORDER sequence.
	maxOrderedQueue = 1 << 16
	// maxBatch bounds the numbers of a batch, unless one caller alone wants more.
	maxBatch = 1 << 40
)

// errCrowded: more callers wait than are let in.
var errCrowded = errors.New("too many wait for its numbers already")

// batches are those of an ORDER sequence, one after the other. Its owner synchronises.
type batches struct {
	last   uint64 // the number of the last one
	served int    // callers, of that one
}

// board makes those who wait now the batch of the reservation that is about to be made, and returns
// its demand: what they want together, and what the first of them needs.
func (b *batches) board(l *line) (want, need uint64) {
	b.dissolve()
	b.served = 0
	for w := l.first; w != nil; w = w.next {
		if want > 0 && w.n > maxBatch-min(want, maxBatch) {
			break
		}
		w.batch = b.last
		want += w.n
	}
	if want > 0 {
		need = l.first.n
	}
	return want, need
}

// dissolve has nobody be in a batch any more.
func (b *batches) dissolve() { b.last++ }

// has says whether a caller is in the last batch.
func (b *batches) has(w *waiter) bool { return w != nil && w.batch == b.last }

// land gives the numbers of a reservation, which s has, to its batch. Those that are left are of
// callers that have gone: a gap. Where there are too few, as at the end of the sequence, the last
// ones of the batch are in the next one, too.
func (b *batches) land(l *line, s *stock) {
	for b.has(l.first) {
		number, ok := s.take(l.first.n)
		if !ok {
			break
		}
		l.serve(l.first, number, s.cur.Step)
		b.served++
	}
	s.discard(stats.UnusedCallerGone)
}

// strand tells a batch that nobody knows what became of its reservation.
func (b *batches) strand(l *line, err error) {
	for b.has(l.first) {
		l.refuse(l.first, err)
	}
}

// orderLocked makes the sequence an ORDER sequence, or one whose numbers may be held.
func (c *Cache) orderLocked(on bool) {
	if on == c.order {
		return
	}
	c.order = on
	c.batches.dissolve()
	// what a reservation in flight brings was asked for by other rules
	c.overtakeLocked(stats.UnusedAlter)
	c.stock.discard(stats.UnusedAlter)
}
