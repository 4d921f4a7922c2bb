package cache

import (
	"time"

	"seqproxy/sequence/segment"
)

// sizes are how many numbers are reserved at a time, and at how few remaining ones. They follow the
// rate at which numbers are taken, or the CACHE that was typed. Its owner synchronises.
type sizes struct {
	exact uint64        // the typed CACHE n, or 0 for adaptive
	cover time.Duration // of the sequence's own definition; 0: Cover of [Sizing]
	size  uint64        // of the next segment
	low   uint64        // with fewer cached, the next segment is fetched

	pace     segment.Pace
	measured uint64 // numbers given at the last measurement of pace
	// usedAt is the last measurement of pace with numbers given; queries do not count.
	usedAt time.Time
	idle   bool // it is filled up because nothing was taken for a while
}

// choose brings the measured rate, the size and the low-water mark up to date. given counts the
// numbers since the cache was made.
func (s *sizes) choose(now time.Time, z Sizing, given uint64, of *counter) {
	s.pace.Base, s.pace.Cover = z.Least, s.covers(z)
	s.pace.Observe(now, given-s.measured)
	if given != s.measured || s.usedAt.IsZero() {
		s.usedAt = now
	}
	s.measured = given
	if s.exact > 0 {
		s.size, s.low = s.exact, s.exact/2+1
		if s.exact == 1 {
			// CACHE 1 is for numbers in the order of time: none is fetched ahead.
			s.low = 0
		}
		return
	}
	s.size, s.low = s.pace.Sizes(of.remaining())
	s.size = z.Share.By(of.rule).Sized(s.size)
}

// covers returns how long the cached numbers should last.
func (s *sizes) covers(z Sizing) time.Duration {
	if s.cover > 0 {
		return s.cover
	}
	return z.Cover
}

// whole returns how many numbers an idle sequence has at least: the configured cache, where so many
// are reserved at a time. One in use may have half of that before more is fetched, so that it does
// not reserve twice.
func (s *sizes) whole() uint64 { return min(s.pace.Base, s.size) }

// rate returns how many numbers are taken in a second, after so many were given. It changes
// nothing.
func (s *sizes) rate(now time.Time, given uint64) float64 {
	pace := s.pace // a copy
	pace.Observe(now, given-min(s.measured, given))
	return pace.Rate()
}

// demand returns how many numbers to reserve with so many cached and so many that remain: want
// ideally, need at least. Without ahead none are fetched without a waiting caller.
func (s *sizes) demand(cached uint64, l *line, remaining uint64, ahead bool) (want, need uint64) {
	switch {
	case l.first != nil:
		return max(s.size, l.needs(), min(l.wanted(), remaining/segment.CeilingShare)), l.needs()
	case ahead && (cached < s.low || s.idle && cached < s.whole()):
		return s.size, 1
	}
	return 0, 0
}

// demandExact is the demand under a typed CACHE n, where first waits, or no caller: never are more
// than n unused numbers in memory, apart from a run that a caller waits for and that alone is
// longer than n. So it may demand that the cache is discarded.
func (s *sizes) demandExact(cached uint64, first *waiter, ahead bool) (want, need uint64, giveUp bool) {
	switch {
	case first == nil && ahead && cached < s.low:
		return s.exact - cached, 1, false
	case first == nil:
		return 0, 0, false
	case first.n > s.exact:
		return first.n, first.n, false
	case cached > 0 && cached < s.exact && !first.joinTried:
		// The numbers that are missing to n may adjoin the rest and complete the run.
		return s.exact - cached, 1, false
	}
	return s.exact, first.n, true
}
