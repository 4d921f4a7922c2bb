package segment

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// reference is rule.next in unbounded numbers: nil if there is none.
func reference(r Rule, id, highest uint64) *big.Int {
	n := new(big.Int).SetUint64(id)
	number := new(big.Int).SetUint64(r.Anchor)
	step := new(big.Int).SetUint64(r.Step)
	if r.Step == 1 {
		number.Add(n, step)
	} else if id >= r.Anchor {
		k := new(big.Int).Sub(n, number)
		k.Div(k, step).Add(k, big.NewInt(1))
		number.Add(number, k.Mul(k, step))
	}
	if number.Cmp(new(big.Int).SetUint64(highest)) > 0 {
		return nil
	}
	return number
}

// checkRule compares a rule with the reference.
func checkRule(t *testing.T, r Rule, id, highest, n uint64) {
	t.Helper()
	first := reference(r, id, highest)
	next, ok := r.Next(id, highest)
	if ok != (first != nil) || ok && new(big.Int).SetUint64(next).Cmp(first) != 0 {
		t.Fatalf("%+v up to %d: after %d comes %d, %v; want %v", r, highest, id, next, ok, first)
	}
	rest := r.Remaining(id, highest)
	last := new(big.Int)
	if ok {
		last.SetUint64(rest - 1)
		last.Mul(last, new(big.Int).SetUint64(r.Step)).Add(last, first)
		if gap := new(big.Int).Sub(new(big.Int).SetUint64(highest), last); gap.Sign() < 0 || gap.Cmp(new(big.Int).SetUint64(r.Step)) >= 0 {
			t.Fatalf("%+v up to %d: %d numbers are left after %d, which end at %v", r, highest, rest, id, last)
		}
	} else if rest != 0 {
		t.Fatalf("%+v up to %d: %d numbers are left after %d, want none", r, highest, rest, id)
	}
	if n == 0 {
		return
	}
	bound, ok := r.Room(n, highest)
	if fits := ok && id < bound; fits != (rest >= n) {
		t.Fatalf("%+v up to %d: with %d left after %d there is room for %d: %v (below %d)", r, highest, rest, id, n, fits, bound)
	}
	if rest >= n {
		seg := Stepped(next, r.Step, n)
		if seg.Remaining() != n || seg.Last() > highest || seg.Last() < next {
			t.Fatalf("%+v up to %d: %d numbers from %d are %+v", r, highest, n, next, seg)
		}
	}
}

func FuzzRuleCountsAsNumbersDo(f *testing.F) {
	const top = math.MaxUint64
	for _, x := range []uint64{1, 2, 10, 1 << 31, 1<<32 - 1, 1<<53 - 1, 1<<63 - 1, 1 << 63, 1<<63 + 1, top - 10, top - 1, top} {
		for _, step := range []uint64{1, 2, 10, 1 << 63, top} {
			f.Add(step, uint64(1), x, uint64(top), uint64(1))
			f.Add(step, x, x-1, uint64(top), uint64(2))
			f.Add(step, uint64(5), x, x, uint64(1))
			f.Add(step, x, uint64(0), x, x)
		}
	}
	f.Fuzz(func(t *testing.T, step, anchor, id, highest, n uint64) {
		checkRule(t, Rule{Step: max(step, 1), Anchor: max(anchor, 1)}, id, highest, n)
	})
}

func FuzzSteppedSegmentNeverGivesANumberTwice(f *testing.F) {
	f.Add(uint64(1), uint64(10), uint64(100), []byte{1, 2, 50, 200, 1})
	f.Add(uint64(math.MaxUint64-30), uint64(10), uint64(4), []byte{1, 129, 1, 1, 1})
	f.Fuzz(func(t *testing.T, first, step, n uint64, ops []byte) {
		n %= 300
		s := Stepped(first, step, n)
		if s.Remaining() == 0 {
			return
		}
		want := make([]uint64, n)
		for i := range want {
			want[i] = first + uint64(i)*step
			if i > 0 && want[i] <= want[i-1] {
				t.Fatalf("%d numbers from %d in steps of %d wrap at %d", n, first, step, i)
			}
		}
		for _, op := range ops {
			k := uint64(op % 8)
			switch op / 64 {
			case 0:
				if got, ok := s.Take(k); ok != (k > 0 && k <= uint64(len(want))) || ok && got != want[0] {
					t.Fatalf("Take(%d) = %d, %v of %v", k, got, ok, want)
				} else if ok {
					want = want[k:]
				}
			case 1:
				s.Trim(uint64(len(want)) - min(k, uint64(len(want))))
				want = want[:uint64(len(want))-min(k, uint64(len(want)))]
			case 2:
				if k >= uint64(len(want)) {
					continue
				}
				if !s.Has(want[k]) || s.UpTo(want[k]) != k+1 || s.UpTo(want[k]-1) != k && want[k] > 0 || step > 1 && s.Has(want[k]+1) && want[k] < math.MaxUint64 {
					t.Fatalf("%+v does not know %d at %d", s, want[k], k)
				}
				before, behind := s.Around(want[k])
				if before.Remaining() != k || behind.Remaining() != uint64(len(want))-k-1 || k > 0 && before.Last() != want[k-1] {
					t.Fatalf("around %d of %v are %+v and %+v", want[k], want, before, behind)
				}
				s, want = behind, want[k+1:]
			default:
				if len(want) == 0 {
					continue
				}
				tail := Stepped(want[len(want)-1], step, 2)
				tail.Take(1)
				joined := s.Join(tail)
				if tail.Remaining() > 0 && !joined {
					t.Fatalf("%+v does not join %+v", s, tail)
				}
				if tail.Remaining() > 0 {
					want = append(want, tail.Next())
				}
			}
			if s.Remaining() != uint64(len(want)) || len(want) > 0 && (s.Next() != want[0] || s.Last() != want[len(want)-1]) {
				t.Fatalf("got %+v, want %v", s, want)
			}
		}
	})
}

func TestRuleCountsAsNumbersDoNearTheEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	ends := []uint64{0, 1, 1 << 32, 1 << 53, 1 << 62, 1<<63 - 1, 1 << 63, math.MaxUint64}
	near := func() uint64 {
		n, d := ends[random.IntN(len(ends))], random.Uint64N(30)
		if random.IntN(2) == 0 {
			return n - min(n, d)
		}
		return n + min(math.MaxUint64-n, d)
	}
	for range 20_000 {
		r := Rule{Step: max([]uint64{1, 2, 7, 10, near(), near()}[random.IntN(6)], 1), Anchor: max(near(), 1), Max: max(near(), 1)}
		checkRule(t, r, near(), r.Max, 1+random.Uint64N(5))
	}
}
