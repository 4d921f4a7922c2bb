package sequence_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/sequence"
)

// Under 20,000 keys a second nobody fails or waits while servers are added and removed, and proxies
// see by themselves which servers exist.
func TestNobodyWaitsWhileTheSetOfServersChanges(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 0})
	admin := e.open(t)
	proxies := []*sequence.Sequences{e.open(t), e.open(t)}
	const perTick, tick, writers = 20, 2 * time.Millisecond, 2 // 10,000 a second and writer
	var failed atomic.Pointer[error]
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var running sync.WaitGroup
	given := make([][]uint64, writers)
	for i := range writers {
		mustTake(t, proxies[i], "photos", 1)
		given[i] = make([]uint64, 0, 1<<18)
		running.Go(func() {
			begin := time.Now()
			for n := 0; ctx.Err() == nil; {
				// Late keys are made up for, so that the rate holds on a slow machine.
				for due := int(time.Since(begin)/tick) * perTick; n < due; n++ {
					number, err := proxies[i].Take(context.Background(), []byte("photos"), 1)
					if err != nil {
						failed.CompareAndSwap(nil, &err)
						return
					}
					given[i] = append(given[i], number)
				}
				time.Sleep(tick)
			}
		})
	}
	// Another proxy reserves all the time, and so under every plan that it believes in, right or
	// wrong. It may wait.
	busy := e.open(t, steadySize(3))
	var others []uint64
	running.Go(func() {
		for ctx.Err() == nil {
			number, err := busy.Take(context.Background(), []byte("photos"), 1)
			if err != nil {
				failed.CompareAndSwap(nil, &err)
				return
			}
			others = append(others, number)
		}
	})
	cachedAndWaited := func(s *sequence.Sequences) (cached, waits uint64) {
		c := sequence.Inside(s).Cache("photos")
		return c.Cached(), c.HasWaited()
	}
	// Their rate is known, and a busy machine may take half a minute for the changes.
	eventually(t, "the caches have filled", func() bool {
		for _, s := range proxies {
			if cached, _ := cachedAndWaited(s); cached < 300_000 {
				return false
			}
		}
		return true
	})
	var before []uint64
	for _, s := range proxies {
		_, waits := cachedAndWaited(s)
		before = append(before, waits)
	}
	var now sequence.Plan
	for _, change := range []sequence.PlanChange{{Add: e.addr(1)}, {Add: e.addr(2)}, {Remove: e.addr(0)}, {Remove: e.addr(2)}} {
		now = e.change(t, admin, change)
	}
	for i, s := range proxies {
		if _, waits := cachedAndWaited(s); waits != before[i] {
			t.Errorf("proxy %d: %d calls waited", i, waits-before[i])
		}
		eventually(t, "the proxy obeys the last plan", func() bool { return sequence.Inside(s).Plan().Number == now.Number })
	}
	// From the new plan's server alone.
	for i := range writers {
		if err := proxies[i].Flush(context.Background(), []byte("photos")); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	stop()
	running.Wait()
	if err := failed.Load(); err != nil {
		t.Errorf("a caller got: %v", *err)
	}
	seen := make(map[uint64]bool)
	given = append(given, others)
	for i := range given {
		for k, n := range given[i] {
			if seen[n] {
				t.Fatalf("%d was given twice", n)
			}
			if seen[n] = true; k > 0 && n <= given[i][k-1] {
				t.Fatalf("%d after %d: numbers of a proxy rise", n, given[i][k-1])
			}
		}
	}
	if len(others) < 100 {
		t.Errorf("the busy one got %d keys only", len(others))
	}
	t.Logf("%d keys, %d of them by reservations of 3", len(seen), len(others))
}
