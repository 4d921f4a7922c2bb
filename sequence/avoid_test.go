package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/segment"
)

func TestANumberThatSomebodyChoseIsNotGiven(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "large": 0})
	for _, c := range []struct {
		name   string
		change func(*sequence.Options)
	}{
		{"small segments", steadySize(7)},
		{"segments of 100", steadySize(100)},
		{"large", cacheSize(1000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.exec(t, "UPDATE sequence SET id = 0 WHERE name = 'photos'")
			s := p.open(t, c.change)
			var book ledger
			top := uint64(1)
			random := rand.New(rand.NewPCG(1, 2))
			for i := range 3000 {
				switch random.IntN(4) {
				case 0, 1:
					n := uint64(1 + random.IntN(5))
					first := mustTake(t, s, "photos", n)
					book.add(t, fmt.Sprint("take ", i), first, n)
					top = max(top, first+n)
				case 2: // rising, as in an import
					numbers := make([]uint64, 0, 20)
					for range 1 + random.IntN(20) {
						if _, given := book.given[top]; !given {
							book.add(t, fmt.Sprint("rising ", i), top, 1)
							numbers = append(numbers, top)
						}
						top++
					}
					if err := s.Avoid(t.Context(), []byte("photos"), numbers); err != nil {
						t.Fatal(err)
					}
				default: // anywhere near
					n := max(top, 50) - 50 + uint64(random.IntN(400))
					if _, given := book.given[n]; given || n == 0 {
						continue
					}
					book.add(t, fmt.Sprint("anywhere ", i), n, 1)
					if err := s.Avoid(t.Context(), []byte("photos"), []uint64{n}); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// A caller that waits while a counter is moved must not get the number for which it is moved.
func TestANumberThatSomebodyChoseIsNotGivenToWhoWaits(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 100})
	s := p.open(t, steadySize(5))
	if exists, err := s.Exists(t.Context(), []byte("photos")); !exists || err != nil {
		t.Fatal(exists, err)
	}
	c := sequence.Inside(s).Cache("photos")
	c.HoldUp() // the reservation that a caller waits for comes after this
	taken := make(chan uint64)
	for range 3 {
		go func() {
			n, _ := s.Take(context.Background(), []byte("photos"), 1)
			taken <- n
		}()
	}
	eventually(t, "three who wait", func() bool {
		return c.HasWaited() == 3
	})
	err := sequence.Inside(s).MoveAbove(t.Context(), c, 103)
	c.GoOn()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if n := <-taken; n == 101 || n == 103 || n == 0 {
			t.Errorf("given: %d", n)
		}
	}
}

func TestAnImportMovesTheCounterInSteps(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 10})
	s := p.open(t, steadySize(1000))
	other := p.open(t, steadySize(1000))
	moved, last := 0, uint64(0)
	for n := uint64(5000); n < 15000; n++ {
		if err := s.Avoid(t.Context(), []byte("photos"), []uint64{n}); err != nil {
			t.Fatal(err)
		}
		if n%100 != 0 {
			continue
		}
		id := p.id(t, "photos")
		if id < n {
			t.Fatalf("counter: got %d after %d was chosen", id, n)
		}
		if id != last {
			moved, last = moved+1, id
		}
	}
	if moved > 11 {
		t.Errorf("10000 rising numbers moved the counter %d times, want about 10", moved)
	}
	if got := mustTake(t, other, "photos", 1); got < 15000 {
		t.Errorf("another proxy: got %d, want a number above the import's", got)
	}
	if got := mustTake(t, s, "photos", 1); got < 15000 {
		t.Errorf("got %d, want a number above the import's", got)
	}
	// A sequence of a typed size is moved exactly.
	if _, err := s.Create(t.Context(), sequence.CreateOptions{Name: "exact", Cache: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Avoid(t.Context(), []byte("exact"), []uint64{70}); err != nil {
		t.Fatal(err)
	}
	wantTaken(t, s, "exact", 71, 72)
	// Who makes the keys between two numbers brings them one by one. One move is for all of them.
	mustCreate(t, s, sequence.CreateOptions{Name: "wide", Increment: 50, Cache: 1})
	wantTaken(t, s, "wide", 1, 51)
	for n := uint64(52); n <= 100; n++ {
		if err := s.Avoid(t.Context(), []byte("wide"), []uint64{n}); err != nil {
			t.Fatal(err)
		}
		if id := p.id(t, "wide"); id != 100 {
			t.Fatalf("after %d was chosen the counter is at %d, want 100", n, id)
		}
	}
	wantTaken(t, s, "wide", 101, 151)
}

func TestANumberThatTheSequenceNeverGivesMovesNothing(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	s := p.open(t)
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Max: 1 << 40, Cache: 5})
	mustCreate(t, s, sequence.CreateOptions{Name: "tens", Increment: 10, Cache: 5})
	for _, c := range []struct {
		name   string
		chosen []uint64
		want   uint64
	}{
		{"photos", nil, 1},
		{"photos", []uint64{1<<40 + 1, 1 << 63, 1<<64 - 1, 0}, 2},
		{"photos", []uint64{1<<40 + 1, 3, 1000, 1 << 63}, 4},
		{"tens", nil, 1},
		{"tens", []uint64{12, 20, 30}, 11},
		{"tens", []uint64{21, 22}, 31},
		{"tens", []uint64{500}, 41},
	} {
		if err := s.Avoid(t.Context(), []byte(c.name), c.chosen); err != nil {
			t.Fatal(err)
		}
		if got := mustTake(t, s, c.name, 1); got != c.want {
			t.Errorf("%s: after somebody chose %v got %d, want %d", c.name, c.chosen, got, c.want)
		}
	}
	settled(t, s, "photos")
	settled(t, s, "tens")
	for name, want := range map[string][2]uint64{"photos": {1000, 1100}, "tens": {500, 600}} {
		if got := p.id(t, name); got < want[0] || got > want[1] {
			t.Errorf("%s: the counter is at %d, want it behind %d", name, got, want[0])
		}
	}
}

// avoiding avoids a number while the segment with it is being returned to the table.
type avoiding struct {
	sequence.Reserver
	avoid func() error
	got   error
}

func (a *avoiding) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	a.got = a.avoid()
	return a.Reserver.GiveBack(ctx, name, epoch, seg)
}

// A number that is about to be returned to the table is in no cache, but was not given: the next
// reservation would give it.
func TestANumberThatIsBeingPutBackIsNotTakenForGiven(t *testing.T) {
	flush := func(s *sequence.Sequences) error { return s.Flush(context.Background(), []byte("photos")) }
	for _, c := range []struct {
		name    string
		advance bool // a cache of whole steps exists that never had a number
		end     func(*sequence.Sequences) error
	}{
		{"FLUSH", false, flush},
		{"Close", false, func(s *sequence.Sequences) error { return s.Close(context.Background()) }},
		{"FLUSH beside whole steps", true, flush},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
			s := p.open(t, steadySize(20))
			mustAlter(t, s, "photos", sequence.Alteration{Max: ref(uint64(1000))})
			mustTake(t, s, "photos", 1)
			settled(t, s, "photos")
			if c.advance {
				if _, err := s.Advance(t.Context(), []byte("photos"), 5000); !errors.Is(err, sequence.ErrExhausted) {
					t.Fatalf("advanced by more than there is: got %v, want ErrExhausted", err)
				}
			}
			cached := sequence.Inside(s).Cache("photos")
			a := &avoiding{avoid: func() error {
				return sequence.Inside(s).Avoid(context.Background(), cached, []uint64{10}, time.Now().Add(200*time.Millisecond))
			}}
			cached.ReserveFrom(func(r sequence.Reserver) sequence.Reserver {
				a.Reserver = r
				return a
			})
			if err := c.end(s); err != nil {
				t.Fatal(err)
			}
			if a.got == nil {
				t.Errorf("10 is said to be avoided, and the row is at %d", p.id(t, "photos"))
			}
		})
	}
}

// Numbers in the row that a proxy found may be returned by another proxy, and the counter is then
// lower.
func TestANumberThatSomebodyChoseIsNotGivenAfterOthersHavePutNumbersBack(t *testing.T) {
	for name, exact := range map[string]uint64{"measured": 0, "CACHE n": 20} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t).withTable(t, map[string]uint64{"photos": 4000})
			holder, s := p.open(t, steadySize(1000)), p.open(t, steadySize(1000))
			mustAlter(t, holder, "photos", sequence.Alteration{Cache: &exact})
			for range 40 {
				// Its cached numbers are of reservations that were made with CACHE n.
				mustTake(t, holder, "photos", 1)
				settled(t, holder, "photos")
			}
			if _, err := s.Step(t.Context(), []byte("photos")); err != nil {
				// It is found at what the other one has reserved.
				t.Fatal(err)
			}
			chosen := p.id(t, "photos") - 5
			if exact > 0 { // a number that was given long ago
				if err := s.Avoid(t.Context(), []byte("photos"), []uint64{1}); err != nil {
					t.Fatal(err)
				}
			}
			if err := holder.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if exact == 0 && p.id(t, "photos") >= chosen {
				t.Fatalf("nothing was put back: the row stands at %d", p.id(t, "photos"))
			}
			if err := s.Avoid(t.Context(), []byte("photos"), []uint64{chosen}); err != nil {
				t.Fatal(err)
			}
			if id := p.id(t, "photos"); id < chosen {
				t.Errorf("the row stands at %d after %d was chosen", id, chosen)
			}
		})
	}
}

// Where another proxy has reached the end meanwhile, nothing after the chosen number can be
// reserved.
func TestANumberThatSomebodyChoseBeforeTheEndIsAvoidedWhenOthersAreThere(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(100)), p.open(t, steadySize(100))
	mustAlter(t, a, "photos", sequence.Alteration{Max: ref(uint64(1000))})
	mustTake(t, a, "photos", 1)
	settled(t, a, "photos")
	if err := b.Avoid(t.Context(), []byte("photos"), []uint64{1000}); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(1000) {
		if err := a.Avoid(t.Context(), []byte("photos"), []uint64{n}); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
}

// Near the end of a sequence, a chosen number does not use up the numbers after it.
func TestANumberThatSomebodyChoseNearTheEndLeavesTheRest(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	s := p.open(t, steadySize(100))
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Max: 1000})
	if err := s.Avoid(t.Context(), []byte("photos"), []uint64{998}); err != nil {
		t.Fatal(err)
	}
	wantTaken(t, s, "photos", 999, 1000)
}

// An old chosen number does not make a sequence begin its next round.
func TestANumberThatSomebodyChoseDoesNotTurnASequenceWithCycle(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	mustCreate(t, p.open(t), sequence.CreateOptions{Name: "photos", Cache: 5, Max: 5000, Cycle: true})
	if err := p.open(t).Avoid(t.Context(), []byte("photos"), []uint64{5000}); err != nil {
		t.Fatal(err)
	}
	if err := p.open(t).Avoid(t.Context(), []byte("photos"), []uint64{500}); err != nil {
		t.Fatal(err)
	}
	if id := p.id(t, "photos"); id != 5000 {
		t.Errorf("the row stands at %d", id)
	}
}
