package segment

import (
	"math"
	"math/rand/v2"
	"testing"
)

// numbersAbove lists the first n numbers of a member above id, one by one.
func numbersAbove(h Share, id uint64, n int) (all []uint64) {
	for x := id + 1; len(all) < n; x++ {
		if h.gives(x) {
			all = append(all, x)
		}
	}
	return all
}

// gives reports whether x is a number of a sequence that the member gives.
func (h Share) gives(x uint64) bool {
	step := max(h.counts.Step, 1)
	return h.Has(x) && x%step == h.counts.Anchor%step
}

func TestBlocksAreDividedAsCountingOneByOneDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	for range 3000 {
		h := Share{Plan: 3, Count: 2 + random.Uint64N(4), Interleave: InBlocks, Block: 1 + random.Uint64N(12)}
		h.Position = random.Uint64N(h.Count)
		if random.IntN(2) == 0 {
			step := 2 + random.Uint64N(4)
			h.Block *= step
			h = h.By(Rule{Step: step, Anchor: 1 + random.Uint64N(step)})
		}
		id, floor, n := random.Uint64N(200), random.Uint64N(200), 1+random.Uint64N(40)
		from := max(id, floor)
		last, ok := h.End(id, floor, n)
		if !ok {
			t.Fatalf("%+v: no end of %d numbers above %d", h, n, from)
		}
		s := h.Segment(last, n)
		if step := max(h.counts.Step, 1); s.Last() > last || s.Last()+step <= last || s.Remaining() != h.Whole(n) || s.Remaining() < n || s.Next() <= from {
			t.Fatalf("%+v: %d numbers above %d end at %d; got %+v", h, n, from, last, s)
		}
		all := numbersAbove(h, s.Next()-1, int(s.Remaining()))
		if all[len(all)-1] != s.Last() {
			t.Fatalf("%+v: %d numbers above %d: got the last %d, want %v", h, n, from, last, all)
		}
		// What is skipped is the rest of a block that is too short, or that of another begun block.
		if skipped := h.Remaining(from, s.Next()-1); skipped > min(n, h.Run()) && n <= h.Run() || skipped >= h.Run()+1 || h.counts.Step == 0 && skipped >= min(n, h.Block) {
			t.Fatalf("%+v: %d numbers above %d begin at %d: %d are skipped", h, n, from, s.Next(), skipped)
		}
		want := uint64(0)
		for x := from + 1; x <= last; x++ {
			if h.gives(x) {
				want++
			}
		}
		// A step that is cut in two may have its number in either part.
		if got := h.Remaining(from, last); got != want && (h.counts.Step == 0 || got+1 != want) {
			t.Fatalf("%+v: left(%d, %d) = %d, want %d", h, from, last, got, want)
		}
		highest := random.Uint64N(400)
		room, ok := h.Room(floor, n, highest)
		for x := uint64(0); x < 420; x++ {
			end, _ := h.End(x, floor, n)
			if fits := end <= highest; fits != (ok && x <= room) {
				t.Fatalf("%+v: room(%d, %d, %d) = %d, %v; but at id %d they end at %d", h, floor, n, highest, room, ok, x, end)
			}
		}
		checkSegment(t, random, s, all)
	}
}

// checkSegment does what a segment does with its numbers too.
func checkSegment(t *testing.T, random *rand.Rand, s Segment, all []uint64) {
	t.Helper()
	whole, numbers, apart := s, all, s.Step
	for step := 0; len(all) > 0 && step < 30; step++ {
		if s.Next() != all[0] || s.Last() != all[len(all)-1] || s.Remaining() != uint64(len(all)) {
			t.Fatalf("%+v is not %v", s, all)
		}
		x := all[0] + random.Uint64N(all[len(all)-1]-all[0]+20) - min(all[0], 10)
		upTo, has := uint64(0), false
		for _, number := range all {
			if number <= x {
				upTo++
			}
			has = has || number == x
		}
		if s.UpTo(x) != upTo || s.Has(x) != has {
			t.Fatalf("%+v: upTo(%d) = %d, has = %v; want %d, %v", s, x, s.UpTo(x), s.Has(x), upTo, has)
		}
		if has {
			before, behind := s.Around(x)
			if before.Remaining() != upTo-1 || behind.Remaining() != uint64(len(all))-upTo || behind.remaining > 0 && behind.Next() != all[upTo] {
				t.Fatalf("%+v around %d: %+v and %+v", s, x, before, behind)
			}
		}
		if cut := uint64(len(all)); cut > 1 {
			cut = 1 + random.Uint64N(cut-1)
			front, back := s, s
			front.Trim(cut)
			back.Drop(cut)
			if joined := front; !joined.Join(back) || joined != s {
				t.Fatalf("%+v and %+v are not joined to %+v but to %+v", front, back, s, joined)
			}
		}
		n := 1 + random.Uint64N(8)
		first, ok := s.Take(n)
		fits := n <= uint64(len(all)) && all[n-1] == all[0]+(n-1)*apart
		if ok != fits || ok && first != all[0] {
			t.Fatalf("Take(%d) = %d, %v of %v", n, first, ok, all)
		}
		if !ok {
			skip := 0
			for skip < len(all) && (len(all)-skip < int(n) || all[skip+int(n)-1] != all[skip]+(n-1)*apart) {
				skip++
			}
			got, can := s.Skip(n)
			if can != (skip < len(all)) || can && got != uint64(skip) || !can && got != 0 {
				t.Fatalf("Skip(%d) = %d, %v of %v; want %d", n, got, can, all, skip)
			}
			if !can {
				return
			}
			all = all[skip:]
			continue
		}
		all = all[n:]
	}
	if s = whole; len(numbers) > 3 {
		s.Drop(3)
		other, front := whole, whole
		other.Plan++
		other.Drop(3)
		front.Trim(3)
		if front.Join(other) {
			t.Fatal("segments of two plans were joined")
		}
	}
}

func TestARowsRestIsOfItsResidue(t *testing.T) {
	for count := uint64(2); count < 6; count++ {
		for position := range count {
			h := Share{Count: count, Position: position, Interleave: InSteps}
			for n := uint64(0); n < 40; n++ {
				want := max(n, position+1)
				for !h.Has(want) {
					want++
				}
				if got, ok := h.Rest(n); !ok || got != want {
					t.Errorf("%d of %d: rest(%d) = %d, %v; want %d", position, count, n, got, ok, want)
				}
			}
			for n := uint64(math.MaxUint64); n > math.MaxUint64-10; n-- {
				if got, ok := h.Rest(n); ok && (got < n || !h.Has(got)) {
					t.Errorf("%d of %d: rest(%d) = %d", position, count, n, got)
				}
			}
		}
	}
}

// A sequence that one member alone gives has consecutive numbers there, and the others have none.
func TestTheNumbersOfOneMemberAreInARow(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 2))
	for range 3000 {
		h := Share{Plan: 3, Count: 2 + random.Uint64N(63), Interleave: InBlocks, Block: 1 + random.Uint64N(10_000)}
		home, id := random.Uint64N(1<<16), random.Uint64N(1<<MostTickBits-2_000_000)
		n := 1 + random.Uint64N(1_000_000)
		for h.Position = range h.Count {
			of := h.Home(home)
			has := of.Has(id + 1)
			if has != (h.Position == home%h.Count) {
				t.Fatalf("%d of %d members, home %d: it owns %d: %v", h.Position, h.Count, home, id+1, has)
			}
			last, ok := of.End(id, id/2, n)
			if !has {
				if s := of.Segment(last, n); ok && s.Next() <= 1<<MostTickBits {
					t.Fatalf("%+v gives %d numbers up to %d", of, n, last)
				}
				continue
			}
			s := of.Segment(last, n)
			if !ok || s.Next() != id+1 || s.Last() != id+n || s.Remaining() != n || of.Whole(n) != n || of.Remaining(id, id+n) != n {
				t.Fatalf("%+v: %d numbers above %d are %+v", of, n, id, s)
			}
		}
	}
	if Alone.Home(3) != Alone {
		t.Error("a server alone has a home")
	}
}
