package snowflake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"pgregory.net/rapid"

	"seqproxy/sequence/kind"
)

// table is a sequence server with the rows of workers. Its clock is that of the bubble, plus an
// error.
type table struct {
	mu      sync.Mutex
	rows    map[uint64]uint64
	off     time.Duration
	down    error
	meet    func(worker uint64) // before a reservation
	looked  int
	homes   uint64          // 0: 1
	away    map[uint64]bool // homes
	holders string
	slow    time.Duration // an answer to Last is that old
	end     uint64        // of each row; 0: none
}

func newTable() *table { return &table{rows: make(map[uint64]uint64)} }

func (r *table) Last(_ context.Context, worker, first uint64) (uint64, bool, error) {
	r.mu.Lock()
	defer func() {
		slow := r.slow
		r.mu.Unlock()
		time.Sleep(slow)
	}()
	r.looked++
	if r.away[worker%max(r.homes, 1)] {
		return 0, false, ErrAway
	}
	if _, ok := r.rows[worker]; !ok && r.down == nil {
		r.rows[worker] = first - 1
	}
	return r.rows[worker], false, r.down
}

func (r *table) Reserve(_ context.Context, worker, n uint64) (uint64, error) {
	if r.meet != nil {
		r.meet(worker)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down != nil {
		return 0, r.down
	}
	if r.away[worker%max(r.homes, 1)] {
		return 0, ErrAway
	}
	first := r.rows[worker] + 1
	if r.end > 0 && first+n-1 > r.end {
		return 0, nil
	}
	r.rows[worker] += n
	return first, nil
}

func (r *table) Homes() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.homes, 1)
}

func (r *table) Time(context.Context) (time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.off), r.down
}

func (r *table) Holders(context.Context, uint64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holders
}

// putBack lowers the rows by what an ended process has not used.
func (r *table) putBack(p *process) {
	p.stop()
	p.End(errors.New("stopped"))
	r.set(func(r *table) {
		for _, u := range p.Unused() {
			if r.rows[u.Worker] == u.Last {
				r.rows[u.Worker] = u.First - 1
			}
		}
	})
}

func (r *table) set(f func(r *table)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

// process is a Generator with its caller of Renew, and a clock that can be set.
type process struct {
	*Generator
	k    kind.Kind
	step atomic.Int64 // how far its clock was set
	soon chan struct{}
	stop func()
	dead bool
}

// layout begins a year before the clocks of bubbles do.
func layout() kind.Layout {
	l := kind.DefaultLayout()
	l.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	return l
}

const cover = 15 * time.Minute

var bounds = Bounds{Off: time.Minute, Behind: time.Second, Look: 10 * time.Second}

func newProcess(t testing.TB, r *table, l kind.Layout, steps ...time.Duration) *process {
	t.Helper()
	return newWorker(t, r, l, nil, steps...)
}

// newWorker is newProcess that takes one worker alone.
func newWorker(t testing.TB, r *table, l kind.Layout, worker *uint64, steps ...time.Duration) *process {
	t.Helper()
	k, err := kind.NewSnowflake(l, false)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{k: k, soon: make(chan struct{}, 1)}
	for _, step := range steps {
		p.step.Store(int64(step))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	p.stop = func() {
		cancel()
		<-ended
	}
	p.Generator = New(Options{
		Name: "photos", Kind: k, Ticks: r, Worker: worker, Bounds: bounds, Cover: func() time.Duration { return cover }, Log: zap.NewNop(),
		Wall: func() time.Time { return time.Now().Add(time.Duration(p.step.Load())) },
		RenewSoon: func() {
			select {
			case p.soon <- struct{}{}:
			default:
			}
		},
	})
	go func() {
		defer close(ended)
		beat := time.NewTicker(2 * time.Second)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
				p.KeepUp()
			case <-p.soon:
				for p.Renew(ctx) != nil && p.IsAwaited() && ctx.Err() == nil {
					time.Sleep(100 * time.Millisecond)
				}
			}
		}
	}()
	return p
}

func (p *process) take(n uint64) (uint64, error) {
	if key, ok := p.Take(n); ok {
		return key, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Second)
	defer stop()
	return p.Wait(ctx, n)
}

// ledger is all keys ever given.
type ledger map[uint64]bool

func (l ledger) take(t testing.TB, p *process, n uint64) uint64 {
	t.Helper()
	key, err := p.take(n)
	if err != nil {
		t.Fatal(err)
	}
	l.note(t, key, n)
	return key
}

func (l ledger) note(t interface{ Fatalf(string, ...any) }, key, n uint64) {
	for i := range n {
		if l[key+i] {
			t.Fatalf("the key %d was given before", key+i)
		}
		l[key+i] = true
	}
}

// wantTime wants a key of a time, up to 10 ms off.
func (p *process) wantTime(t testing.TB, key uint64, want time.Time) {
	t.Helper()
	tick, _, _ := p.k.Decompose(key)
	if off := p.k.TimeOf(tick).Sub(want).Abs(); off > 10*time.Millisecond {
		t.Errorf("the key %d is of %v, want %v", key, p.k.TimeOf(tick), want)
	}
}

func TestKeysHaveTheTimeAndRise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		a, b := newProcess(t, r, layout()), newProcess(t, r, layout())
		defer a.stop()
		defer b.stop()
		var last uint64
		for i := range 5000 { // more than a tick has
			key := l.take(t, a, 1)
			if key <= last {
				t.Fatalf("behind %d comes %d", last, key)
			}
			last = key
			if i%50 == 0 {
				a.wantTime(t, key, time.Now())
				b.wantTime(t, l.take(t, b, 1), time.Now())
				time.Sleep(700 * time.Microsecond)
			}
		}
		time.Sleep(3 * time.Hour) // idle; and ticks are there
		r.set(func(r *table) { r.down = errors.New("away") })
		begin := time.Now()
		a.wantTime(t, l.take(t, a, 1), begin)
		if time.Since(begin) != 0 {
			t.Errorf("after hours a key took %v", time.Since(begin))
		}
		if len(r.rows) != 2 {
			t.Errorf("two processes use %d workers", len(r.rows))
		}
	})
}

func TestATickThatIsFullIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		p := newProcess(t, r, layout())
		defer p.stop()
		l.take(t, p, 1)
		time.Sleep(time.Millisecond)
		begin := time.Now()
		for range 3 {
			l.take(t, p, 4096)
		}
		if took := time.Since(begin); took < 2*time.Millisecond || took > 3*time.Millisecond {
			t.Errorf("three whole ticks took %v", took)
		}
		// A caller who wants a whole tick gets one, though others take single keys all the time.
		var group sync.WaitGroup
		var mu sync.Mutex
		for range 8 {
			group.Go(func() {
				for range 3000 {
					key, err := p.take(1)
					mu.Lock()
					if err != nil {
						t.Error(err)
					} else {
						l.note(t, key, 1)
					}
					mu.Unlock()
				}
			})
		}
		group.Go(func() {
			for range 3 {
				key, err := p.take(4096)
				mu.Lock()
				if err != nil {
					t.Error(err)
				} else {
					l.note(t, key, 4096)
				}
				mu.Unlock()
			}
		})
		group.Wait()
		var run *RunError
		if _, err := p.take(4097); !errors.As(err, &run) || run.Most != 4096 {
			t.Errorf("more than a tick has: %v", err)
		}
	})
}

// A fail-over has rows go on one tick above what was reserved. That is no other process.
func TestAFailOverLeavesTheWorker(t *testing.T) {
	for _, only := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, l, id := newTable(), ledger{}, uint64(3)
			worker := &id
			if !only {
				worker = nil
			}
			p := newWorker(t, r, layout(), worker)
			defer p.stop()
			l.take(t, p, 1)
			failOver := func() (skipped uint64) {
				time.Sleep(time.Second)
				r.set(func(r *table) {
					for worker := range r.rows {
						r.rows[worker]++
						skipped = r.rows[worker]
					}
				})
				return skipped
			}
			for i := range 3 {
				if i == 1 { // it takes longer than there are ticks
					r.set(func(r *table) { r.down = errors.New("away") })
					time.Sleep(3 * cover)
				}
				failOver()
				r.set(func(r *table) { r.down = nil })
				for end := time.Now().Add(3 * cover); time.Now().Before(end); time.Sleep(10 * time.Second) {
					l.take(t, p, 1)
					begin := time.Now()
					p.wantTime(t, l.take(t, p, 1), begin)
					if took := time.Since(begin); took > time.Millisecond {
						t.Fatalf("a key took %v", took)
					}
				}
			}
			r.set(func(r *table) {
				if len(r.rows) != 1 {
					t.Errorf("it has used %d workers", len(r.rows))
				}
			})
			skipped := failOver()
			time.Sleep(cover)
			l.take(t, p, 1)
			p.stop()
			p.End(errors.New("stopped"))
			if u := p.Unused(); len(u) != 1 || u[0].First != skipped+1 || u[0].Last <= skipped {
				t.Errorf("unused are %+v, without the skipped tick %d", u, skipped)
			}
		})
	}
}

func TestAnOutageShorterThanTheCoverIsNotNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		p := newProcess(t, r, layout())
		defer p.stop()
		l.take(t, p, 1)
		for range 5 {
			time.Sleep(37 * time.Minute)
			r.set(func(r *table) { r.down = errors.New("away") })
			for end := time.Now().Add(cover); time.Now().Before(end); time.Sleep(20 * time.Second) {
				begin := time.Now()
				l.take(t, p, 1)
				if took := time.Since(begin); took > 0 {
					t.Fatalf("a key took %v", took)
				}
			}
			r.set(func(r *table) { r.down = nil })
		}
		// a longer one is an error with its cause, and over at once
		r.set(func(r *table) { r.down = errors.New("the server is away") })
		time.Sleep(3 * cover)
		if _, err := p.take(1); err == nil || !strings.Contains(err.Error(), "the server is away") {
			t.Errorf("behind the cover: %v", err)
		}
		r.set(func(r *table) { r.down = nil })
		time.Sleep(time.Second)
		p.wantTime(t, l.take(t, p, 1), time.Now())
	})
}

// The clock of the machine is set, with that of the server or without.
func TestAStepOfTheClockGivesNoKeyTwice(t *testing.T) {
	for _, step := range []time.Duration{-5 * time.Millisecond, -time.Second, -time.Hour, time.Hour, 24 * time.Hour} {
		for _, agrees := range []bool{false, true} {
			t.Run(fmt.Sprint(step, agrees), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, l := newTable(), ledger{}
					p := newProcess(t, r, layout())
					defer p.stop()
					last := l.take(t, p, 1)
					time.Sleep(time.Minute)
					p.step.Store(int64(step))
					if agrees {
						r.set(func(r *table) { r.off = step })
					}
					follows := agrees || step.Abs() <= bounds.Behind
					refused := false
					for end := time.Now().Add(2 * time.Hour); time.Now().Before(end); time.Sleep(time.Second) {
						key, err := p.take(100)
						var clock *ClockError
						switch {
						case err == nil:
							l.note(t, key, 100)
						case errors.As(err, &clock) && step == -time.Hour && agrees:
							refused = true
							if clock.Behind <= 0 || clock.Behind > time.Hour || !strings.Contains(err.Error(), "behind the time of keys") {
								t.Fatal(err)
							}
							if st := p.State(); clock.Behind > bounds.Behind && st.Ticks != 0 {
								t.Fatalf("%d ticks are told to be there, of which no key comes for %v", st.Ticks, clock.Behind)
							}
							continue
						default:
							t.Fatal(err)
						}
						if key <= last {
							t.Fatalf("behind %d comes %d", last, key)
						}
						last = key
					}
					want := time.Now()
					if follows {
						want = want.Add(step)
					}
					p.wantTime(t, l.take(t, p, 1), want)
					if refused != (step == -time.Hour && agrees) {
						t.Errorf("keys were refused: %v", refused)
					}

					// the next process has the same clock
					p.stop()
					p.End(errors.New("ended"))
					q := newProcess(t, r, layout(), step)
					defer q.stop()
					key, err := q.take(1)
					var clock *ClockError
					switch {
					case agrees || step.Abs() <= bounds.Off:
						if err != nil {
							t.Fatal(err)
						}
						l.note(t, key, 1)
						q.wantTime(t, key, time.Now().Add(step))
					case !errors.As(err, &clock) || clock.Off != step:
						t.Errorf("a process whose clock is %v off: %d, %v", step, key, err)
					}
				})
			})
		}
	}
}

// A machine sleeps: for its processes no time passes, and then its clock is ahead.
func TestAMachineThatSleptGoesOnAtThePresentTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		p, q := newProcess(t, r, layout()), newProcess(t, r, layout())
		defer p.stop()
		defer q.stop()
		l.take(t, p, 1)
		l.take(t, q, 1)
		time.Sleep(time.Minute)
		const slept = 10 * time.Hour // longer than all that is reserved
		p.step.Store(int64(slept))
		r.set(func(r *table) { r.off = slept })
		l.take(t, p, 4096) // at once, of a time that is past
		time.Sleep(bounds.Look + 3*time.Second)
		p.wantTime(t, l.take(t, p, 1), time.Now().Add(slept))
		for _, s := range p.later {
			if s.to < p.tickNow() {
				t.Errorf("ticks that have passed are kept: %v", s)
			}
		}
	})
}

// A process is stopped for longer than its ticks last (SIGSTOP), while others take over its worker.
func TestAProcessThatWasStoppedGivesNoKeyTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		small := layout()
		small.WorkerBits = 1
		p := newProcess(t, r, small)
		l.take(t, p, 1)
		p.stop() // nobody renews
		synctest.Wait()
		time.Sleep(3 * cover)
		a, b := newProcess(t, r, small), newProcess(t, r, small)
		defer a.stop()
		defer b.stop()
		l.take(t, a, 1000)
		l.take(t, b, 1000)
		for range 100 {
			if key, ok := p.Take(1); ok {
				t.Fatalf("it gives %d, whose time is over", key)
			}
			time.Sleep(time.Millisecond)
		}
		// it renews, and finds both workers in use
		var workers *WorkersError
		if err := p.Renew(t.Context()); !errors.As(err, &workers) || workers.Free < cover || workers.Free > 2*cover+time.Minute {
			t.Errorf("with both workers in use: %v", err)
		}
		if _, err := p.take(1); err == nil {
			t.Error("it gives keys of nobody's worker")
		}
	})
}

// Of two processes that claim a worker at the same moment one gets it, and no key of the ticks that
// others took too is given twice.
func TestTwoProcessesOnOneWorkerGiveNoKeyTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		var once sync.Once
		p, q := newProcess(t, r, layout()), newProcess(t, r, layout())
		defer p.stop()
		defer q.stop()
		r.meet = func(worker uint64) {
			once.Do(func() { r.set(func(r *table) { r.rows[worker] += 700_000 }) })
		}
		l.take(t, p, 1)
		l.take(t, q, 1)
		for range 300 {
			l.take(t, p, 10)
			l.take(t, q, 10)
			// somebody reserves ticks of all workers
			r.set(func(r *table) {
				for worker := range r.rows {
					r.rows[worker] += 20_000
				}
			})
			time.Sleep(time.Minute)
		}
	})
}

// Random schedules: processes come and go, clocks are set, the server is away or goes back in time
// within what its engine allows. The server never gives a tick twice.
func TestNoScheduleGivesAKeyTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			r, l := newTable(), ledger{}
			small := layout()
			small.WorkerBits, small.CounterBits, small.TimeBits = 2, 3, 45
			var all []*process
			defer func() {
				for _, p := range all {
					p.stop()
				}
			}()
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				switch rapid.IntRange(0, 10).Draw(rt, "step") {
				case 0:
					if len(all) < 6 {
						clock := time.Duration(rapid.IntRange(-2000, 2000).Draw(rt, "clock")) * time.Second
						var worker *uint64
						if n := rapid.Uint64Range(0, 6).Draw(rt, "worker"); n < 4 {
							worker = &n
						}
						all = append(all, newWorker(t, r, small, worker, clock))
					}
				case 1:
					if len(all) > 0 { // kill -9, or SIGSTOP for ever
						rapid.SampledFrom(all).Draw(rt, "killed").dead = true
					}
				case 8:
					if len(all) > 0 {
						p := rapid.SampledFrom(all).Draw(rt, "stopped")
						p.dead = true
						r.putBack(p)
					}
				case 9: // a fail-over
					worker, ticks := rapid.Uint64Range(0, 3).Draw(rt, "passed over"), rapid.Uint64Range(1, 4_000_000).Draw(rt, "ticks")
					r.set(func(r *table) { r.rows[worker] += ticks })
				case 2:
					if len(all) > 0 {
						rapid.SampledFrom(all).Draw(rt, "set").step.Add(int64(rapid.IntRange(-5000, 100_000).Draw(rt, "by")) * int64(time.Second))
					}
				case 3:
					away := rapid.Bool().Draw(rt, "away")
					off := time.Duration(rapid.IntRange(-4000, 4000).Draw(rt, "server's clock")) * time.Second
					r.set(func(r *table) {
						r.off = off
						if r.down = nil; away {
							r.down = errors.New("away")
						}
					})
				case 4:
					time.Sleep(time.Duration(rapid.IntRange(1, 4000).Draw(rt, "seconds")) * time.Second)
				default:
					for _, p := range all {
						if p.dead {
							continue
						}
						for range rapid.IntRange(1, 20).Draw(rt, "takes") {
							n := rapid.Uint64Range(1, 8).Draw(rt, "rows")
							if key, err := p.take(n); err == nil {
								l.note(rt, key, n)
							} else {
								break
							}
						}
					}
				}
			}
		})
	})
}

// A process that takes one worker alone continues with it at once after a clean stop, and after a
// kill when the reserved ticks have passed.
func TestTheOnlyWorkerOfAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		small, three, four := layout(), uint64(3), uint64(4)
		small.WorkerBits = 2
		wantError := func(p *process, free time.Duration, words string) {
			t.Helper()
			key, err := p.take(1)
			var worker *WorkerError
			if !errors.As(err, &worker) || (worker.Free-free).Abs() > 8*time.Minute || !strings.Contains(err.Error(), words) {
				t.Errorf("it gives %d, %v, want an error with %q and %v", key, err, words, free)
			}
		}
		p := newWorker(t, r, small, &three)
		last := l.take(t, p, 1)
		for range 40 {
			time.Sleep(time.Minute)
			key := l.take(t, p, 5)
			if _, worker, _ := p.k.Decompose(key); worker != three || key <= last {
				t.Fatalf("behind %d comes %d, of worker %d", last, key, worker)
			}
			last = key
		}
		wrong := newWorker(t, r, small, &four)
		defer wrong.stop()
		wantError(wrong, 0, `sequence "photos" has workers 0 to 3, and the worker_id of this proxy is 4`)
		r.set(func(r *table) { r.holders = "web3, process 7, worker 3" })
		second := newWorker(t, r, small, &three)
		wantError(second, 2*cover, "by web3, process 7, worker 3: give each proxy another worker_id")
		wantError(second, 2*cover, "")
		r.set(func(r *table) { r.holders = "" })
		p.wantTime(t, l.take(t, p, 1), time.Now())

		r.putBack(p)
		l.take(t, second, 1)
		second.stop() // killed
		third := newWorker(t, r, small, &three)
		wantError(third, 2*cover, " still, by a proxy without worker_id or one that was killed")
		time.Sleep(2 * cover)
		for range 1000 {
			key := l.take(t, third, 1)
			third.wantTime(t, key, time.Now())
		}

		// a fail-over passes over an hour of ticks
		r.set(func(r *table) { r.rows[three] += 3_600_000 })
		remaining, none, end := 0, 0, time.Now().Add(2*time.Hour)
		for time.Now().Before(end) {
			if key, err := third.take(1); err == nil {
				l.note(t, key, 1)
				third.wantTime(t, key, time.Now())
				remaining++
			} else {
				wantError(third, third.until(third.workers[0].first), "in use for ")
				none++
			}
			time.Sleep(time.Minute)
		}
		if none < 50 || none > 60 || remaining < 40 {
			t.Errorf("in two hours there were %d keys, and %d minutes without", remaining, none)
		}
		r.putBack(third)
	})
}

// A renewal is in progress that has found the only worker in use. The process that had it ends. Who
// asks for a key after that gets one.
func TestARenewalThatBeganBeforeRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l, worker := newTable(), ledger{}, uint64(3)
		first, second := newWorker(t, r, layout(), &worker), newWorker(t, r, layout(), &worker)
		defer second.stop()
		l.take(t, first, 1)
		r.set(func(r *table) { r.slow = time.Second })
		hasty, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		if key, err := second.Wait(hasty, 1); err == nil {
			t.Fatalf("the second one gives %d", key)
		}
		r.putBack(first)
		l.take(t, second, 1)
	})
}

// Several servers have the workers. One of them may be away for ever, and another one in its place
// later: nobody waits. Keys rise.
func TestAServerThatIsAwayIsNotNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		r.homes = 3
		p := newProcess(t, r, layout())
		defer p.stop()
		last := l.take(t, p, 1)
		synctest.Wait() // it has its second worker, too
		homes := make(map[uint64]bool)
		for worker := range r.rows {
			homes[worker%3] = true
		}
		if len(r.rows) != 2 || len(homes) != 2 {
			t.Errorf("it has the workers %v, want two of different servers", r.rows)
		}
		for i := range uint64(6) {
			r.set(func(r *table) { r.away = map[uint64]bool{i % 3: true} })
			for end := time.Now().Add(4 * cover); time.Now().Before(end); time.Sleep(10 * time.Second) {
				begin := time.Now()
				key := l.take(t, p, 3)
				if took := time.Since(begin); took > time.Millisecond || key <= last {
					t.Fatalf("server %d is away: behind %d comes %d, after %v", i%3, last, key, took)
				}
				last = key
			}
		}
		// one that begins, and one without a server
		q := newProcess(t, r, layout())
		defer q.stop()
		q.wantTime(t, l.take(t, q, 1), time.Now())
		r.set(func(r *table) { r.away = map[uint64]bool{0: true, 1: true, 2: true} })
		time.Sleep(3 * cover)
		var workers *WorkersError
		var wait *WaitError
		if _, err := p.take(1); !errors.As(err, &wait) || !errors.As(wait.Err, &workers) || workers.Away == 0 || !strings.Contains(err.Error(), "is away") {
			t.Errorf("with no server: %v", err)
		}
	})
}

// The row of a worker stands at its end. Others have ticks, and nobody has those from 0 on.
func TestAWorkerWithoutTicksIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		p := newProcess(t, r, layout())
		r.end = p.k.MaxCounter()
		l.take(t, p, 1)
		p.stop()
		w, spans := p.workers[0], p.spansLocked()
		r.rows[w.id] = r.end
		if err := p.extend(t.Context(), &w, p.tickNow(), w.last+1000); err != nil || w.claimed || !slices.Equal(p.spansLocked(), spans) {
			t.Errorf("without ticks of its worker it has %+v and %v, %v; had %v", w, p.spansLocked(), err, spans)
		}
		p.workers[0] = w
		if err := p.Renew(t.Context()); err != nil || p.workers[0].id == w.id {
			t.Errorf("it has no other worker: %+v, %v", p.workers[0], err)
		}
	})
}

// Servers are added and removed, so that workers are at home elsewhere.
func TestWorkersAreOfTwoServersWhenThoseChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		p := newProcess(t, r, layout())
		defer p.stop()
		for _, homes := range []uint64{1, 2, 3, 2, 5, 1, 4} {
			r.set(func(r *table) { r.homes = homes })
			time.Sleep(3 * cover)
			l.take(t, p, 10)
			time.Sleep(time.Second) // a renewal ends
			synctest.Wait()
			if a, b := p.workers[0], p.workers[1]; homes > 1 && (!a.claimed || !b.claimed || a.id%homes == b.id%homes) {
				t.Errorf("with %d servers it has the workers %+v", homes, p.workers)
			}
		}
	})
}

func TestTheEndOfTheTimeBits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		small := layout()
		small.Epoch, small.TimeBits = time.Now().Add(-time.Minute), 20 // 1048 s
		p := newProcess(t, r, small)
		defer p.stop()
		for range 98 {
			l.take(t, p, 1)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(10 * time.Second)
		var end *EndError
		if key, err := p.take(1); !errors.As(err, &end) {
			t.Errorf("behind the last tick: %d, %v", key, err)
		}
	})
}

// A column has keys so high that no clock of this machine reaches their time.
func TestATimeThatNoClockComesToIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := layout()
		long.Tick, long.TimeBits = time.Second, 41
		p := newProcess(t, newTable(), long)
		defer p.stop()
		for _, tick := range []uint64{12_000_000_000, 430_000_000_000, p.k.MaxCounter()} {
			p.PassOver(tick)
			failed := make(chan error, 1)
			go func() {
				_, err := p.take(1)
				failed <- err
			}()
			select {
			case err := <-failed:
				var clock *ClockError
				if !errors.As(err, &clock) || clock.Behind < 200*365*24*time.Hour {
					t.Errorf("behind the tick %d: %v", tick, err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("behind the tick %d nobody is told anything", tick)
			}
		}
	})
}

// A cover that is shorter than the time between two renewals is always there too.
func TestAShortCoverIsThereAtAllTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newTable(), layout())
		defer p.stop()
		const short = 5 * time.Second
		p.o.Cover = func() time.Duration { return short }
		for range 120 {
			if _, err := p.take(1); err != nil {
				t.Fatal(err)
			}
			if covered := p.State().Covered; covered < short {
				t.Fatalf("ticks are there for %v, want %v", covered, short)
			}
			time.Sleep(time.Second)
		}
	})
}

// A caller who waits in vain for a tick with enough keys gets an error with the number of keys.
func TestTooFewKeysInATickAreAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		few := layout()
		few.Tick, few.CounterBits = time.Second, 1
		p := newProcess(t, newTable(), few)
		defer p.stop()
		var group sync.WaitGroup
		var given, refused atomic.Int64
		for range 20 {
			group.Go(func() {
				_, err := p.take(1)
				var full *FullError
				var wait *WaitError
				switch {
				case err == nil:
					given.Add(1)
				case errors.As(err, &wait) && errors.As(wait.Err, &full) && full.Keys == 2 && full.Tick == time.Second:
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if given.Load() < 4 || refused.Load() < 10 {
			t.Errorf("within three seconds %d got a key of 2 in each, %d did not", given.Load(), refused.Load())
		}
	})
}

// A process begins while its clock is ahead, like the server's, and gives no key before that is set
// right. Its ticks are useless then, and other workers are free.
func TestWhoBeganAheadHasTicksWhenTheClockIsSetRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newTable(), ledger{}
		p := newProcess(t, r, layout(), 50*time.Second)
		defer p.stop()
		if err := p.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.step.Store(0)
		if err := p.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		if workers := len(r.rows); workers != 2 {
			t.Errorf("it has %d workers, want 2", workers)
		}
		p.wantTime(t, l.take(t, p, 1), time.Now())
	})
}

func BenchmarkTake(b *testing.B) {
	r := newTable()
	l := kind.DefaultLayout()
	l.Epoch, l.CounterBits, l.WorkerBits = time.Now().Add(-time.Hour).Truncate(time.Millisecond), 20, 2 // never full
	p := newProcess(b, r, l)
	defer p.stop()
	if _, err := p.take(1); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, ok := p.Take(1); !ok {
				b.Errorf("waits: %+v", p.State())
				return
			}
		}
	})
}
