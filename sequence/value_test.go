package sequence_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/stats"
)

func TestSetValueOnlyRaises(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "tens": 0})
	a, b := p.open(t, steadySize(100)), p.open(t, steadySize(100))
	set := func(name string, n uint64, used, want bool) {
		t.Helper()
		if got, ok, err := a.SetValue(context.Background(), []byte(name), n, used); err != nil || ok != want || got != n {
			t.Errorf("SetValue(%q, %d, %v) = %d, %v, %v; want %v", name, n, used, got, ok, err, want)
		}
	}
	wantTaken(t, a, "photos", 1, 2)
	settled(t, a, "photos")
	wantTaken(t, b, "photos", 101)
	settled(t, b, "photos")
	for _, c := range []struct {
		n        uint64
		used, ok bool
		next     uint64
	}{
		{1, true, false, 3}, // behind: 1 and 2 are given
		{2, false, false, 4},
		{0, true, false, 5},
		{5, true, true, 6}, // 5 was the last: nothing changes
		{7, false, true, 7},
		{50, true, true, 51},
		{50, true, false, 52},
		{99, false, true, 99},
		{5000, true, true, 5001},
		{1<<64 - 3, false, true, 1<<64 - 3},
	} {
		set("photos", c.n, c.used, c.ok)
		wantTaken(t, a, "photos", c.next)
		if c.n == 5000 {
			eventually(t, "the other proxy goes on above", func() bool { return mustTake(t, b, "photos", 1) > 5000 })
		}
	}
	set("photos", 1<<64-1, true, true)
	if got, err := a.Take(context.Background(), []byte("photos"), 1); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("behind the highest number got %d, %v; want ErrExhausted", got, err)
	}

	mustAlter(t, a, "tens", sequence.Alteration{Increment: ref(uint64(10)), Max: ref(uint64(1000))})
	wantTaken(t, a, "tens", 1, 11)
	set("tens", 24, true, true)
	wantTaken(t, a, "tens", 34)
	set("tens", 300, false, true)
	wantTaken(t, a, "tens", 300, 310)
	set("tens", 995, true, true)
	if got, err := a.Take(context.Background(), []byte("tens"), 1); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("above MAXVALUE got %d, %v; want ErrExhausted", got, err)
	}
	if _, _, err := a.SetValue(context.Background(), []byte("none"), 1, true); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}

func TestRaiseGoesAboveWhatIsInUse(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(100)), p.open(t, steadySize(100))
	wantTaken(t, a, "photos", 1)
	settled(t, a, "photos")
	wantTaken(t, b, "photos", 101)
	settled(t, b, "photos")
	raise := func(floor uint64, want bool) {
		t.Helper()
		if raised, err := a.Raise(context.Background(), []byte("PHOTOS"), floor); err != nil || raised != want {
			t.Errorf("Raise(%d) = %v, %v; want %v", floor, raised, err, want)
		}
	}
	raise(150, false)
	if got := mustTake(t, a, "photos", 1); got <= 200 {
		t.Errorf("got %d, want more than 200, since what was in memory is below 150", got)
	}
	eventually(t, "the other proxy passes over what is in use", func() bool { return mustTake(t, b, "photos", 1) > 150 })
	settled(t, b, "photos")
	raise(5000, true)
	wantTaken(t, a, "photos", 5001)
	mustAlter(t, a, "photos", sequence.Alteration{Max: ref(uint64(1 << 40))})
	raise(1<<50, false)
	if got := mustTake(t, a, "photos", 1); got > 1<<40 {
		t.Errorf("got %d above MAXVALUE", got)
	}
}

func TestFlushGivesBackWhatNobodyHasReservedAfter(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "albums": 0})
	a, b := p.open(t, steadySize(100)), p.open(t, steadySize(100))
	for _, name := range []string{"photos", "albums"} {
		wantTaken(t, a, name, 1, 2)
		settled(t, a, name)
	}
	if err := a.Flush(context.Background(), []byte("Photos")); err != nil {
		t.Fatal(err)
	}
	if got := p.id(t, "photos"); got != 2 {
		t.Errorf("after FLUSH the row is at %d, want 2", got)
	}
	wantTaken(t, b, "photos", 3) // nobody has it
	wantTaken(t, b, "albums", 101)
	if err := a.Flush(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if got := mustTake(t, a, "albums", 1); got <= 200 {
		t.Errorf("after FLUSH of all got %d, want more than 200", got)
	}
	wantTaken(t, a, "photos", 103)
	if got := a.Stats(); rewinds(a) != 0 || got.Unused[stats.UnusedReturned] != 98 {
		t.Errorf("got %+v and %d rewinds, want 98 returned and no rewind", got, rewinds(a))
	}
	if err := a.Flush(context.Background(), []byte("none")); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}

// A segment that left the cache before a restart is not returned after it, although the row happens
// to stand at its end.
func TestNothingIsGivenBackIntoAnotherEpoch(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(20)), p.open(t, steadySize(20))
	wantTaken(t, a, "photos", 1)
	settled(t, a, "photos")
	epoch := sequence.Inside(a).First().Marks.Epoch("photos")
	old := sequence.Inside(a).Cache("photos").TakeUnused()
	beginAgain(t, p.db, b, "photos", 1)
	wantTaken(t, b, "photos", 1)
	settled(t, b, "photos")
	if got := p.id(t, "photos"); got != old.Last() {
		t.Fatalf("the row is at %d, not at %d: this shows nothing", got, old.Last())
	}
	if done, err := sequence.Inside(a).First().GiveBack(t.Context(), "photos", epoch, old); done || err != nil {
		t.Errorf("got %v, %v; want it refused", done, err)
	}
	if got := mustTake(t, a, "photos", 1); got <= 20 {
		t.Errorf("got %d, which the other proxy holds", got)
	}
}

// A sequence is set behind numbers that another proxy is about to return, as one that stops before
// it has seen that: they are passed over for good.
func TestNothingIsGivenBackThatWasPassedOver(t *testing.T) {
	for what, pass := range map[string]func(s *sequence.Sequences) (bool, error){
		"SETVAL": func(s *sequence.Sequences) (bool, error) {
			_, ok, err := s.SetValue(t.Context(), []byte("photos"), 30, true)
			return ok, err
		},
		"REPAIR": func(s *sequence.Sequences) (bool, error) {
			_, err := s.Raise(t.Context(), []byte("photos"), 30)
			return true, err
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
			a, b := p.open(t, steadySize(20)), p.open(t, steadySize(20))
			wantTaken(t, b, "photos", 1)
			settled(t, b, "photos")
			wantTaken(t, a, "photos", 21)
			settled(t, a, "photos")
			epoch := sequence.Inside(a).First().Marks.Epoch("photos")
			old := sequence.Inside(a).Cache("photos").TakeUnused()
			if ok, err := pass(b); !ok || err != nil {
				t.Fatalf("got %v, %v; want that it goes on above 30", ok, err)
			}
			if got := p.id(t, "photos"); got != old.Last() {
				t.Fatalf("the row is at %d, not at %d: this shows nothing", got, old.Last())
			}
			if done, err := sequence.Inside(a).First().GiveBack(t.Context(), "photos", epoch, old); done || err != nil {
				t.Errorf("got %v, %v; want it refused", done, err)
			}
			if got := mustTake(t, b, "photos", 1); got <= 30 {
				t.Errorf("got %d, although the sequence was said to go on above 30", got)
			}
		})
	}
}

// After a flush the distance of a sequence to its end is still known, whether its numbers could be
// returned or not.
func TestFlushDoesNotForgetHowNearTheEndIs(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	a, b := p.open(t, steadySize(10)), p.open(t, steadySize(10))
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Max: 1000, Cache: 10})
	if got := mustTake(t, a, "photos", 941); got != 1 {
		t.Fatalf("got %d, want 1", got)
	}
	settled(t, a, "photos")
	flush := func() {
		t.Helper()
		if err := a.Flush(t.Context(), []byte("photos")); err != nil {
			t.Fatal(err)
		}
		st := statsOf(t, a, "photos")
		if want := float64(p.id(t, "photos")) / 1000; math.Abs(st.Used-want) > 1e-9 || st.Cached != 0 || st.ToEnd == sequence.Never {
			t.Errorf("after FLUSH got %v used, %d held and %v to the end, want %v of the row, 0, and a time", st.Used, st.Cached, st.ToEnd, want)
		}
	}
	flush()
	if got := p.id(t, "photos"); got != 941 {
		t.Errorf("after FLUSH the row is at %d, want 941", got)
	}
	flush() // with nothing to return
	mustTake(t, a, "photos", 1)
	settled(t, a, "photos")
	before := p.id(t, "photos")
	if statsOf(t, a, "photos").Cached == 0 {
		t.Fatal("no number is cached, want some: else the test shows nothing")
	}
	mustTake(t, b, "photos", 1)
	settled(t, b, "photos")
	if err := a.Flush(t.Context(), nil); err != nil { // b has reserved after them
		t.Fatal(err)
	}
	if got, want := statsOf(t, a, "photos").Used, float64(before)/1000; math.Abs(got-want) > 1e-9 {
		t.Errorf("after FLUSH of a gap got %v used, want %v", got, want)
	}

	// The last numbers are gone: a flush brings none.
	for err := error(nil); err == nil; {
		_, err = a.Take(t.Context(), []byte("photos"), 1)
	}
	if err := a.Flush(t.Context(), []byte("photos")); err != nil {
		t.Fatal(err)
	}
	if err := a.UsableFor(t.Context(), []byte("photos")); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("after FLUSH of what has run out got %v, want ErrExhausted", err)
	}
	if st := statsOf(t, a, "photos"); st.Used != 1 || st.ToEnd != 0 {
		t.Errorf("after FLUSH of what has run out got %v used and %v to the end, want 1 and none", st.Used, st.ToEnd)
	}
	beginAgain(t, p.db, b, "photos", 1)
	eventually(t, "a hears of the restart", func() bool { return statsOf(t, a, "photos").Used == 0 })
}

// The server dies when it has committed, before the proxy that asked has looked at what was changed
// there.
func TestWhatWasPassedOverIsGivenUpHereThoughTheServerAnswersNoMore(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"set": 0, "repaired": 0, "restarted": 0})
	a := p.open(t, steadySize(1000), patience(30*time.Second))
	for name, pass := range passOver(t.Context(), a) {
		wantTaken(t, a, name, 1)
		settled(t, a, name)
		sequence.Inside(a).StopFollowing() // nobody looks
		sequence.Inside(a).SetBegun(false)
		err := pass(5000)
		next := sequence.Inside(a).Cache(name).Next()
		sequence.Inside(a).SetBegun(true)
		sequence.Inside(a).FollowAgain()
		if err != nil || next != 0 && next <= 5000 {
			t.Errorf("%s: %v; goes on at %d, want above 5000", name, err, next)
		}
	}
}
