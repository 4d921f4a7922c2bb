package sequence

// Segment is a reserved range of consecutive numbers that are still to be given out.
// The zero value is an empty segment. It has no lock: its owner synchronises.
type Segment struct {
	// next is the number that leaves next; 0 means empty, because 0 is never reserved: a row's id is the last
	// number given, so the first one is at least 1. Taking 2^64-1 wraps next to 0, which is just as empty.
	next uint64
	last uint64
}

// NewSegment returns the segment first..last, both inclusive. It is empty if first is 0 or above last.
func NewSegment(first, last uint64) Segment {
	if first == 0 || first > last {
		return Segment{}
	}
	return Segment{next: first, last: last}
}

// Remaining is how many numbers are left.
func (s *Segment) Remaining() uint64 {
	if s.next == 0 || s.next > s.last {
		return 0
	}
	return s.last - s.next + 1
}

// Next is the number that Take(1) would give, or 0 if the segment is empty.
func (s *Segment) Next() uint64 {
	if s.Remaining() == 0 {
		return 0
	}
	return s.next
}

// Last is the highest number of the segment, or 0 if it is empty.
func (s *Segment) Last() uint64 {
	if s.Remaining() == 0 {
		return 0
	}
	return s.last
}

// Take removes n consecutive numbers and returns the first of them. It reports false, and takes nothing, if n is 0
// or more than remain.
func (s *Segment) Take(n uint64) (first uint64, ok bool) {
	if n == 0 || n > s.Remaining() {
		return 0, false
	}
	first = s.next
	s.next += n
	return first, true
}

// Join appends o if it begins right after s ends, so that a run of numbers may cross the border, or if s is empty.
// It reports whether o is now part of s; if not, s is unchanged.
func (s *Segment) Join(o Segment) bool {
	switch {
	case o.Remaining() == 0:
		return true
	case s.Remaining() == 0:
		*s = o
		return true
	case s.last+1 == o.next: // s.last+1 cannot wrap onto o.next: an o that is not empty never starts at 0
		s.last = o.last
		return true
	}
	return false
}

// Trim keeps the first n numbers and returns how many were cut off the end.
func (s *Segment) Trim(n uint64) (cut uint64) {
	have := s.Remaining()
	if have <= n {
		return 0
	}
	if n == 0 {
		*s = Segment{}
		return have
	}
	s.last = s.next + n - 1
	return have - n
}
