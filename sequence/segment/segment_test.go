package segment

import (
	"math"
	"testing"
)

func TestSegmentGivesConsecutiveNumbersUntilItIsEmpty(t *testing.T) {
	s := New(11, 20)
	for _, step := range []struct {
		n, first uint64
		ok       bool
		left     uint64
	}{
		{1, 11, true, 9},
		{0, 0, false, 9},
		{10, 0, false, 9},
		{4, 12, true, 5},
		{math.MaxUint64, 0, false, 5},
		{5, 16, true, 0},
		{1, 0, false, 0},
	} {
		first, ok := s.Take(step.n)
		if first != step.first || ok != step.ok || s.Remaining() != step.left {
			t.Fatalf("Take(%d) = %d, %v with %d left; want %d, %v with %d left", step.n, first, ok, s.Remaining(), step.first, step.ok, step.left)
		}
	}
	if s.Next() != 0 || s.Last() != 0 {
		t.Errorf("an empty segment has next %d and last %d, want 0 and 0", s.Next(), s.Last())
	}
}

func TestSegmentReachesTheHighestNumberWithoutWrapping(t *testing.T) {
	s := New(math.MaxUint64-1, math.MaxUint64)
	if first, ok := s.Take(2); !ok || first != math.MaxUint64-1 {
		t.Fatalf("Take(2) = %d, %v; want %d, true", first, ok, uint64(math.MaxUint64-1))
	}
	if first, ok := s.Take(1); ok {
		t.Fatalf("Take(1) after the highest number gave %d", first)
	}
	full := New(1, math.MaxUint64)
	if got := full.Remaining(); got != math.MaxUint64 {
		t.Errorf("the full range has %d numbers, want %d", got, uint64(math.MaxUint64))
	}
}

func TestSegmentNeverHoldsZeroOrABackwardRange(t *testing.T) {
	for _, s := range []Segment{New(0, 5), New(6, 5), {}} {
		if got := s.Remaining(); got != 0 {
			t.Errorf("%+v has %d numbers, want 0", s, got)
		}
		if first, ok := s.Take(1); ok {
			t.Errorf("%+v gave %d", s, first)
		}
	}
}

func TestSegmentJoinsOnlyWhatAdjoins(t *testing.T) {
	for _, c := range []struct {
		name         string
		a, b         Segment
		joined       bool
		first, count uint64
	}{
		{"adjoining", New(1, 5), New(6, 9), true, 1, 9},
		{"gap", New(1, 5), New(7, 9), false, 1, 5},
		{"overlap", New(1, 5), New(5, 9), false, 1, 5},
		{"below", New(6, 9), New(1, 5), false, 6, 4},
		{"empty first", Segment{}, New(7, 9), true, 7, 3},
		{"empty second", New(1, 5), Segment{}, true, 1, 5},
		{"wrap", New(9, math.MaxUint64), New(1, 5), false, 9, math.MaxUint64 - 8},
	} {
		if got := c.a.Join(c.b); got != c.joined || c.a.Next() != c.first || c.a.Remaining() != c.count {
			t.Errorf("%s: got %v, next %d, %d numbers; want %v, next %d, %d numbers", c.name, got, c.a.Next(), c.a.Remaining(), c.joined, c.first, c.count)
		}
	}
}

func TestSegmentTrimCutsTheUpperEnd(t *testing.T) {
	for _, c := range []struct{ keep, cut, left uint64 }{{10, 0, 10}, {99, 0, 10}, {3, 7, 3}, {0, 10, 0}} {
		s := New(101, 110)
		if cut := s.Trim(c.keep); cut != c.cut || s.Remaining() != c.left || (c.left > 0 && s.Next() != 101) {
			t.Errorf("Trim(%d) cut %d and left %d from %d; want %d and %d from 101", c.keep, cut, s.Remaining(), s.Next(), c.cut, c.left)
		}
	}
}

func FuzzSegmentNeverGivesANumberTwice(f *testing.F) {
	f.Add(uint64(1), uint64(100), []byte{1, 2, 50, 1})
	f.Add(uint64(math.MaxUint64-3), uint64(math.MaxUint64), []byte{2, 3, 1, 1, 1})
	f.Fuzz(func(t *testing.T, first, last uint64, takes []byte) {
		s := New(first, last)
		want := first
		for _, n := range takes {
			got, ok := s.Take(uint64(n))
			if !ok {
				continue
			}
			if got != want || got+uint64(n)-1 > last || got+uint64(n)-1 < got {
				t.Fatalf("segment %d..%d: Take(%d) = %d, want %d inside it", first, last, n, got, want)
			}
			want += uint64(n)
		}
	})
}
