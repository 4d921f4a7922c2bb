package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// script is a reserver whose answers and moments a test decides: it shows the cache in situations
// that a real server gets into only by chance. reserve_test.go shows that the real one keeps the
// same promises.
type script struct {
	mu       sync.Mutex
	last     uint64        // highest number given out
	gaps     []uint64      // numbers that others take before each coming call
	failures []error       // answers of the coming calls, nil for a success
	down     error         // answer of every call, if not nil
	hold     chan struct{} // if not nil, a call waits for one token
	asked    []uint64      // want of every call
	inflight int
	most     int // most calls at one time
	exact    uint64
	max      uint64
	order    bool // the sequence has ORDER
	check    func(want, need uint64)
}

func (s *script) Reserve(ctx context.Context, name string, want, need uint64) (sequence.Grant, error) {
	s.mu.Lock()
	s.inflight++
	s.most = max(s.most, s.inflight)
	s.asked = append(s.asked, want)
	hold, check := s.hold, s.check
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.inflight--
		s.mu.Unlock()
	}()
	if check != nil {
		check(want, need)
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return sequence.Grant{}, context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return sequence.Grant{}, s.down
	}
	if len(s.failures) > 0 {
		err := s.failures[0]
		s.failures = s.failures[1:]
		if err != nil {
			return sequence.Grant{}, err
		}
	}
	if len(s.gaps) > 0 {
		s.last += s.gaps[0]
		s.gaps = s.gaps[1:]
	}
	if remaining := s.max - s.last; remaining < want {
		if remaining < need {
			return sequence.Grant{}, &sequence.NameError{Name: name, Err: sequence.ErrExhausted}
		}
		want = need
	}
	g := sequence.Grant{Seg: segment.New(s.last+1, s.last+want), Max: s.max, Exact: s.exact, Order: s.order}
	s.last += want
	return g, nil
}

func (s *script) GiveBack(_ context.Context, _ string, _ uint64, seg segment.Segment) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != seg.Last() {
		return false, nil
	}
	s.last = seg.Next() - 1
	return true, nil
}

func (s *script) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *script) calls() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// scripted makes Sequences that know "photos" and reserve from script. The caller closes them
// inside its bubble.
func scripted(t *testing.T, sc *script, change ...func(*sequence.Options)) (*sequence.Sequences, sequence.Cache) {
	t.Helper()
	if sc.max == 0 {
		sc.max = math.MaxUint64
	}
	o := sequence.Options{Servers: []sequence.ServerOptions{{Addr: "seq.example:3306", Database: "app"}}}
	for _, f := range change {
		f(&o)
	}
	s, err := sequence.New(o)
	if err != nil {
		t.Fatal(err)
	}
	sequence.Inside(s).ReserveFrom(sc)
	c, err := sequence.Inside(s).Meet("photos", store.Row{Name: "photos", ID: sc.last, Max: sc.max, Exact: sc.exact, Entry: store.Entry{Def: define.Definition{Order: sc.order}}})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func closeNow(t *testing.T, s *sequence.Sequences) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
	checkSums(t, s)
}

func TestManyCallersNeverCauseTwoReservationsAtATime(t *testing.T) {
	sc := &script{}
	s, _ := scripted(t, sc, cacheSize(7))
	var all sync.Map
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			last := uint64(0)
			for range 200 {
				n, err := s.Take(context.Background(), []byte("photos"), 1)
				if err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				if n <= last {
					t.Errorf("got %d after %d, want rising numbers", n, last)
				}
				last = n
				if _, twice := all.LoadOrStore(n, true); twice {
					t.Errorf("%d was given twice", n)
				}
			}
		})
	}
	wg.Wait()
	closeNow(t, s)
	if sc.most != 1 {
		t.Errorf("got up to %d reservations at a time, want 1", sc.most)
	}
}

func TestCancelledCallerDoesNotAbortWhatOthersWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{hold: make(chan struct{})}
		s, _ := scripted(t, sc)
		defer closeNow(t, s)
		stop := errors.New("the client has gone")
		ctx, cancel := context.WithCancelCause(context.Background())
		impatient, patient := make(chan error, 1), make(chan uint64, 1)
		go func() {
			_, err := s.Take(ctx, []byte("photos"), 1)
			impatient <- err
		}()
		synctest.Wait()
		go func() {
			n, err := s.Take(context.Background(), []byte("photos"), 1)
			if err != nil {
				t.Errorf("the patient caller got %v", err)
			}
			patient <- n
		}()
		synctest.Wait()
		cancel(stop)
		if err := <-impatient; !errors.Is(err, stop) {
			t.Errorf("the cancelled caller got %v, want its own cause", err)
		}
		sc.hold <- struct{}{}
		if n := <-patient; n != 1 {
			t.Errorf("the patient caller got %d, want 1: the cancelled one took nothing", n)
		}
		sc.set(func() { close(sc.hold) })
		if calls := sc.calls(); calls[0] != 1000 || len(calls) > 2 {
			t.Errorf("got reservations %v, want the one of 1000 to serve both", calls)
		}
	})
}

func TestCallersAreServedInTheOrderTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{hold: make(chan struct{})}
		s, _ := scripted(t, sc, cacheSize(3))
		defer closeNow(t, s)
		sizes := []uint64{1, 5, 1, 2, 1, 4}
		got := make([]uint64, len(sizes))
		var wg sync.WaitGroup
		for i, n := range sizes {
			wg.Go(func() { got[i] = mustTake(t, s, "photos", n) })
			synctest.Wait()
		}
		close(sc.hold)
		wg.Wait()
		for i := 1; i < len(got); i++ {
			if got[i] < got[i-1]+sizes[i-1] {
				t.Errorf("got %v for runs of %v, want each after the one that came before", got, sizes)
			}
		}
	})
}

func TestRunCrossesIntoTheNextSegmentOnlyIfItAdjoins(t *testing.T) {
	for _, c := range []struct {
		name          string
		gap           uint64
		first         uint64
		skipped, next uint64
	}{
		{"adjoining", 0, 9, 0, 13},
		{"another proxy reserved in between", 50, 61, 2, 65},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sc := &script{}
				s, cache := scripted(t, sc, cacheSize(10))
				defer closeNow(t, s)
				sc.set(func() { sc.gaps = []uint64{0, c.gap} })
				for want := uint64(1); want <= 8; want++ {
					if got := mustTake(t, s, "photos", 1); got != want {
						t.Fatalf("got %d, want %d", got, want)
					}
					synctest.Wait()
				}
				if got := mustTake(t, s, "photos", 4); got != c.first {
					t.Errorf("a run of 4 begins at %d, want %d", got, c.first)
				}
				if got := cache.Unused(); got != c.skipped {
					t.Errorf("got %d numbers skipped, want %d", got, c.skipped)
				}
				if got := mustTake(t, s, "photos", 1); got != c.next {
					t.Errorf("got %d after the run, want %d", got, c.next)
				}
			})
		})
	}
}

func TestTypedCacheNeverHoldsMoreThanItsNumber(t *testing.T) {
	for _, exact := range []uint64{1, 2, 3, 10, 64} {
		sc := &script{exact: exact}
		s, cache := scripted(t, sc)
		random := rand.New(rand.NewPCG(1, exact))
		for range 2000 {
			gap := uint64(0)
			if random.IntN(3) == 0 {
				gap = random.Uint64N(20)
			}
			sc.gaps = append(sc.gaps, gap)
		}
		sc.check = func(want, need uint64) {
			cached := cache.Cached()
			if want > exact && want == need {
				return // a run longer than the cache reserves exactly itself
			}
			if cached+want > exact {
				t.Errorf("CACHE %d: reserves %d while %d are cached", exact, want, cached)
			}
		}
		last := uint64(0)
		for range 500 {
			n := 1 + random.Uint64N(4)
			if random.IntN(20) == 0 {
				n = exact + random.Uint64N(5)
			}
			first := mustTake(t, s, "photos", n)
			if first <= last {
				t.Fatalf("CACHE %d: got %d after %d, want rising numbers", exact, first, last)
			}
			last = first + n - 1
			if cached := cache.Cached(); cached > exact {
				t.Fatalf("CACHE %d: %d numbers are cached after a take", exact, cached)
			}
		}
		closeNow(t, s)
	}
}

func TestCacheOfOneFetchesNothingAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{exact: 1}
		s, _ := scripted(t, sc)
		defer closeNow(t, s)
		for want := uint64(1); want <= 5; want++ {
			if got := mustTake(t, s, "photos", 1); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
			synctest.Wait()
		}
		if got, want := sc.calls(), []uint64{1, 1, 1, 1, 1}; !slices.Equal(got, want) {
			t.Errorf("got reservations %v, want %v", got, want)
		}
	})
}

func TestCacheLoweredElsewhereIsObeyedAtTheNextReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{}
		s, cache := scripted(t, sc, func(o *sequence.Options) { o.OutageCover = time.Second })
		defer closeNow(t, s)
		mustTake(t, s, "photos", 400)
		synctest.Wait()
		sc.set(func() { sc.exact = 10 })
		mustTake(t, s, "photos", 200) // below the low-water mark: fetches ahead
		synctest.Wait()
		if cached := cache.Cached(); cached != 10 {
			t.Errorf("%d numbers are cached after CACHE 10 was learned, want 10", cached)
		}
		if got := mustTake(t, s, "photos", 1); got != 601 {
			t.Errorf("got %d, want 601: the lowest numbers are kept", got)
		}
	})
}

func TestOutageIsToldAfterAllocateTimeoutAndHealsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("connection refused")
		sc := &script{down: cause}
		s, cache := scripted(t, sc, patience(2*time.Second))
		defer closeNow(t, s)
		begin := time.Now()
		_, err := s.Take(context.Background(), []byte("photos"), 1)
		var unavailable *sequence.UnavailableError
		if !errors.As(err, &unavailable) || !errors.Is(err, cause) {
			t.Fatalf("got %v, want an UnavailableError with its cause", err)
		}
		if unavailable.Sequence != "photos" || unavailable.Server != "seq.example:3306" {
			t.Errorf("the error names %q on %q, want photos on seq.example:3306", unavailable.Sequence, unavailable.Server)
		}
		if waited := time.Since(begin); waited != 2*time.Second {
			t.Errorf("waited %v, want the allocate timeout of 2s", waited)
		}
		time.Sleep(time.Hour)
		if calls := len(sc.calls()); calls < 3000 || calls > 9000 {
			t.Errorf("got %d attempts in an hour, want about one in 0.5 to 1 second", calls)
		}
		sc.set(func() { sc.down = nil })
		time.Sleep(sequence.UsualTiming().LastBackoff + time.Millisecond)
		synctest.Wait()
		if cached := cache.Cached(); cached != 1000 {
			t.Errorf("%d numbers are cached after the outage, want 1000 without anybody asking", cached)
		}
	})
}

func TestUnfitServerIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{down: &sequence.UnfitError{Server: "seq.example:3306", Finding: "it is read only", Remedy: "SET GLOBAL read_only = 0"}}
		s, _ := scripted(t, sc)
		defer closeNow(t, s)
		begin := time.Now()
		_, err := s.Take(context.Background(), []byte("photos"), 1)
		if !errors.Is(err, sequence.ErrUnfit) || time.Since(begin) != 0 {
			t.Errorf("got %v after %v, want ErrUnfit at once", err, time.Since(begin))
		}
		wantText(t, err, "read only", "SET GLOBAL read_only = 0", "seq.example:3306")
		for range 100 {
			synctest.Wait()
			if _, err := s.Take(context.Background(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) || time.Since(begin) != 0 {
				t.Fatalf("asked again got %v after %v, want ErrUnfit at once", err, time.Since(begin))
			}
		}
		if calls := len(sc.calls()); calls != 1 {
			t.Errorf("101 takes in one moment cost %d attempts, want 1", calls)
		}
		sc.set(func() { sc.down = nil })
		time.Sleep(sequence.UsualTiming().LastBackoff)
		if got := mustTake(t, s, "photos", 1); got != 1 {
			t.Errorf("mended, got %d, want 1", got)
		}
	})
}

// What makes a server unfit may be found after the row has moved, so each attempt costs a gap.
func TestUnfitServerIsNotAskedAheadWhileNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{}
		s, cache := scripted(t, sc)
		defer closeNow(t, s)
		mustTake(t, s, "photos", 1)
		synctest.Wait()
		sc.set(func() { sc.down = &sequence.UnfitError{Finding: "a trigger", Remedy: "DROP TRIGGER"} })
		before := len(sc.calls())
		mustTake(t, s, "photos", cache.Cached()-100) // below the low-water mark: fetches ahead
		time.Sleep(time.Hour)
		if calls := len(sc.calls()) - before; calls != 1 {
			t.Errorf("got %d attempts in an idle hour, want 1", calls)
		}
		for range 100 {
			mustTake(t, s, "photos", 1)
			if cache.Cached() < 10 {
				break
			}
			time.Sleep(sequence.UsualTiming().LastBackoff / 100)
		}
		if calls := len(sc.calls()) - before; calls > 12 {
			t.Errorf("got %d attempts in a second of use, want few", calls)
		}
		sc.set(func() { sc.down = nil })
		time.Sleep(sequence.UsualTiming().LastBackoff)
		mustTake(t, s, "photos", 1) // from memory
		synctest.Wait()
		if cached := cache.Cached(); cached < 1000 {
			t.Errorf("%d numbers are cached after the server was mended, want 1000 or more: the next take fetches ahead", cached)
		}
	})
}

func TestExhaustionIsToldToThoseWhoAskForTooMuchOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{max: 20, hold: make(chan struct{})}
		s, _ := scripted(t, sc)
		defer closeNow(t, s)
		type answer struct {
			first uint64
			err   error
		}
		answers := make([]answer, 4)
		var wg sync.WaitGroup
		for i, n := range []uint64{15, 10, 3, 2} {
			wg.Go(func() { answers[i].first, answers[i].err = s.Take(context.Background(), []byte("photos"), n) })
			synctest.Wait()
		}
		close(sc.hold)
		wg.Wait()
		if answers[0].first != 1 || answers[2].first != 16 || answers[3].first != 19 {
			t.Errorf("got %+v, want runs at 1, 16 and 19", answers)
		}
		if !errors.Is(answers[1].err, sequence.ErrExhausted) {
			t.Errorf("10 of 5 numbers: got %v, want ErrExhausted", answers[1].err)
		}
		wantText(t, answers[1].err, "photos")
		if _, err := s.Take(context.Background(), []byte("photos"), 1); !errors.Is(err, sequence.ErrExhausted) {
			t.Errorf("after the last number: got %v, want ErrExhausted", err)
		}
	})
}

func TestExhaustionIsNotToldToWhoCameAfterTheOneItIsAbout(t *testing.T) {
	for _, order := range []bool{false, true} {
		t.Run(fmt.Sprintf("order %v", order), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sc := &script{max: 50, order: order, hold: make(chan struct{})}
				s, c := scripted(t, sc)
				defer closeNow(t, s)
				// Until all of them wait: those of an ORDER sequence are one batch.
				c.HoldUp()
				ctx, leave := context.WithCancelCause(context.Background())
				gone := errors.New("its client has gone")
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := s.Take(ctx, []byte("photos"), 100); !errors.Is(err, gone) {
						t.Errorf("100 of 50 numbers: got %v, want %v", err, gone)
					}
				})
				synctest.Wait()
				for range 2 {
					wg.Go(func() {
						if _, err := s.Take(context.Background(), []byte("photos"), 1); err != nil {
							t.Errorf("1 of 50 numbers: got %v", err)
						}
					})
				}
				synctest.Wait()
				c.GoOn()
				synctest.Wait()
				leave(gone)
				synctest.Wait()
				close(sc.hold)
				wg.Wait()
			})
		})
	}
}

func TestNothingIsFetchedAheadOnceTheEndIsReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{exact: 10, max: 12}
		s, _ := scripted(t, sc)
		defer closeNow(t, s)
		// Asking without an end would show.
		sc.check = func(uint64, uint64) { time.Sleep(time.Millisecond) }
		for want := uint64(1); want <= 12; want++ {
			if got := mustTake(t, s, "photos", 1); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
			time.Sleep(time.Second)
		}
		if calls := len(sc.calls()); calls > 12 {
			t.Errorf("12 numbers cost %d reservations", calls)
		}
	})
}

func TestWaiterThatGivesUpLetsTheNextOneHaveTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{}
		s, _ := scripted(t, sc, cacheSize(10), patience(time.Second))
		defer closeNow(t, s)
		mustTake(t, s, "photos", 1)
		synctest.Wait()
		sc.set(func() { sc.down = errors.New("connection refused") })
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := s.Take(context.Background(), []byte("photos"), 50); err == nil {
				t.Error("a run of 50 was served without a server")
			}
		})
		synctest.Wait()
		time.Sleep(500 * time.Millisecond)
		wg.Go(func() {
			if got, err := s.Take(context.Background(), []byte("photos"), 1); err != nil || got != 2 {
				t.Errorf("the caller behind got %d, %v; want 2 from the rest in memory", got, err)
			}
		})
		wg.Wait()
	})
}

func TestSequenceInUseHoldsTheOutageCover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{}
		s, cache := scripted(t, sc)
		defer closeNow(t, s)
		const rate = 100
		cover := uint64(rate * sequence.DefaultOutageCover.Seconds())
		for second := range 1200 {
			mustTake(t, s, "photos", rate)
			time.Sleep(time.Second)
			if cached := cache.Cached(); second > 300 && cached < cover {
				t.Fatalf("after %d s at %d/s %d numbers are cached, want %d or more", second, rate, cached, cover)
			} else if cached > 3*cover {
				t.Fatalf("after %d s at %d/s %d numbers are cached, want at most about twice %d", second, rate, cached, cover)
			}
		}
		steady := len(sc.calls())
		if steady > 60 {
			t.Errorf("got %d reservations in 20 minutes, want few", steady)
		}
		// Idle: the size goes back slowly, then all the way.
		size := cache.Size
		busy := size()
		time.Sleep(5 * time.Minute)
		if got := size(); got >= busy || got < busy/2 {
			t.Errorf("after 5 idle minutes the size is %d of %d, want it to shrink slowly", got, busy)
		}
		time.Sleep(3 * time.Hour)
		if got := size(); got != sequence.DefaultCacheSize {
			t.Errorf("after three idle hours the size is %d, want %d", got, sequence.DefaultCacheSize)
		}
	})
}

func TestShortBurstDoesNotReserveAQuarterOfAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{}
		s, _ := scripted(t, sc)
		defer closeNow(t, s)
		for range 5000 {
			mustTake(t, s, "photos", 1)
		}
		synctest.Wait()
		if sc.last > 5000*100 {
			t.Errorf("a burst of 5000 numbers reserved %d", sc.last)
		}
	})
}

func TestUnansweredReservationDoesNotBlockClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{hold: make(chan struct{})}
		s, _ := scripted(t, sc)
		waiting := make(chan error, 1)
		go func() {
			_, err := s.Take(context.Background(), []byte("photos"), 1)
			waiting <- err
		}()
		synctest.Wait()
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		begin := time.Now()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: got %v, want its deadline", err)
		}
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("Close took %v, want its second", waited)
		}
		if err := <-waiting; !errors.Is(err, sequence.ErrClosed) {
			t.Errorf("the waiting caller got %v, want ErrClosed", err)
		}
		if _, err := s.Take(context.Background(), []byte("photos"), 1); !errors.Is(err, sequence.ErrClosed) {
			t.Errorf("after Close: got %v, want ErrClosed", err)
		}
	})
}

func TestDeadOnesAreForgottenWithTheirSpellings(t *testing.T) {
	sc := &script{}
	s, c := scripted(t, sc)
	defer closeNow(t, s)
	for i := range 10 * sequence.MostSpellings {
		sequence.Inside(s).Spell(strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String(), c)
	}
	if n := sequence.Inside(s).Spellings(); n > sequence.MostSpellings {
		t.Errorf("%d spellings are remembered, want at most %d", n, sequence.MostSpellings)
	}
	if sequence.Inside(s).Cache("photos") != c {
		t.Error("the table's own spelling was forgotten")
	}
}
