package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
)

// TestWholeStepsStayCongruent has the scheme of several ticket servers: each adds their count, and
// began with its own number. This is one of three, used by two proxies and directly.
func TestWholeStepsStayCongruent(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 2})
	var mu sync.Mutex
	seen := make(map[uint64]string)
	add := func(id uint64, by string) {
		mu.Lock()
		defer mu.Unlock()
		if id%3 != 2 {
			t.Errorf("%s: got %d, which belongs to another server of the three", by, id)
		}
		if other := seen[id]; other != "" {
			t.Errorf("%d was given twice, by %s and %s", id, other, by)
		}
		seen[id] = by
	}
	var wg sync.WaitGroup
	for i, size := range []uint64{10, 7} {
		s := p.open(t, steadySize(size))
		for range 2 {
			wg.Go(func() {
				last := uint64(0)
				for range 100 {
					id, err := s.Advance(context.Background(), []byte("photos"), 3)
					if err != nil {
						t.Error(err)
						return
					}
					if id <= last {
						t.Errorf("got %d after %d, want rising numbers", id, last)
					}
					last = id
					add(id, fmt.Sprintf("proxy %d", i))
				}
			})
		}
	}
	wg.Go(func() {
		for range 100 {
			r, err := p.db.Exec("UPDATE sequence SET id = LAST_INSERT_ID(id + 3) WHERE name = 'photos'")
			if err != nil {
				t.Error(err)
				return
			}
			id, _ := r.LastInsertId()
			add(uint64(id), "direct")
		}
	})
	wg.Wait()
	if len(seen) != 500 {
		t.Errorf("got %d numbers, want 500", len(seen))
	}
}

// TestStepsAndSinglesOfOneSequenceNeverMeet: segments of different steps come from one row.
func TestStepsAndSinglesOfOneSequenceNeverMeet(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(20))
	var mu sync.Mutex
	seen := make(map[uint64]uint64)
	var wg sync.WaitGroup
	for _, n := range []uint64{1, 1, 4, 7, 50} {
		wg.Go(func() {
			for range 50 {
				id, err := s.Advance(context.Background(), []byte("photos"), n)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for i := id - n + 1; i <= id; i++ {
					if by, twice := seen[i]; twice {
						t.Errorf("%d was given twice, in steps of %d and %d", i, by, n)
					}
					seen[i] = n
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if got := s.Stats(); rewinds(s) != 0 || got.Given != 50*(1+1+4+7+50) {
		t.Errorf("got %d rewinds and %d numbers given, want 0 and %d", rewinds(s), got.Given, 50*(1+1+4+7+50))
	}
	for n := uint64(1000); n < 1000+sequence.MostSteps; n++ {
		_, err := s.Advance(context.Background(), []byte("photos"), n)
		if full := n >= 1000+sequence.MostSteps-3; full != errors.Is(err, sequence.ErrStep) || !full && err != nil {
			t.Errorf("a step of %d: got error %v", n, err)
		}
	}
	if _, err := s.Drop(context.Background(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{1, 4} {
		if _, err := s.Advance(context.Background(), []byte("photos"), n); !errors.Is(err, sequence.ErrUnknown) {
			t.Errorf("a step of %d after DROP: got %v, want ErrUnknown", n, err)
		}
	}
	for _, n := range []uint64{0, sequence.MaxAdvance + 1} {
		if _, err := s.Advance(context.Background(), []byte("photos"), n); !errors.Is(err, define.ErrBadOption) {
			t.Errorf("a step of %d: got %v, want ErrBadOption", n, err)
		}
	}
}

func TestANewNamesFirstNumberIsItsOwn(t *testing.T) {
	p := newPlace(t).withAll(t, map[string]uint64{"photos": 700})
	create := func(o *sequence.Options) { o.CreateUnknown = true } // Advance does not depend on it
	proxies := []*sequence.Sequences{p.open(t, create), p.open(t)}
	if _, err := proxies[0].Advance(context.Background(), []byte("fresh"), 1); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("an unknown name: got %v, want ErrUnknown", err)
	}
	type answer struct {
		id      uint64
		created bool
	}
	answers := make(chan answer, 20)
	var wg sync.WaitGroup
	for i := range cap(answers) {
		wg.Go(func() {
			id, created, err := proxies[i%2].AdvanceOrCreate(context.Background(), []byte("fresh"), 1)
			if err != nil {
				t.Error(err)
			}
			answers <- answer{id, created}
		})
	}
	wg.Wait()
	close(answers)
	seen, created := make(map[uint64]bool), 0
	for a := range answers {
		if seen[a.id] {
			t.Errorf("%d was given twice", a.id)
		}
		seen[a.id] = true
		if a.created {
			created++
		}
	}
	if !seen[1] || created != 1 {
		t.Errorf("1 was given: %v, and %d callers created the sequence; want true and 1", seen[1], created)
	}
}

func TestASequenceWithAnIncrementIsAdvancedInMultiplesOfIt(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, steadySize(10), func(o *sequence.Options) { o.CreateTable = true })
	ctx := context.Background()
	if _, err := s.Create(ctx, sequence.CreateOptions{Name: "photos", Start: 3, Increment: 5}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n       uint64
		want    uint64
		refused bool
	}{{5, 3, false}, {5, 8, false}, {1, 0, true}, {7, 0, true}, {10, 0, false}, {5, 13, false}} {
		id, err := s.Advance(ctx, []byte("photos"), c.n)
		switch {
		case c.refused != errors.Is(err, sequence.ErrStep), !c.refused && err != nil:
			t.Errorf("by %d: got error %v", c.n, err)
		case c.want != 0 && id != c.want, !c.refused && id%5 != 3:
			t.Errorf("by %d: got %d, want %d", c.n, id, c.want)
		}
	}
}
