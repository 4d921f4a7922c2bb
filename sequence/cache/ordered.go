package cache

import (
	"errors"

	"seqproxy/sequence/stats"
)

// This file gives the numbers of ORDER sequences: strictly rising in real time over all proxies. A
// caller that asks after another was answered, at any proxy, gets a higher number.
//
// That follows from one rule: a number goes only to a caller that waited before the UPDATE was
// sent that reserved it. So every number leaves while its caller waits, and the callers of all
// proxies are in the order of the UPDATEs, which is that of the row's lock. Nothing is cached:
// the number of a caller that has gone becomes a gap.
//
// The callers that wait when an UPDATE is about to be sent share it: their batch. A later caller
// is in the next one, which is sent after the answer. So the more callers, the fewer UPDATEs for
// each.

const (
	// maxOrderedQueue bounds the callers that wait for numbers of one ORDER sequence.
	maxOrderedQueue = 1 << 16
	// maxBatch bounds the numbers of a batch, unless one caller alone wants more.
	maxBatch = 1 << 40
)

// errCrowded: too many callers wait.
var errCrowded = errors.New("too many wait for its numbers already")

// batches are those of an ORDER sequence, one after the other. Its owner synchronises.
type batches struct {
	last   uint64 // the number of the last one
	served int    // callers of that one that were served
}

// board puts the waiting callers into the batch of the reservation that is about to be made, and
// returns its demand: what they want together, and what the first of them needs.
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

// dissolve takes all callers out of their batch.
func (b *batches) dissolve() { b.last++ }

// has reports whether a caller is in the last batch.
func (b *batches) has(w *waiter) bool { return w != nil && w.batch == b.last }

// land gives the numbers of a reservation, which s has, to its batch. The numbers of callers that
// have gone become a gap. Where there are too few, as at the end of the sequence, the last ones of
// the batch are in the next one, too.
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

// strand gives a batch the error that the outcome of its reservation is unknown.
func (b *batches) strand(l *line, err error) {
	for b.has(l.first) {
		l.refuse(l.first, err)
	}
}

// orderLocked makes the sequence an ORDER sequence, or one whose numbers may be cached.
func (c *Cache) orderLocked(on bool) {
	if on == c.order {
		return
	}
	c.order = on
	c.batches.dissolve()
	// A reservation in flight was made by other rules.
	c.overtakeLocked(stats.UnusedAlter)
	c.stock.discard(stats.UnusedAlter)
}
