package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// unheard returns numbers to the row without learning it: the connection breaks in the commit.
type unheard struct{ sequence.Reserver }

func (u unheard) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	if done, err := u.Reserver.GiveBack(ctx, name, epoch, seg); !done || err != nil {
		return done, err
	}
	return false, fmt.Errorf("%w: connection lost", link.ErrOutcome)
}

// A row that the proxy itself may have lowered has not gone back: no alarm.
func TestNumbersThatMayHaveBeenGivenBackAreNoRowGoneBack(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(20))
	mustTake(t, s, "photos", 1)
	c := sequence.Inside(s).Cache("photos")
	var sound sequence.Reserver
	c.ReserveFrom(func(r sequence.Reserver) sequence.Reserver {
		sound = r
		return unheard{r}
	})
	if err := s.Flush(t.Context(), []byte("photos")); err == nil {
		t.Error("FLUSH succeeds though its outcome is unknown")
	}
	c.ReserveFrom(func(sequence.Reserver) sequence.Reserver { return sound })
	if id := p.id(t, "photos"); id != 1 {
		t.Fatalf("the row is at %d, want 1", id)
	}
	if n := mustTake(t, s, "photos", 1); n != 2 {
		t.Errorf("got %d, want 2: numbers that nobody has", n)
	}
	if got := rewinds(s); got != 0 {
		t.Errorf("%d reservations were taken for a row gone back", got)
	}
}

// The same at the end of a process: the next one with its state directory goes on there.
func TestNumbersThatMayHaveBeenGivenBackAtTheEndAreNoRowGoneBack(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	state := t.TempDir()
	s := p.open(t, steadySize(20), func(o *sequence.Options) { o.StateDir = state })
	mustTake(t, s, "photos", 1)
	c := sequence.Inside(s).Cache("photos")
	c.ReserveFrom(func(r sequence.Reserver) sequence.Reserver { return unheard{r} })
	if err := s.Close(context.Background()); err == nil {
		t.Error("Close succeeds though the outcome of giving back is unknown")
	}
	next := p.open(t, steadySize(20), func(o *sequence.Options) { o.StateDir = state })
	if n := mustTake(t, next, "photos", 1); n != 2 {
		t.Errorf("got %d, want 2: numbers that nobody has", n)
	}
	if got := rewinds(next); got != 0 {
		t.Errorf("%d reservations were taken for a row gone back", got)
	}
}

// killed is a process that is killed when its numbers are back in the row and before its mark is
// lowered: it leaves its state directory as it is then.
type killed struct {
	sequence.Reserver
	state, left string
}

func (k killed) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	done, err := k.Reserver.GiveBack(ctx, name, epoch, seg)
	return done, errors.Join(err, os.CopyFS(k.left, os.DirFS(k.state)))
}

// A mark is lowered after the numbers are back: a kill in between leaves one that is too high. The
// next process skips the numbers below it, and repeats none, whereas a mark that is too low would
// miss a restored backup.
func TestAProcessThatIsKilledBetweenGivingBackAndItsMarkLeavesAGap(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	state, copied := t.TempDir(), t.TempDir()
	s := p.open(t, steadySize(20), stateIn(state))
	mustTake(t, s, "photos", 1)
	settled(t, s, "photos")
	reserved := p.id(t, "photos")
	c := sequence.Inside(s).Cache("photos")
	c.ReserveFrom(func(r sequence.Reserver) sequence.Reserver { return killed{r, state, copied} })
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if id := p.id(t, "photos"); id != 1 {
		t.Fatalf("the row is at %d, want 1", id)
	}
	next := p.open(t, steadySize(20), stateIn(copied))
	if n := mustTake(t, next, "photos", 1); n <= reserved {
		t.Errorf("got %d, want a number above all that were ever reserved, which are up to %d", n, reserved)
	}
	if got := rewinds(next); got != 1 {
		t.Errorf("%d reservations were taken for a row gone back, want 1", got)
	}
}
