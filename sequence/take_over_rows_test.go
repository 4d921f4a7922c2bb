package sequence_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"seqproxy/sequence"
)

// switchOver makes node to the primary, and from its replica, after to has all that from has.
func (e *estate) switchOver(t *testing.T, from, to int) {
	t.Helper()
	e.Nodes[from].Exec(t, "SET GLOBAL read_only = 1")
	e.CatchUp(t, to, from)
	e.Promote(t, to)
	for i := range e.Nodes {
		if i != to {
			e.Follow(t, i, to)
		}
	}
}

// Numbers that were cached before the primary changed become a gap: FLUSH succeeds, and so does the
// proxy's end.
func TestNumbersFromBeforeASwitchOverAreGivenUpWithoutAnError(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	a := e.join(t, "a", all, steadySize(100)) // nothing is reserved meanwhile
	a.take(t, "a", "photos", 5)
	e.switchOver(t, 0, 1)
	if err := a.Flush(t.Context(), nil); isFault(err) {
		t.Errorf("FLUSH: %v", err)
	}
	a.take(t, "a", "photos", 5)
	for _, i := range []int{0, 1} {
		warned := a.logs.FilterMessage("reservations not durable").FilterField(zap.String("node", e.linkOf(a, i))).Len()
		if warned != 1 {
			t.Errorf("got %d lines about the binary log of node %d, want 1", warned, i)
		}
	}
	e.switchOver(t, 1, 0)
	if err := a.Close(t.Context()); isFault(err) {
		t.Errorf("Close: %v", err)
	}
	e.join(t, "b", all).take(t, "b", "photos", 25)
}

// isFault reports whether err is an error other than the missing primary, which comes for a moment
// after there was none.
func isFault(err error) bool {
	return err != nil && !strings.Contains(err.Error(), "none of its nodes can be written to")
}

// Names that the server takes for one need not look alike.
func TestAFailOverKnowsASequenceByEachOfItsSpellings(t *testing.T) {
	e := startEstate(t, 2)
	all := &given{}
	a := e.join(t, "a", all)
	if _, err := a.Create(t.Context(), sequence.CreateOptions{Name: "eleve"}); err != nil {
		t.Fatal(err)
	}
	a.take(t, "a", "eleve", 25)
	if _, err := a.Drop(t.Context(), []byte("eleve"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(t.Context(), sequence.CreateOptions{Name: "élève"}); err != nil {
		t.Fatal(err)
	}
	a.take(t, "a", "élève", 25)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1) // from here on the replica misses everything
	a.take(t, "a", "élève", 200)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	fresh := e.join(t, "fresh", all)
	fresh.take(t, "fresh", "élève", 300)
	a.take(t, "a", "élève", 25)
}

// Numbers above which a sequence was moved are in use: they are not given after a fail-over either.
// Without another node to confirm that, the move is an error.
func TestASequenceThatWasMovedAheadStaysThereInAFailOver(t *testing.T) {
	names := []string{"set", "repaired", "restarted", "near"}
	e := startEstate(t, 2, names...)
	ctx := t.Context()
	a := e.join(t, "a", &given{})
	for _, name := range names {
		a.takeOf(t, "a", name, &given{})
	}
	above := uint64(1_000_000)
	move := func() map[string]error {
		_, _, set := a.SetValue(ctx, []byte("set"), above, true)
		_, repaired := a.Raise(ctx, []byte("repaired"), above)
		next := above + 1
		_, restarted := a.Alter(ctx, []byte("restarted"), sequence.Alteration{Restart: &next})
		_, _, near := a.SetValue(ctx, []byte("near"), 1000, true)
		return map[string]error{"set": set, "repaired": repaired, "restarted": restarted, "near": near}
	}
	for name, err := range move() {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The replica has what a's calls waited for.
	e.Cut(t, 1)
	a.waits(4 * time.Second)
	if _, _, err := a.SetValue(ctx, []byte("near"), 2000, true); err != nil {
		t.Errorf("within its window: got %v, want no error", err)
	}
	if _, _, err := a.SetValue(ctx, []byte("set"), 5*above, true); err == nil || !strings.Contains(err.Error(), "fail-over") {
		t.Errorf("far ahead, where no replica records it: got %v, want an error that says that a fail-over could lose it", err)
	}
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	fresh := e.join(t, "fresh", &given{})
	for name, want := range map[string]uint64{"set": above, "repaired": above, "restarted": above, "near": 2000} {
		if n, err := fresh.Take(ctx, []byte(name), 1); err != nil || n <= want {
			t.Errorf("%s: after the fail-over got %d, %v; want a number above %d", name, n, err, want)
		}
	}
}

// A row that is moved on a node before a takeover records how far the node wants to go. No numbers
// of that window were given: the sequence goes on where it was moved, and skips none.
func TestASequenceThatIsMovedBeforeTheTakeOverSkipsNothing(t *testing.T) {
	e := startEstate(t, 2, "set")
	ctx := t.Context()
	maker := e.join(t, "maker", &given{})
	if at, err := sequence.Inside(maker.Sequences).First().RaiseTo(ctx, "set", 500, 500, math.MaxUint64); err != nil || at != 500 {
		t.Fatalf("moved to %d, %v", at, err)
	}
	if terms := maker.logs.FilterMessage("sequences held by a node").Len(); terms != 0 {
		t.Fatal("the node holds the sequences already, and this shows nothing")
	}
	if made := mustCreate(t, maker.Sequences, sequence.CreateOptions{Name: "made", Start: 100}); made.First != 100 {
		t.Errorf("it is said to begin at %d", made.First)
	}
	for name, want := range map[string]uint64{"made": 100, "set": 501} {
		if n, err := maker.Take(ctx, []byte(name), 1); err != nil || n != want {
			t.Errorf("%s: got %d, %v, want %d", name, n, err, want)
		}
	}
}
