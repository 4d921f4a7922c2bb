package sequence

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd counts what callers of "photos" get.
type crowd struct {
	mu      sync.Mutex
	numbers int
	waited  time.Duration // by all of them
	longest time.Duration
}

func (c *crowd) take(t *testing.T, s *Sequences) {
	begin := time.Now()
	if _, err := s.Take(context.Background(), []byte("photos"), 1); err != nil {
		t.Error(err)
	}
	waited := time.Since(begin)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.numbers++
	c.waited += waited
	c.longest = max(c.longest, waited)
}

// askAgain has callers ask for so long, each a while after the last answer: the first one think, the second 2*think, ...
func askAgain(t *testing.T, s *Sequences, callers int, think, d time.Duration) *crowd {
	var all crowd
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for i := range callers {
		wg.Go(func() {
			for time.Now().Before(end) {
				all.take(t, s)
				time.Sleep(time.Duration(i+1) * think)
			}
		})
	}
	wg.Wait()
	return &all
}

// slowUPDATE is how long a reservation takes in these tests.
const slowUPDATE = 10 * time.Millisecond

func withSlowUPDATE(t *testing.T) (*Sequences, *cache) {
	return scripted(t, &script{order: true, check: func(uint64, uint64) { time.Sleep(slowUPDATE) }})
}

func TestCallersWhoComeBackAtOnceShareAnUPDATE(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := withSlowUPDATE(t)
		defer closeNow(t, s)
		askAgain(t, s, 8, 100*time.Microsecond, time.Second)
		got := askAgain(t, s, 8, 100*time.Microsecond, 10*time.Second)
		t.Logf("%d numbers in 10 s, %v each", got.numbers, got.waited/time.Duration(got.numbers))
		// In halves each would wait for two UPDATEs, which makes 4,000.
		if got.numbers < 5000 {
			t.Errorf("8 callers got %d numbers in 10 s, want 5000", got.numbers)
		}

		// They go on, but take their time between: nobody waits for them any more, but for a trial now and then.
		got = askAgain(t, s, 8, 40*time.Millisecond, 20*time.Second)
		if mean := got.waited / time.Duration(got.numbers); mean > 2*slowUPDATE || got.longest > 2*slowUPDATE+mostGather {
			t.Errorf("callers who do not come back at once waited for %v on average and %v at most", mean, got.longest)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.gathering.on || c.gathering.target != 0 {
			t.Errorf("they are waited for: %+v", &c.gathering)
		}
	})
}

// Where every number is another caller's, a wait for those who were served would bring nothing and cost them time.
func TestNobodyIsWaitedForWhereOthersCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withSlowUPDATE(t)
		defer closeNow(t, s)
		var all crowd
		var wg sync.WaitGroup
		for range 10_000 {
			wg.Go(func() { all.take(t, s) })
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		mean := all.waited / time.Duration(all.numbers)
		t.Logf("%v each, %v at most", mean, all.longest)
		// Half an UPDATE for the one that is on its way, and one.
		if mean < slowUPDATE || mean > 17*time.Millisecond {
			t.Errorf("a caller waited for %v on average, want about %v", mean, slowUPDATE*3/2)
		}
	})
}

func TestTheWayThatServesMoreCallersIsKept(t *testing.T) {
	now := time.Now()
	var g gathering
	// period has batches land, and returns how many of them were to be waited for.
	period := func(each time.Duration, callers int) (waits int) {
		for range gatherPeriod {
			now = now.Add(each)
			if g.landed(now, callers) {
				waits++
			}
		}
		return waits
	}
	g.landed(now, 8)
	step := func(what string, each time.Duration, callers int, on, trying bool) {
		t.Helper()
		period(each, callers)
		if g.on != on || g.trying != trying {
			t.Fatalf("%s: got on %v, trying %v; want %v, %v", what, g.on, g.trying, on, trying)
		}
	}
	step("the first period is followed by a trial", time.Millisecond, 8, false, true)
	step("a trial that brings no more", 2*time.Millisecond, 16, false, false)
	for range gatherEvery - 1 {
		step("no trial yet", time.Millisecond, 8, false, false)
	}
	step("the next trial", time.Millisecond, 8, false, true)
	step("a trial that brings more", 2*time.Millisecond, 18, true, false)
	for range gatherEvery - 1 {
		if waits := period(2*time.Millisecond, 18); waits != gatherPeriod {
			t.Fatalf("%d of %d batches waited, want all", waits, gatherPeriod)
		}
	}
	step("a trial of the other way", 2*time.Millisecond, 18, true, true)
	step("it brings less", time.Millisecond, 8, true, false)
	for range gatherEvery {
		period(2*time.Millisecond, 18)
	}
	step("it brings as much", time.Millisecond, 9, false, false)

	g.on = true
	for range gatherLate - 1 {
		g.ended(true)
	}
	g.ended(false)
	for range gatherLate {
		if !g.on {
			t.Fatal("it ended too early")
		}
		g.ended(true)
	}
	if g.on {
		t.Error("waits in vain go on")
	}
	now = now.Add(2 * gatherPause)
	g.landed(now, 8)
	step("after a pause a trial comes soon", time.Millisecond, 8, false, true)
}
