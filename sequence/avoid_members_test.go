package sequence_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"seqproxy/sequence"
)

// No server gives a number that a client chose, even where this proxy has higher numbers of another
// server.
func TestANumberThatSomebodyChoseIsGivenByNoneOfSeveralServers(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*sequence.Options)
	}{
		{"blocks", blocks(50)},
		{"steps", inSteps},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, 2)
			a := f.open(t, c.change, steadySize(20))
			createOn(t, a, "photos")
			var book ledger
			top := uint64(0)
			for i := range 40 {
				for range 15 {
					n := mustTake(t, a, "photos", 1)
					book.add(t, "a", n, 1)
					top = max(top, n)
				}
				settled(t, a, "photos")
				for _, n := range []uint64{top + 31, top + 34, top + 52} {
					if _, given := book.given[n]; given {
						continue // by a proxy that came later
					}
					if err := a.Avoid(t.Context(), []byte("photos"), []uint64{n}); err != nil {
						t.Fatal(err)
					}
					book.add(t, fmt.Sprint("chosen ", i), n, 1)
				}
				if i%4 == 3 {
					fresh := f.open(t, c.change, steadySize(20))
					for range 30 {
						book.add(t, "fresh", mustTake(t, fresh, "photos", 1), 1)
					}
				}
			}
		})
	}
}

// That this proxy has reserved on one server does not mean that another server gives no lower
// number.
func TestANumberThatSomebodyChoseBehindTheRowOfAnotherServerMovesThatServer(t *testing.T) {
	f := newFleet(t, 2)
	a := f.open(t, blocks(50), steadySize(10))
	for i := range 20 {
		name := fmt.Sprint("photos", i)
		createOn(t, a, name)
		mustTake(t, a, name, 1)
		settled(t, a, name)
		if ids := f.ids(t, name); ids[0] != 0 || ids[1] == 0 {
			continue // the first server was asked
		}
		if err := a.Avoid(t.Context(), []byte(name), []uint64{2}); err != nil {
			t.Fatal(err)
		}
		if ids := f.ids(t, name); ids[0] < 2 {
			t.Errorf("after 2 was chosen, the servers are at %v", ids)
		}
		return
	}
	t.Fatal("the second server was never asked first")
}

// A member that answers goes on giving numbers: a number is not avoided where its row could not be
// moved. A dead member is passed over.
func TestANumberThatSomebodyChoseIsNotGivenByAMemberThatWasHeldUp(t *testing.T) {
	f := newFleet(t, 2)
	a, b := f.open(t, steadySize(20)), f.open(t, steadySize(20))
	createOn(t, a, "photos")
	for _, s := range []*sequence.Sequences{a, b} {
		mustTake(t, s, "photos", 1)
		settled(t, s, "photos")
	}
	tx, err := f[1].db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SELECT id FROM sequence WHERE name = 'photos' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	const chosen = 1_000_000
	if err := a.Avoid(t.Context(), []byte("photos"), []uint64{chosen}); err == nil {
		t.Errorf("%d is said to be avoided, and the rows are at %d", chosen, f.ids(t, "photos"))
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := a.Avoid(t.Context(), []byte("photos"), []uint64{chosen}); err != nil {
		t.Fatal(err)
	}
	for i, id := range f.ids(t, "photos") {
		if id < chosen {
			t.Errorf("member %d is at %d", i, id)
		}
	}
	f[1].kill(t)
	if err := a.Avoid(t.Context(), []byte("photos"), []uint64{2 * chosen}); err != nil {
		t.Errorf("with one that is dead: got %v, want no error", err)
	}
	f[1].restart(t)
}

// A key at the very end, such as a sentinel, leaves no number to members that would come later.
func TestANumberAtTheEndThatSomebodyChoseIsAvoidedByEachOfSeveralServers(t *testing.T) {
	for name, change := range map[string]func(*sequence.Options){"blocks": blocks(50), "steps": inSteps} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 3)
			a := f.open(t, change, steadySize(20))
			createOn(t, a, "photos")
			mustTake(t, a, "photos", 1)
			settled(t, a, "photos")
			if err := a.Avoid(t.Context(), []byte("photos"), []uint64{math.MaxUint64 - 1}); err != nil {
				t.Fatal(err)
			}
			for _, id := range f.ids(t, "photos") {
				if id < math.MaxUint64-1 {
					t.Errorf("a row stands at %d", id)
				}
			}
			if n, err := f.open(t, change).Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrExhausted) && n != math.MaxUint64 {
				t.Errorf("behind the end: got %d, %v, want ErrExhausted, or the last number", n, err)
			}
		})
	}
}

// A sequence that was ended so is dropped like any other.
func TestASequenceWhoseLastNumberSomebodyChoseIsDropped(t *testing.T) {
	f := newFleet(t, 3)
	a := f.open(t, inSteps)
	createOn(t, a, "photos")
	mustTake(t, a, "photos", 1)
	if err := a.Avoid(t.Context(), []byte("photos"), []uint64{math.MaxUint64 - 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Drop(t.Context(), []byte("photos"), false); err != nil {
		t.Error(err)
	}
}
