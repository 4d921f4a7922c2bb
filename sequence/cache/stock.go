package cache

import (
	"slices"

	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
)

// maxQueued bounds the segments that wait behind the current one without adjoining it.
const maxQueued = 64

// stock is the numbers of a sequence in memory, and the account of all that ever were: each
// reserved number is cached, leaving, given or unused. Its owner synchronises.
//
// The numbers that leave rise strictly: once a number has left, no smaller one does. A rest that
// is too short for a run is therefore skipped if the next segment does not adjoin it.
type stock struct {
	cur      segment.Segment   // numbers are taken from here
	queue    []segment.Segment // segments behind cur, rising, adjoining neither cur nor each other
	cached   uint64            // numbers in cur and queue
	reserved uint64            // numbers that were reserved
	given    uint64            // numbers handed out
	leaving  uint64            // numbers that are no longer cached, and on their way back to the table
	gaps     stats.UnusedCounts
}

// take takes n numbers in a row, skipping rests that are too short.
func (s *stock) take(n uint64) (first uint64, ok bool) {
	first, ok = s.cur.Take(n)
	if !ok {
		if s.cur.Run == 0 && len(s.queue) == 0 || !s.advance(n) {
			return 0, false
		}
		first, _ = s.cur.Take(n)
	}
	s.cached -= n
	s.given += n
	return first, true
}

// advance makes the first segment that can give n numbers, behind a border or in the queue, the
// current one. It changes nothing if there is none.
func (s *stock) advance(n uint64) bool {
	if skip, ok := s.cur.Skip(n); ok {
		s.lose(stats.UnusedRun, skip)
		return true
	}
	for i := range s.queue {
		skip, ok := s.queue[i].Skip(n)
		if !ok {
			continue
		}
		skip += s.cur.Remaining()
		for j := range i {
			skip += s.queue[j].Remaining()
		}
		s.lose(stats.UnusedRun, skip)
		s.cur = s.queue[i]
		s.queue = append(s.queue[:0], s.queue[i+1:]...)
		return true
	}
	return false
}

// lose counts n cached numbers that are not given.
func (s *stock) lose(why stats.Unused, n uint64) {
	s.cached -= n
	s.gaps[why] += n
}

// add caches a segment behind all others.
func (s *stock) add(seg segment.Segment) {
	s.reserved += seg.Remaining()
	s.cached += seg.Remaining()
	switch tail := s.tail(); {
	case s.cur.Remaining() == 0 && len(s.queue) == 0:
		s.cur = seg
	case !tail.Join(seg):
		s.queue = append(s.queue, seg)
	}
	s.front()
}

// miss counts n reserved numbers that are not cached.
func (s *stock) miss(why stats.Unused, n uint64) {
	s.reserved += n
	s.gaps[why] += n
}

// regain caches numbers again that were given and not used, in front of the highest segment, which
// a last reservation may have brought. It does nothing if they do not adjoin it.
func (s *stock) regain(seg segment.Segment) {
	switch tail := s.tail(); {
	case tail.Remaining() == 0:
		*tail = seg
	case tail.Next() == seg.Last()+1:
		*tail = segment.New(seg.Next(), tail.Last())
		tail.Plan = seg.Plan
	default:
		return
	}
	s.cached += seg.Remaining()
	s.given -= min(seg.Remaining(), s.given)
}

// tail is the segment of the highest numbers.
func (s *stock) tail() *segment.Segment {
	if n := len(s.queue); n > 0 {
		return &s.queue[n-1]
	}
	return &s.cur
}

// front makes the first segment that is not empty the current one.
func (s *stock) front() {
	if s.cur.Remaining() == 0 {
		s.advance(1)
	}
}

// full reports whether as many segments are cached as may be.
func (s *stock) full() bool { return len(s.queue) >= maxQueued }

// has reports whether n is cached.
func (s *stock) has(n uint64) bool {
	return s.cur.Has(n) || slices.ContainsFunc(s.queue, func(q segment.Segment) bool { return q.Has(n) })
}

// next returns the number that the next take gives, or 0.
func (s *stock) next() uint64 {
	if next := s.cur.Next(); next != 0 || len(s.queue) == 0 {
		return next
	}
	return s.queue[0].Next()
}

// highest returns the highest cached number, or 0.
func (s *stock) highest() uint64 { return max(s.cur.Last(), s.tail().Last()) }

// release removes the segment of the highest numbers, to be returned to the table: the only one
// after which nothing was reserved. Settle counts it.
func (s *stock) release() segment.Segment {
	tail := s.tail()
	seg := *tail
	s.cached -= seg.Remaining()
	s.leaving += seg.Remaining()
	*tail = segment.Segment{}
	return seg
}

// settle counts n of the numbers that are leaving, if so many are.
func (s *stock) settle(why stats.Unused, n uint64) {
	n = min(n, s.leaving)
	s.leaving -= n
	s.gaps[why] += n
}

// discard discards all cached numbers.
func (s *stock) discard(why stats.Unused) {
	s.lose(why, s.cached)
	s.cur, s.queue = segment.Segment{}, s.queue[:0]
}

// empty discards all cached and all leaving numbers.
func (s *stock) empty(why stats.Unused) {
	s.settle(why, s.leaving)
	s.discard(why)
}

// cut removes the cached number n. Where that would make too many pieces, it discards the numbers
// of its segment before n.
func (s *stock) cut(n uint64) {
	at := slices.IndexFunc(s.queue, func(q segment.Segment) bool { return q.Has(n) })
	whole := &s.cur
	if at >= 0 {
		whole = &s.queue[at]
	}
	before, behind := whole.Around(n)
	lost := uint64(1)
	if before.Remaining() > 0 && behind.Remaining() > 0 && s.full() {
		lost += before.Remaining()
		before = segment.Segment{}
	}
	s.lose(stats.UnusedChosen, lost)
	if *whole = before; before.Remaining() == 0 {
		*whole = behind
	} else if behind.Remaining() > 0 {
		s.queue = slices.Insert(s.queue, at+1, behind)
	}
	s.queue = slices.DeleteFunc(s.queue, func(q segment.Segment) bool { return q.Remaining() == 0 })
	s.front()
}

// trim discards the highest numbers until at most n are cached.
func (s *stock) trim(n uint64) {
	for s.cached > n {
		tail := s.tail()
		have := tail.Remaining()
		s.lose(stats.UnusedCache, tail.Trim(have-min(have, s.cached-n)))
		if len(s.queue) > 0 && tail.Remaining() == 0 {
			s.queue = s.queue[:len(s.queue)-1]
		}
	}
}

// dropUpTo discards the numbers up to n.
func (s *stock) dropUpTo(n uint64) {
	s.sweep(stats.UnusedRestart, func(q *segment.Segment) uint64 {
		cut := q.UpTo(n)
		q.Drop(cut)
		return cut
	})
}

// dropAbove discards the numbers above n.
func (s *stock) dropAbove(n uint64) {
	s.sweep(stats.UnusedAlter, func(q *segment.Segment) uint64 { return q.Trim(q.UpTo(n)) })
}

// sweep applies cut, which removes numbers from a segment and returns how many, to all segments.
func (s *stock) sweep(why stats.Unused, cut func(*segment.Segment) uint64) {
	gone := cut(&s.cur)
	kept := s.queue[:0]
	for _, q := range s.queue {
		gone += cut(&q)
		if q.Remaining() > 0 {
			kept = append(kept, q)
		}
	}
	s.queue = kept
	s.lose(why, gone)
	s.front()
}
