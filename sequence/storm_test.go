package sequence_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// Three proxies and an application that counts in the row itself take numbers, while the options of
// the sequence change all the time, it is dropped and made again, its caches are flushed, and the
// server is killed. Nothing is ever given twice.
func TestNoNumberComesTwiceWhateverIsChanged(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0})
	core, logs := observer.New(zap.WarnLevel)
	var proxies []*sequence.Sequences
	for _, size := range []uint64{5, 50, 300} {
		proxies = append(proxies, p.open(t, steadySize(size), patience(time.Second), func(o *sequence.Options) { o.Logger = zap.New(core) }))
	}
	var mu sync.Mutex
	given := make(map[uint64]string)
	note := func(by string, first, step, n uint64) {
		mu.Lock()
		defer mu.Unlock()
		for i := range n {
			number := first + i*step
			if other, twice := given[number]; twice {
				t.Errorf("%d was given by %s and by %s", number, other, by)
			}
			given[number] = by
		}
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(given)
	}
	done := make(map[string]int) // guarded by mu; how often each statement succeeded
	t.Cleanup(func() { t.Log("succeeded:", done) })
	did := func(what string, err error) {
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done[what]++
	}
	allDone := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(done) == 10
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for _, s := range proxies {
		for _, pauses := range []bool{false, true} {
			wg.Go(func() {
				for ctx.Err() == nil {
					n := 1 + rand.Uint64N(4)
					if got, err := s.TakeRun(ctx, []byte("photos"), n); err == nil {
						note("a proxy", got.First, got.Step, n)
					}
					if pauses {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				_, state, err := s.Describe(ctx, []byte("photos"))
				last := state.Last
				switch option := rand.IntN(9); {
				case err != nil:
					_, err = s.Create(ctx, sequence.CreateOptions{Name: "photos", IfNotExists: true, Increment: 1 + rand.Uint64N(3), Start: 1 + rand.Uint64N(20)})
					did("create", err)
				case option == 0:
					_, err = s.Alter(ctx, []byte("photos"), sequence.Alteration{Increment: ref(1 + rand.Uint64N(10))})
					did("increment", err)
				case option == 1:
					_, err = s.Alter(ctx, []byte("photos"), sequence.Alteration{Cache: ref(rand.Uint64N(20))})
					did("cache", err)
				case option == 2:
					_, err = s.Alter(ctx, []byte("photos"), sequence.Alteration{Max: ref(last + rand.Uint64N(1000))})
					did("max", err)
				case option == 3:
					_, err = s.Alter(ctx, []byte("photos"), sequence.Alteration{Max: ref(uint64(0)), Restart: ref(last + rand.Uint64N(500))})
					did("restart", err)
				case option == 4:
					_, _, err = s.SetValue(ctx, []byte("photos"), last-min(last, rand.Uint64N(400))+rand.Uint64N(500), rand.IntN(2) == 0)
					did("setval", err)
				case option == 5:
					err = s.Flush(ctx, nil)
					did("flush", err)
				case option == 6:
					_, err = s.Raise(ctx, []byte("photos"), last+rand.Uint64N(100))
					did("raise", err)
				case option == 7:
					_, err = s.Create(ctx, sequence.CreateOptions{Name: "photos", OrReplace: true, Start: 1 + rand.Uint64N(last+1), Increment: 1 + rand.Uint64N(5)})
					did("replace", err)
				case rand.IntN(3) == 0:
					_, err = s.Drop(ctx, []byte("photos"), true)
					did("drop", err)
				}
				time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			}
		})
	}
	wg.Go(func() { // the application
		for ctx.Err() == nil {
			n := 1 + rand.Uint64N(3)
			if r, err := p.db.ExecContext(ctx, "UPDATE sequence SET id = LAST_INSERT_ID(id + ?) WHERE name = 'photos'", n); err == nil {
				if affected, _ := r.RowsAffected(); affected == 1 {
					last, _ := r.LastInsertId()
					note("the application", uint64(last)-n+1, 1, n)
				}
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	time.Sleep(time.Second)
	p.kill(t)
	p.restart(t)
	before := count()
	time.Sleep(time.Second) // many more, mostly
	eventually(t, "numbers are given again", func() bool { return count() >= before+100 })
	within(t, 3*time.Minute, "each statement has succeeded", allDone) // DROP is seldom tried
	stop()
	wg.Wait()
	t.Logf("%d numbers were given", len(given))
	for i, s := range proxies {
		if got := rewinds(s); got != 0 {
			t.Errorf("proxy %d: %d reservations were taken for a row gone back", i, got)
			for _, line := range logs.All() {
				t.Log(line.Time.Format("05.000000"), line.Message, line.ContextMap())
			}
		}
	}
	if lines := logs.FilterMessage("changes by others not seen").Len(); lines > len(proxies) {
		t.Errorf("%d lines about one outage", lines)
	}
}
