package sequence_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seqproxy/sequence"
)

// crowd counts the numbers that callers of "photos" get.
type crowd struct {
	mu      sync.Mutex
	numbers int
	waited  time.Duration // by all of them
	longest time.Duration
}

func (c *crowd) take(t *testing.T, s *sequence.Sequences) {
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

// askAgain has callers ask for so long, each a while after the last answer: the first one think,
// the second 2*think, ...
func askAgain(t *testing.T, s *sequence.Sequences, callers int, think, d time.Duration) *crowd {
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

func withSlowUPDATE(t *testing.T) (*sequence.Sequences, sequence.Cache) {
	return scripted(t, &script{order: true, check: func(uint64, uint64) { time.Sleep(slowUPDATE) }})
}

func TestCallersWhoComeBackAtOnceShareAnUPDATE(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := withSlowUPDATE(t)
		defer closeNow(t, s)
		askAgain(t, s, 8, 100*time.Microsecond, time.Second)
		got := askAgain(t, s, 8, 100*time.Microsecond, 10*time.Second)
		t.Logf("%d numbers in 10 s, %v each", got.numbers, got.waited/time.Duration(got.numbers))
		// In halves each would wait for two UPDATEs, which makes 4,000.
		if got.numbers < 5000 {
			t.Errorf("8 callers got %d numbers in 10 s, want 5000", got.numbers)
		}

		// They go on, but take their time between: waiting for them costs a part of an UPDATE.
		got = askAgain(t, s, 8, 40*time.Millisecond, 20*time.Second)
		if mean := got.waited / time.Duration(got.numbers); mean > 2*slowUPDATE || got.longest > 2*slowUPDATE+slowUPDATE/4 {
			t.Errorf("callers who do not come back at once waited for %v on average and %v at most", mean, got.longest)
		}
	})
}

// Where every number is for another caller, a wait for those who were served brings nothing, and
// costs little.
func TestTheWaitCostsLittleWhereOthersCome(t *testing.T) {
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
		// Half an UPDATE for the one that is on its way, half a wait, and one.
		if mean < slowUPDATE || mean > slowUPDATE*3/2+slowUPDATE/4 {
			t.Errorf("a caller waited for %v on average, want about %v", mean, slowUPDATE*3/2)
		}
	})
}
