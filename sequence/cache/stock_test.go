package cache

import (
	"slices"
	"testing"

	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
)

// stockOf holds segments, each given by its first and last number.
func stockOf(bounds ...[2]uint64) *stock {
	s := new(stock)
	for _, b := range bounds {
		s.add(segment.New(b[0], b[1]))
	}
	return s
}

// check fails the test unless the counts match the numbers.
func (s *stock) check(t *testing.T) {
	t.Helper()
	sum := s.cur.Remaining()
	for i := range s.queue {
		sum += s.queue[i].Remaining()
	}
	if s.cached != sum {
		t.Errorf("%d numbers are counted as cached, the segments have %d", s.cached, sum)
	}
	if of := s.gaps.Sum() + s.given + s.cached + s.leaving; s.reserved != of {
		t.Errorf("%d are counted as reserved, and %d as given, cached, leaving or unused", s.reserved, of)
	}
	if len(s.queue) > maxQueued+1 {
		t.Errorf("they are in %d pieces", len(s.queue)+1)
	}
}

func TestWhatIsInMemoryIsGivenInOrderAndTheRestIsCounted(t *testing.T) {
	take := func(t *testing.T, s *stock, n, want uint64) {
		t.Helper()
		if got, ok := s.take(n); got != want || ok != (want != 0) {
			t.Errorf("a take of %d gives %d, %v; want %d", n, got, ok, want)
		}
	}
	type unused = map[stats.Unused]uint64
	for name, c := range map[string]struct {
		do      func(t *testing.T, s *stock)
		left    []uint64 // of 10 to 12 and 20 to 22
		leaving uint64
		unused  unused
	}{
		"nothing":            {func(*testing.T, *stock) {}, []uint64{10, 11, 12, 20, 21, 22}, 0, nil},
		"a run that fits":    {func(t *testing.T, s *stock) { take(t, s, 3, 10) }, []uint64{20, 21, 22}, 0, nil},
		"a run behind it":    {func(t *testing.T, s *stock) { take(t, s, 1, 10); take(t, s, 3, 20) }, nil, 0, unused{stats.UnusedRun: 2}},
		"a run too long":     {func(t *testing.T, s *stock) { take(t, s, 4, 0) }, []uint64{10, 11, 12, 20, 21, 22}, 0, nil},
		"one that adjoins":   {func(t *testing.T, s *stock) { s.add(segment.New(23, 24)); take(t, s, 5, 20) }, nil, 0, unused{stats.UnusedRun: 3}},
		"one that is missed": {func(_ *testing.T, s *stock) { s.miss(stats.UnusedAlter, 9) }, []uint64{10, 11, 12, 20, 21, 22}, 0, unused{stats.UnusedAlter: 9}},
		"cut within":         {func(_ *testing.T, s *stock) { s.cut(11) }, []uint64{10, 12, 20, 21, 22}, 0, unused{stats.UnusedChosen: 1}},
		"cut at an end": {
			func(_ *testing.T, s *stock) { s.cut(10); s.cut(22) },
			[]uint64{11, 12, 20, 21},
			0,
			unused{stats.UnusedChosen: 2},
		},
		"cut all of one": {
			func(_ *testing.T, s *stock) { s.cut(10); s.cut(11); s.cut(12) },
			[]uint64{20, 21, 22},
			0,
			unused{stats.UnusedChosen: 3},
		},
		"trimmed":         {func(_ *testing.T, s *stock) { s.trim(2) }, []uint64{10, 11}, 0, unused{stats.UnusedCache: 4}},
		"trimmed to more": {func(_ *testing.T, s *stock) { s.trim(7) }, []uint64{10, 11, 12, 20, 21, 22}, 0, nil},
		"passed over":     {func(_ *testing.T, s *stock) { s.dropUpTo(12) }, []uint64{20, 21, 22}, 0, unused{stats.UnusedRestart: 3}},
		"cut above":       {func(_ *testing.T, s *stock) { s.dropAbove(20) }, []uint64{10, 11, 12, 20}, 0, unused{stats.UnusedAlter: 2}},
		"given up":        {func(_ *testing.T, s *stock) { s.discard(stats.UnusedFlush) }, nil, 0, unused{stats.UnusedFlush: 6}},
		"released":        {func(_ *testing.T, s *stock) { s.release() }, []uint64{10, 11, 12}, 3, nil},
		"given back": {
			func(_ *testing.T, s *stock) { s.release(); s.settle(stats.UnusedReturned, 2) },
			[]uint64{10, 11, 12},
			1,
			unused{stats.UnusedReturned: 2},
		},
		"given back too often": {
			func(_ *testing.T, s *stock) { s.release(); s.settle(stats.UnusedReturned, 9) },
			[]uint64{10, 11, 12},
			0,
			unused{stats.UnusedReturned: 3},
		},
		"empty": {func(_ *testing.T, s *stock) { s.release(); s.empty(stats.UnusedDrop) }, nil, 0, unused{stats.UnusedDrop: 6}},
		"regained": {
			func(t *testing.T, s *stock) { take(t, s, 3, 10); take(t, s, 2, 20); s.regain(segment.New(21, 21)) },
			[]uint64{21, 22},
			0, nil,
		},
		"regained by an empty one": {
			func(t *testing.T, s *stock) { take(t, s, 3, 10); take(t, s, 3, 20); s.regain(segment.New(21, 22)) },
			[]uint64{21, 22},
			0, nil,
		},
		"regained far off": {
			func(t *testing.T, s *stock) { take(t, s, 2, 10); s.regain(segment.New(10, 11)) },
			[]uint64{12, 20, 21, 22},
			0, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stockOf([2]uint64{10, 12}, [2]uint64{20, 22})
			c.do(t, s)
			s.check(t)
			var counted stats.UnusedCounts
			for why, n := range c.unused {
				counted[why] = n
			}
			if s.gaps != counted || s.leaving != c.leaving {
				t.Errorf("%v are counted as unused and %d as leaving, want %v and %d", s.gaps, s.leaving, counted, c.leaving)
			}
			for _, n := range []uint64{10, 11, 12, 20, 21, 22} {
				if s.has(n) != slices.Contains(c.left, n) {
					t.Errorf("that it has %d is %v", n, s.has(n))
				}
			}
			for _, n := range c.left {
				if next := s.next(); next != n {
					t.Errorf("next is %d, want %d", next, n)
				}
				if s.highest() != c.left[len(c.left)-1] {
					t.Errorf("the highest is %d, want that of %v", s.highest(), c.left)
				}
				take(t, s, 1, n)
			}
			take(t, s, 1, 0)
			s.check(t)
		})
	}
}

// Numbers that were chosen here and there split the cache into a limited number of pieces.
func TestWhatIsInMemoryIsInFewPieces(t *testing.T) {
	s := stockOf([2]uint64{1, 1000})
	for n := uint64(2); n < 1000; n += 2 {
		if s.has(n) {
			s.cut(n)
		}
		s.check(t)
	}
	if !s.full() || s.highest() != 1000 {
		t.Errorf("%d pieces are held, up to %d", len(s.queue)+1, s.highest())
	}
	last := uint64(0)
	for s.cached > 0 {
		n, ok := s.take(1)
		if !ok || n <= last || n%2 == 0 && n != 1000 {
			t.Fatalf("behind %d comes %d, %v", last, n, ok)
		}
		last = n
	}
	s.check(t)
}
