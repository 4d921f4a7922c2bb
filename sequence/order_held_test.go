package sequence_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/store"
)

// The home of a new ORDER sequence stands above all that was taken from the others, and stays there
// although a proxy returns numbers before it learns of that.
func TestNumbersAreNotGivenBackToTheHomeOfAnORDERSequence(t *testing.T) {
	f := newFleet(t, 2)
	a, b := f.open(t, inSteps, steadySize(50)), f.open(t, inSteps)
	createOn(t, a, "photos")
	mustTake(t, a, "photos", 1)
	settled(t, a, "photos")
	sequence.Inside(a).StopFollowing() // it learns nothing
	if err := sequence.Inside(b).Change(t.Context(), "photos", sequence.Alteration{Order: ref(true)}); err != nil {
		t.Fatal(err)
	}
	before := f.ids(t, "photos")
	err := a.Flush(t.Context(), []byte("photos"))
	sequence.Inside(a).FollowAgain()
	if err != nil {
		t.Fatal(err)
	}
	if after := f.ids(t, "photos"); !slices.Equal(before, after) {
		t.Errorf("the rows stood at %d, and stand at %d after FLUSH", before, after)
	}
}

// A row that was deleted by hand leaves no tombstone, and the numbers in other proxies' caches.
func TestAnORDERSequenceInThePlaceOfADeletedRowWaitsForWhoHoldsNumbers(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	admin, holder := p.open(t), p.open(t, steadySize(50))
	mustCreate(t, admin, sequence.CreateOptions{Name: "photos", Comment: "so that the options have it"})
	mustTake(t, holder, "photos", 1)
	settled(t, holder, "photos")
	p.exec(t, "DELETE FROM sequence WHERE name = 'photos'")
	fresh := p.open(t) // it knows nothing of before
	ordered, err := sequence.Inside(fresh).CreateOrdered(t.Context(), "photos", 5000)
	if err != nil {
		t.Fatal(err)
	}
	if ordered {
		t.Error("it is an ORDER sequence at once, while numbers of the one before are cached: want that this waits")
	}
}

// A member that was forced out while it was off may be back before its successors have begun: a
// member that voted for that knows of it.
func TestAHomeGivesNothingWhileAnotherMemberHasDecidedOnALaterPlan(t *testing.T) {
	f := newFleet(t, 3)
	a := f.open(t)
	createOn(t, a, "photos")
	mustAlter(t, a, "photos", sequence.Alteration{Order: ref(true)})
	mustTake(t, a, "photos", 1)
	home := sequence.Inside(a).Home("photos")
	other := (slices.Index(sequence.Inside(a).Members(), *home) + 1) % len(f)
	f[other].exec(t, "INSERT INTO sequence_plan SELECT number + 1, UUID(), 'accepted', coordinator, begun, changed, interleave, block, members, previous, ballot, floor FROM sequence_plan")
	home.Pool().SetMaxIdleConns(0) // it was off
	if n, err := a.Take(late{t.Context(), time.Hour}, []byte("photos"), 1); !errors.Is(err, store.OutcomeFrozen) {
		t.Errorf("got %d, %v, want outcomeFrozen", n, err)
	}
	f[other].exec(t, "DELETE FROM sequence_plan WHERE state = 'accepted'")
	mustTake(t, a, "photos", 1)
}
