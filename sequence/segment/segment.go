package segment

import "math/bits"

// Segment is a reserved run of numbers that are still to be given: first, first+step, first+2*step
// ... If several members divide the numbers in blocks, it is the numbers of one member's blocks,
// with a border behind each block. The zero value is an empty segment. It has no lock: its owner
// synchronises.
type Segment struct {
	next      uint64 // the next number; if remaining is 0, the one that would be next
	remaining uint64 // how many numbers remain; the last one never exceeds 64 bits
	Step      uint64
	// Numbers in a block, which ends at a multiple of run*step; 0: no blocks.
	Run  uint64
	jump uint64 // from the last number of a block to the first one of the next
	Plan uint64 // the plan that the numbers were reserved under
}

// New returns the segment first..last, both inclusive. It is empty if first is 0 or above last.
func New(first, last uint64) Segment {
	if first == 0 || first > last {
		return Segment{}
	}
	return Segment{next: first, remaining: last - first + 1, Step: 1}
}

// Stepped returns the n numbers first, first+step ... It is empty if first, step or n is 0, or if
// the numbers exceed 64 bits.
func Stepped(first, step, n uint64) Segment {
	if first == 0 || step == 0 || n == 0 {
		return Segment{}
	}
	if hi, lo := bits.Mul64(step, n-1); hi != 0 || first+lo < first {
		return Segment{}
	}
	return Segment{next: first, remaining: n, Step: step}
}

// Remaining returns how many numbers remain.
func (s *Segment) Remaining() uint64 { return s.remaining }

// Next returns the number that Take(1) would take, or 0 if the segment is empty.
func (s *Segment) Next() uint64 {
	if s.remaining == 0 {
		return 0
	}
	return s.next
}

// Last returns the highest number of the segment, or 0 if it is empty.
func (s *Segment) Last() uint64 {
	if s.remaining == 0 {
		return 0
	}
	return s.at(s.remaining - 1)
}

// at returns the number after i others. It may be the one after the last, which is wrong if it
// exceeds 64 bits.
func (s *Segment) at(i uint64) uint64 {
	if s.Run == 0 {
		return s.next + i*s.Step
	}
	borders := i / s.Run
	if i%s.Run >= s.Run-s.used() {
		borders++
	}
	return s.next + i*s.Step + borders*(s.jump-s.Step)
}

// used returns how many numbers of the block come before the next one.
func (s *Segment) used() uint64 { return (s.next - 1) % (s.Run * s.Step) / s.Step }

// inBlock returns how many numbers remain before the next border.
func (s *Segment) inBlock() uint64 {
	if s.Run == 0 || s.remaining == 0 {
		return s.remaining
	}
	return min(s.remaining, s.Run-s.used())
}

// Take removes n consecutive numbers and returns the first; the others follow in steps. It returns
// false, and takes nothing, if n is 0 or more than remain, or if a border comes before the last of
// them; see Skip.
func (s *Segment) Take(n uint64) (first uint64, ok bool) {
	if n == 0 || n > s.remaining {
		return 0, false
	}
	if s.Run != 0 {
		if n > s.inBlock() {
			return 0, false
		}
		first = s.next
		s.Drop(n)
		return first, true
	}
	first = s.next
	s.remaining -= n
	s.next += n * s.Step // beyond 64 bits only if nothing remains
	return first, true
}

// Skip discards numbers until Take(n) succeeds, and returns how many. If it never would, it
// discards nothing.
func (s *Segment) Skip(n uint64) (skipped uint64, ok bool) {
	room := s.inBlock()
	switch {
	case n == 0 || n > s.remaining:
		return 0, false
	case n <= room:
		return 0, true
	case n > s.Run || n > s.remaining-room:
		return 0, false
	}
	s.Drop(room)
	return room, true
}

// Drop removes the first n numbers, across borders. n must not exceed Remaining.
func (s *Segment) Drop(n uint64) {
	s.next, s.remaining = s.at(n), s.remaining-n
}

// Join appends o if it begins one step after s ends, so that a run of numbers may cross the border,
// or if s is empty. It reports whether it did.
func (s *Segment) Join(o Segment) bool {
	switch {
	case o.remaining == 0:
		return true
	case s.remaining == 0:
		*s = o
		return true
	case s.Step == o.Step && s.Run == o.Run && s.jump == o.jump && s.Plan == o.Plan && s.Last() < o.next && s.at(s.remaining) == o.next:
		s.remaining += o.remaining
		return true
	}
	return false
}

// Trim keeps the first n numbers and returns how many it cut off.
func (s *Segment) Trim(n uint64) (cut uint64) {
	cut = s.remaining - min(n, s.remaining)
	s.remaining -= cut
	return cut
}

// UpTo returns how many of the numbers are n or lower.
func (s *Segment) UpTo(n uint64) uint64 {
	if s.remaining == 0 || n < s.next {
		return 0
	}
	if s.Run == 0 {
		return min((n-s.next)/s.Step+1, s.remaining)
	}
	used := s.used()
	way := n - s.next + used*s.Step // from the first number of the block
	period := (s.Run-1)*s.Step + s.jump
	return min(way/period*s.Run+min(way%period/s.Step+1, s.Run)-used, s.remaining)
}

// Has reports whether n is one of the numbers.
func (s *Segment) Has(n uint64) bool {
	count := s.UpTo(n)
	return count > 0 && s.at(count-1) == n
}

// Around returns the numbers before n and those after it. n must be one of them.
func (s *Segment) Around(n uint64) (before, behind Segment) {
	before, behind = *s, *s
	before.remaining = s.UpTo(n) - 1
	behind.Drop(before.remaining + 1)
	return before, behind
}
