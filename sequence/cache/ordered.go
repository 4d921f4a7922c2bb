package cache

import (
	"errors"
	"time"

	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
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

// demandOrderedLocked is the demand of an ORDER sequence: nothing is fetched ahead. boardLocked
// says how much.
func (c *Cache) demandOrderedLocked() (want, need uint64) {
	if c.line.first == nil {
		return 0, 0
	}
	return c.line.first.n, c.line.first.n
}

// boardLocked makes those who wait now the batch of the reservation that is about to be made, and
// returns its demand: what they want together, and what the first of them needs.
func (c *Cache) boardLocked() (want, need uint64) {
	c.boarded++
	c.served = 0
	for w := c.line.first; w != nil; w = w.next {
		if want > 0 && w.n > maxBatch-min(want, maxBatch) {
			break
		}
		w.batch = c.boarded
		want += w.n
	}
	if want > 0 {
		need = c.line.first.n
	}
	return want, need
}

// landLocked gives the numbers of a reservation to its batch. Those that are left are of callers
// that have gone: a gap. Where there are too few, as at the end of the sequence, the last ones of
// the batch are in the next one, too.
func (c *Cache) landLocked(s segment.Segment) {
	c.stock.add(s) // of an ORDER sequence nothing was in it
	for w := c.line.first; w != nil && w.batch == c.boarded; w = c.line.first {
		number, ok := c.stock.take(w.n)
		if !ok {
			break
		}
		c.line.serve(w, number, s.Step)
		c.served++
	}
	c.stock.discard(stats.UnusedCallerGone)
}

// strandLocked tells a batch that nobody knows what became of its reservation.
func (c *Cache) strandLocked(err error) {
	for w := c.line.first; w != nil && w.batch == c.boarded; w = c.line.first {
		c.line.refuse(w, c.unavailableLocked(0, err))
	}
}

// orderLocked makes the sequence an ORDER sequence, or one whose numbers may be held.
func (c *Cache) orderLocked(on bool) {
	if on == c.order {
		return
	}
	c.order = on
	c.boarded++ // nobody is in a batch any more
	// what a reservation in flight brings was asked for by other rules
	c.overtakeLocked(stats.UnusedAlter)
	c.stock.discard(stats.UnusedAlter)
}

// obeyOrderLocked is orderLocked by what a reservation found, unless something newer is known.
func (c *Cache) obeyOrderLocked(g *store.Grant) {
	if g.Version >= c.version {
		c.orderLocked(g.Order)
	}
}

// unavailableLocked is the error of a caller that gets no number.
func (c *Cache) unavailableLocked(waited time.Duration, cause error) error {
	server, _ := c.all.Owner.WhyNot(c.Name)
	return &UnavailableError{Sequence: define.ShownName(c.Name), Server: server, Waited: waited, Ordered: c.order, Err: cause}
}
