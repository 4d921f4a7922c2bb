package sequence

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

func TestSegmentTakesBackOnlyWhatItsNextNumberFollows(t *testing.T) {
	for _, c := range []struct {
		name           string
		s              Segment
		take           uint64
		first, step, n uint64
		ok             bool
		next, left     uint64
	}{
		{"all", NewSegment(11, 20), 4, 11, 1, 4, true, 11, 10},
		{"the end of it", NewSegment(11, 20), 4, 13, 1, 2, true, 13, 8},
		{"of an empty one", NewSegment(11, 20), 10, 19, 1, 2, true, 19, 2},
		{"a gap behind", NewSegment(11, 20), 4, 11, 1, 3, false, 15, 6},
		{"what is in it", NewSegment(11, 20), 4, 14, 1, 2, false, 15, 6},
		{"nothing", NewSegment(11, 20), 4, 15, 1, 0, false, 15, 6},
		{"another step", steppedSegment(10, 5, 4), 2, 18, 1, 2, false, 20, 2},
		{"in steps", steppedSegment(10, 5, 4), 3, 15, 5, 2, true, 15, 3},
		{"the largest", NewSegment(math.MaxUint64-9, math.MaxUint64), 10, math.MaxUint64 - 1, 1, 2, true, math.MaxUint64 - 1, 2},
		{"of one that never was", Segment{}, 0, 1, 1, math.MaxUint64, false, 0, 0},
		{"of one that never was, without a step", Segment{}, 0, 0, 0, 7, false, 0, 0},
	} {
		c.s.Take(c.take)
		ok := c.s.PutBack(c.first, c.step, c.n)
		if first, _ := c.s.Take(1); ok != c.ok || c.left > 0 && (first != c.next || c.s.Remaining() != c.left-1) || c.left == 0 && c.s.Remaining() != 0 {
			t.Errorf("%s: got %v, next %d, %d left; want %v, next %d, %d left", c.name, ok, first, c.s.Remaining()+1, c.ok, c.next, c.left)
		}
	}
}

// Of whatever has happened in between, numbers are put back only if nobody else may get to see them.
func TestABlockIsPutBackOnlyWhereNothingHasHappenedSince(t *testing.T) {
	take := func(t *testing.T, s *Sequences) Block {
		t.Helper()
		b, err := s.TakeBlock(context.Background(), []byte("photos"), 100)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		name  string
		exact uint64
		since func(t *testing.T, s *Sequences, c *cache)
		back  bool
	}{
		{"nothing", 0, func(*testing.T, *Sequences, *cache) {}, true},
		{"a number was taken", 0, func(t *testing.T, s *Sequences, _ *cache) { mustTake(t, s, "photos", 1) }, false},
		{"a block was taken and put back", 0, func(t *testing.T, s *Sequences, _ *cache) {
			if b := take(t, s); !s.PutBack(b, 0) {
				t.Error("it was not put back")
			}
		}, true},
		{"of a block behind some are used", 0, func(t *testing.T, s *Sequences, _ *cache) { s.PutBack(take(t, s), 1) }, false},
		{"one of them was chosen", 0, func(t *testing.T, s *Sequences, _ *cache) {
			if err := s.Avoid(context.Background(), []byte("photos"), []uint64{50}); err != nil {
				t.Error(err)
			}
		}, false},
		{"the next one was chosen", 0, func(t *testing.T, s *Sequences, _ *cache) {
			if err := s.Avoid(context.Background(), []byte("photos"), []uint64{101}); err != nil {
				t.Error(err)
			}
		}, false},
		{"a later one was chosen", 0, func(t *testing.T, s *Sequences, _ *cache) {
			if err := s.Avoid(context.Background(), []byte("photos"), []uint64{150}); err != nil {
				t.Error(err)
			}
		}, true},
		{"it goes back to the first number", 0, func(t *testing.T, s *Sequences, c *cache) {
			c.void(UnusedRestart)
			c.mu.Lock()
			c.cur = NewSegment(101, 200) // as if all of them were reserved anew
			c.held, c.reserved = 100, c.reserved+100
			c.mu.Unlock()
		}, false},
		{"another plan", 0, func(_ *testing.T, _ *Sequences, c *cache) {
			c.mu.Lock()
			c.cur.plan++
			c.mu.Unlock()
		}, false},
		{"SETVAL", 0, func(_ *testing.T, _ *Sequences, c *cache) {
			c.revise(&row{name: "photos", max: math.MaxUint64, entry: entry{version: 7, past: 60}})
		}, false},
		{"MAXVALUE", 0, func(_ *testing.T, _ *Sequences, c *cache) {
			c.revise(&row{name: "photos", max: 60, entry: entry{version: 7}})
		}, false},
		{"DROP", 0, func(_ *testing.T, _ *Sequences, c *cache) { c.shut(ErrUnknown) }, false},
		{"CACHE 1000", 1000, func(*testing.T, *Sequences, *cache) {}, true},
		{"CACHE 20", 20, func(*testing.T, *Sequences, *cache) {}, false},
	} {
		sc := &script{exact: c.exact}
		s, cache := scripted(t, sc, steadySize(1000))
		b := take(t, s)
		if c.exact == 0 && cache.heldNow() == 0 {
			t.Fatalf("%s: nothing is left", c.name)
		}
		c.since(t, s, cache)
		if back := s.PutBack(b, 40); back != c.back {
			t.Errorf("%s: put back: got %v, want %v", c.name, back, c.back)
		}
		checkHeld(t, cache)
		if c.name != "DROP" && c.name != "MAXVALUE" {
			if next := mustTake(t, s, "photos", 1); c.back != (next == 41) {
				t.Errorf("%s: the next number: got %d", c.name, next)
			}
		}
		closeNow(t, s)
	}
}

func TestBlocksThatArePutBackNeverGiveANumberTwice(t *testing.T) {
	sc := &script{gaps: []uint64{0, 3, 0, 0, 100, 1}}
	s, c := scripted(t, sc, steadySize(50))
	defer closeNow(t, s)
	var book ledger
	var wg sync.WaitGroup
	var back sync.Map
	for worker := range uint64(8) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(worker, 3))
			for i := range 500 {
				who := fmt.Sprint("worker ", worker, " at ", i)
				if random.IntN(3) == 0 {
					n, err := s.Take(context.Background(), []byte("photos"), 1)
					if err != nil {
						t.Error(err)
						return
					}
					book.add(t, who, n, 1)
					continue
				}
				b, err := s.TakeBlock(context.Background(), []byte("photos"), 1+random.Uint64N(30))
				if err != nil {
					t.Error(err)
					return
				}
				used := random.Uint64N(b.N + 1)
				book.add(t, who, b.First, used)
				if s.PutBack(b, used) {
					back.Store(worker, true)
				}
			}
		})
	}
	wg.Wait()
	checkHeld(t, c)
	some := false
	back.Range(func(any, any) bool { some = true; return false })
	if !some {
		t.Error("nothing was ever put back")
	}
}
