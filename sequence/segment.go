package sequence

import "math/bits"

// Segment is a reserved run of numbers that are still to be given out: first, first+step, first+2*step ...
// The zero value is an empty segment. It has no lock: its owner synchronises.
type Segment struct {
	next uint64 // the number that leaves next; of no meaning if left is 0
	left uint64 // how many numbers there are: next+(left-1)*step never exceeds 64 bits
	step uint64
}

// NewSegment returns the segment first..last, both inclusive. It is empty if first is 0 or above last.
func NewSegment(first, last uint64) Segment {
	if first == 0 || first > last {
		return Segment{}
	}
	return Segment{next: first, left: last - first + 1, step: 1}
}

// steppedSegment returns the n numbers first, first+step ... It is empty if first, step or n is 0, or if they go beyond 64 bits.
func steppedSegment(first, step, n uint64) Segment {
	if first == 0 || step == 0 || n == 0 {
		return Segment{}
	}
	if hi, lo := bits.Mul64(step, n-1); hi != 0 || first+lo < first {
		return Segment{}
	}
	return Segment{next: first, left: n, step: step}
}

// Remaining is how many numbers are left.
func (s *Segment) Remaining() uint64 { return s.left }

// Next is the number that Take(1) would give, or 0 if the segment is empty.
func (s *Segment) Next() uint64 {
	if s.left == 0 {
		return 0
	}
	return s.next
}

// Last is the highest number of the segment, or 0 if it is empty.
func (s *Segment) Last() uint64 {
	if s.left == 0 {
		return 0
	}
	return s.next + (s.left-1)*s.step
}

// Take removes n consecutive numbers and returns the first of them; the others follow in steps. It reports false, and takes
// nothing, if n is 0 or more than remain.
func (s *Segment) Take(n uint64) (first uint64, ok bool) {
	if n == 0 || n > s.left {
		return 0, false
	}
	first = s.next
	s.left -= n
	s.next += n * s.step // beyond 64 bits at most when nothing is left
	return first, true
}

// Join appends o if it begins one step after s ends, so that a run of numbers may cross the border, or if s is empty.
// It reports whether o is now part of s; if not, s is unchanged.
func (s *Segment) Join(o Segment) bool {
	switch {
	case o.left == 0:
		return true
	case s.left == 0:
		*s = o
		return true
	case s.step == o.step && s.Last() < o.next && o.next-s.Last() == s.step:
		s.left += o.left
		return true
	}
	return false
}

// Trim keeps the first n numbers and returns how many were cut off the end.
func (s *Segment) Trim(n uint64) (cut uint64) {
	cut = s.left - min(n, s.left)
	s.left -= cut
	return cut
}

// upTo is how many of the numbers are n or lower.
func (s *Segment) upTo(n uint64) uint64 {
	if s.left == 0 || n < s.next {
		return 0
	}
	return min((n-s.next)/s.step+1, s.left)
}

// has reports whether n is one of the numbers.
func (s *Segment) has(n uint64) bool {
	return s.left > 0 && n >= s.next && (n-s.next)%s.step == 0 && (n-s.next)/s.step < s.left
}

// around returns the numbers before n and those behind it. n must be one of them.
func (s *Segment) around(n uint64) (before, behind Segment) {
	before, behind = *s, *s
	before.left = (n - s.next) / s.step
	behind.Take(before.left + 1)
	return before, behind
}
