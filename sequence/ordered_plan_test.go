package sequence_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/test/history"
)

// While sequence servers are added and removed, at last its own home, an ORDER sequence goes on in
// the order of time. When the home is away the error names it, and the others go on.
func TestAnOrderSequenceKeepsItsOrderWhileItsHomeMoves(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"users": 0})
	a, b := e.open(t), e.open(t)
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Order: true})
	var h history.History
	more := func() {
		t.Helper()
		ctx, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		before, _ := h.Count()
		recordTakes(ctx, &wg, &h, []*sequence.Sequences{a, b}, 3)
		defer wg.Wait()
		defer stop()
		time.Sleep(300 * time.Millisecond) // mostly many more
		eventually(t, "numbers are given", func() bool {
			now, _ := h.Count()
			return now >= before+10
		})
	}
	more()
	mustTake(t, b, "users", 1)
	if _, err := a.Alter(context.Background(), []byte("users"), sequence.Alteration{Order: new(true)}); err != nil {
		t.Fatal(err)
	}
	for i, s := range []*sequence.Sequences{a, b} {
		if !sequence.Inside(s).HasHome("photos") {
			t.Errorf("proxy %d would not know the home of photos when a second server comes", i)
		}
	}
	for _, change := range []sequence.PlanChange{{Add: e.addr(1)}, {Add: e.addr(2)}, {Remove: e.addr(0)}} {
		e.change(t, a, change)
		more()
	}
	if err := h.Check(); err != nil {
		t.Error(err)
	}
	for i, s := range []*sequence.Sequences{a, b} {
		for _, name := range []string{"photos", "users"} {
			if sequence.Inside(s).Home(name) == nil {
				t.Errorf("proxy %d knows no home of %s, and would take its numbers anywhere", i, name)
			}
		}
	}
	if _, err := a.Alter(context.Background(), []byte("users"), sequence.Alteration{Order: new(false)}); err != nil {
		t.Fatal(err)
	}
	home := sequence.Inside(a).Home("photos")
	if home == nil {
		t.Fatal("the sequence has no home")
	}
	for i := range e.links {
		if e.addr(i) == home.Name() {
			e.links[i].Cut()
		}
	}
	_, err := b.Take(context.Background(), []byte("photos"), 1)
	wantText(t, err, "home of this ORDER sequence, server "+home.Name()+" is unavailable")
	if err != nil && strings.Contains(err.Error(), "server "+home.Name()+",") {
		t.Errorf("the error names others, too: %v", err)
	}
	mustTake(t, b, "users", 1)
}

// The home of an ORDER sequence dies, is removed, and comes back as it was. A proxy that has not
// learned of that gets no lower numbers there than others got since, whether it has left out the
// others or not.
func TestAHomeThatWasTakenOutWhileItWasOffGivesNoLowerNumbers(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"users": 0})
	a, b := e.open(t, patience(30*time.Second)), e.open(t, patience(30*time.Second))
	for _, i := range []int{1, 2} {
		e.change(t, a, sequence.PlanChange{Add: e.addr(i)})
	}
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Order: true})
	last := mustTake(t, b, "photos", 1)
	old, home := sequence.Inside(b).View(), sequence.Inside(b).Home("photos")
	if home == nil {
		t.Fatal("the sequence has no home")
	}
	for i := range e.links {
		if e.addr(i) == home.Name() {
			e.links[i].Cut() // this ends connections
		}
	}
	e.change(t, a, sequence.PlanChange{Remove: home.Name(), Force: true})
	for i := range e.links {
		e.links[i].Mend()
	}
	for i := range 6 {
		if n := mustTake(t, a, "photos", 1); n <= last {
			t.Fatalf("got %d after %d", n, last)
		} else {
			last = n
		}
		// It has not looked yet.
		sequence.Inside(b).SeeAgain(old, func(v sequence.Server) bool { return i%2 == 0 && v != *home })
		if n := mustTake(t, b, "photos", 1); n <= last {
			t.Fatalf("a proxy with the old view got %d after %d", n, last)
		} else {
			last = n
		}
	}
}

// A change of the servers is undone: nothing of an ORDER sequence remains from the time when a
// proxy asked for a number and found it frozen.
func TestAnOrderSequenceGoesOnAfterAChangeIsUndone(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"users": 0})
	s, other := e.open(t), e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Order: true})
	last := mustTake(t, other, "photos", 1)
	home := sequence.Inside(other).Home("photos")
	if home == nil {
		t.Fatal("the sequence has no home")
	}
	other.Tune(sequence.Tuning{CreateTable: true, AllocateTimeout: 3 * time.Second, NoDirectWriters: true})
	asked := false
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		if step != change.Frozen || address != home.Name() {
			return nil
		}
		asked = true
		if n, err := other.Take(t.Context(), []byte("photos"), 1); err == nil {
			t.Errorf("got %d while the rows are frozen", n)
		}
		return errKilled
	})
	if _, err := changeUntil(t.Context(), s, sequence.PlanChange{Add: e.addr(2)}); err == nil || !asked {
		t.Fatalf("the change: %v; the rows were frozen: %v", err, asked)
	}
	sequence.Inside(s).OnPlanStep(nil)
	if _, err := e.endLeft(t.Context(), s); err != nil && !errors.As(err, new(*sequence.PlanError)) {
		// There may be none any more.
		t.Fatal(err)
	}
	eventually(t, "a number", func() bool {
		n, err := other.Take(t.Context(), []byte("photos"), 1)
		if err == nil && n <= last {
			t.Errorf("got %d after %d", n, last)
		}
		return err == nil
	})
}

// A sequence got ORDER when there was one server, so no home was chosen for it. Later statements do
// not move it while other proxies have not learned of that: they would get lower numbers at its old
// home.
func TestWhatIsSaidOfAnOrderSequenceDoesNotMoveItsHome(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"users": 0})
	a, b := e.open(t, patience(30*time.Second)), e.open(t, patience(30*time.Second))
	mustCreate(t, a, sequence.CreateOptions{Name: "albums", Order: true})
	last := uint64(0)
	next := func(s *sequence.Sequences, who string) {
		t.Helper()
		n := mustTake(t, s, "albums", 1)
		if n <= last {
			t.Errorf("%s got %d after %d", who, n, last)
		}
		last = n
	}
	for _, change := range []sequence.PlanChange{{Add: e.addr(1)}, {Add: e.addr(2)}, {Remove: e.addr(0)}} {
		e.change(t, a, change)
		next(a, "a proxy")
		next(b, "the other proxy")
		func() {
			sequence.Inside(b).StopFollowing()
			defer sequence.Inside(b).FollowAgain()
			mustAlter(t, a, "albums", sequence.Alteration{Comment: ref("of pictures")})
			next(a, "the proxy that said it")
			next(b, "one that has not heard of it")
		}()
	}
}

// CREATE needs more than half of the servers. The home is one of those.
func TestTheHomeOfANewOrderSequenceIsAServerThatIsThere(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"users": 0})
	s := e.open(t, patience(30*time.Second))
	for _, i := range []int{1, 2} {
		e.change(t, s, sequence.PlanChange{Add: e.addr(i)})
	}
	e.links[1].Cut()
	for _, name := range []string{"albums", "likes", "videos"} {
		mustCreate(t, s, sequence.CreateOptions{Name: name, Order: true})
		mustTake(t, s, name, 1)
	}
}
