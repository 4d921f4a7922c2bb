package sequence_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/store"
)

// Cached numbers of an older sequence do not come after those of the ORDER sequence that takes its
// name.
func TestAnOrderSequenceOfSeveralServersIsMadeInPlaceOfOneWhoseNumbersAreHeld(t *testing.T) {
	f := newFleet(t, 2)
	a, b := f.open(t, blocks(50), steadySize(20)), f.open(t, blocks(50), steadySize(20))
	for _, name := range []string{"replaced", "dropped"} {
		createOn(t, a, name)
		mustTake(t, b, name, 1)
		settled(t, b, name)
		if name == "dropped" {
			if _, err := a.Drop(t.Context(), []byte(name), false); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Create(t.Context(), sequence.CreateOptions{Name: name, OrReplace: true, Order: true}); err != nil {
			t.Fatal(err)
		}
		last := uint64(0)
		for range 20 {
			for who, s := range map[string]*sequence.Sequences{"a": a, "b": b} {
				if n := mustTake(t, s, name, 1); n <= last {
					t.Errorf("%s: %s got %d after %d", name, who, n, last)
				} else {
					last = n
				}
			}
		}
	}
}

// A proxy that has not learned that a sequence has ORDER by now, or where its home is, gives no
// number of another member: that would be above those that others give later.
func TestAnOrderedNumberIsOfItsHomeWhateverTheProxyHasHeard(t *testing.T) {
	f := newFleet(t, 3)
	a, b := f.open(t, blocks(10), patience(30*time.Second)), f.open(t, blocks(10), patience(30*time.Second))
	createOn(t, a, "photos")
	if _, err := a.Alter(t.Context(), []byte("photos"), sequence.Alteration{Cache: new(uint64(1))}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		mustTake(t, a, "photos", 1)
	}
	settled(t, a, "photos")
	sequence.Inside(a).StopFollowing() // it learns nothing from now on
	defer sequence.Inside(a).FollowAgain()
	if err := sequence.Inside(b).Change(t.Context(), "photos", sequence.Alteration{Order: new(true)}); err != nil {
		t.Fatal(err)
	}
	if err := sequence.Inside(b).Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	home := sequence.Inside(b).Home("photos")
	if home == nil {
		t.Fatal("the sequence has no home")
	}
	last := uint64(0)
	takes := func(what string) {
		t.Helper()
		for range 7 {
			for who, s := range map[string]*sequence.Sequences{"a": a, "b": b} {
				n := mustTake(t, s, "photos", 1)
				if !home.Share().Has(n) {
					t.Errorf("%s: %s got %d, which is none of its home's", what, who, n)
				}
				if n <= last {
					t.Errorf("%s: %s got %d after %d", what, who, n, last)
				}
				last = n
			}
		}
	}
	takes("it was no ORDER sequence before")
	for _, other := range []string{"", "nobody", sequence.Inside(b).Members()[0].Share().ID, sequence.Inside(b).Members()[1].Share().ID, sequence.Inside(b).Members()[2].Share().ID} {
		sequence.Inside(a).SetHome("photos", other) // "": as if it was read before, and arrived late
		takes("its home was said to be " + strconv.Quote(other))
	}
	if found := sequence.Inside(a).Home("photos"); found.Name() != home.Name() {
		t.Errorf("a takes %v for its home at the end, want %v", found.Name(), home.Name())
	}

	// A proxy that changed that died before it had written it to all: the newer version counts, and
	// all have it.
	at := sequence.Inside(b).Members()
	i := slices.Index(at, *home)
	other := at[(i+1)%len(at)]
	f[i].exec(t, "UPDATE sequence_options SET home = ?, version = version + 1 WHERE name = 'photos'", other.Share().ID)
	if n := mustTake(t, a, "photos", 1); !other.Share().Has(n) {
		t.Errorf("a got %d, which is none of the new home's", n)
	}
	for i := range f {
		var stored string
		if err := f[i].db.QueryRow("SELECT home FROM sequence_options WHERE name = 'photos'").Scan(&stored); err != nil || stored != other.Share().ID {
			t.Errorf("member %d says the home is %q, %v, want %q", i, stored, err, other.Share().ID)
		}
	}
}

// A delayed reservation goes on with the members that it began with, among which the home is not.
// So it takes nothing under another plan.
func TestAReservationThatBeganBeforeItsHomeWasAddedGivesNothing(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 100})
	s := e.open(t, steadySize(1))
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	name := ""
	for i := 0; ; i++ {
		name = fmt.Sprint("ordered", i)
		mustCreate(t, s, sequence.CreateOptions{Name: name, Order: true})
		mustTake(t, s, name, 1)
		if h := sequence.Inside(s).Home(name); h != nil && h.Address() == e.addr(2) {
			break
		}
		if i == 40 {
			t.Fatal("the third server became no home")
		}
	}
	e.change(t, s, sequence.PlanChange{Remove: e.addr(2)})
	mustTake(t, s, name, 1)
	was := sequence.Inside(s).View()
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	for range 30 {
		mustTake(t, s, name, 1)
	}
	g, err := sequence.Inside(s).Members()[0].ReserveFrom(t.Context(), was, name)
	if !errors.Is(err, store.OutcomeOldPlan) {
		t.Fatalf("another server than the home gave %v, %v, want %v", g.Seg, err, store.OutcomeOldPlan)
	}
}
