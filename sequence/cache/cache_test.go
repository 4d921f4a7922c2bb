package cache

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// process is the owner of a cache, with the counter that it reserves from.
type process struct {
	tasks sync.WaitGroup
	size  uint64

	mu    sync.Mutex
	last  uint64 // the highest number reserved
	order bool
	hold  chan struct{} // if not nil, a reservation waits for one
	gaps  func() uint64 // numbers that others take before a reservation
}

func (p *process) Go(f func(ctx context.Context))         { p.tasks.Go(func() { f(context.Background()) }) }
func (p *process) Sleep(d time.Duration)                  { time.Sleep(d) }
func (p *process) Patience(context.Context) time.Duration { return time.Minute }
func (p *process) WhyNot(string) (string, error)          { return "seq.example:3306", errors.New("it is away") }

func (p *process) Sizing() Sizing { return Sizing{Least: p.size, Cover: time.Second} }

func (p *process) Reserve(_ context.Context, _ string, want, _ uint64) (store.Grant, error) {
	if p.hold != nil {
		<-p.hold
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gaps != nil {
		p.last += p.gaps()
	}
	p.last += want
	return store.Grant{Segment: segment.New(p.last-want+1, p.last), Max: math.MaxUint64, Order: p.order}, nil
}

// cacheOf is a cache of "photos" that reserves from p.
func cacheOf(p *process) *Cache {
	all := &Common{
		Owner: p, Log: zap.NewNop(), Counters: &stats.Counters{Scores: stats.NewScores()},
		Timing: Timing{FirstBackoff: time.Millisecond, LastBackoff: time.Second, FrozenBackoff: time.Second, AlarmRest: time.Millisecond, Idle: time.Minute},
	}
	found := store.Row{Name: "photos", Max: math.MaxUint64, Entry: store.NoEntry()}
	found.Def.Order = p.order
	return New(all, p, found)
}

// end shuts a cache, and waits for its reservations.
func (p *process) end(c *Cache) {
	c.Shut(errors.New("the end"))
	p.tasks.Wait()
}

// checkSums fails the test unless the counts match the numbers.
func checkSums(t *testing.T, c *Cache) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stock.check(t)
}

// Numbers are taken, chosen by others, passed over, trimmed and returned, in any order, while
// others reserve too. They rise, none that was chosen is given, and each is counted once.
func TestNumbersThatLeaveRiseAndEachIsCountedOnce(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			p := &process{size: 1 + random.Uint64N(60)}
			p.gaps = func() uint64 { return max(random.Uint64N(40), 30) - 30 }
			c := cacheOf(p)
			chosen := make(map[uint64]bool)
			top, version := uint64(0), uint64(0)
			for range 400 {
				switch random.IntN(8) {
				default:
					n := 1 + random.Uint64N(4)
					first, step, err := c.Take(t.Context(), n, time.Time{})
					if err != nil || step != 1 || first <= top {
						t.Fatalf("seed %d: behind %d comes %d by %d, %v", seed, top, first, step, err)
					}
					for i := range n {
						if chosen[first+i] {
							t.Fatalf("seed %d: %d is given, which somebody has chosen", seed, first+i)
						}
					}
					top = first + n - 1
				case 0, 1:
					n := top + 1 + random.Uint64N(80)
					if n <= c.Spent() {
						chosen[n] = true
						c.TakeOut([]uint64{n}, false)
					}
				case 2:
					version++
					c.Revise(changedRow(func(r *store.Row) { r.Version, r.Def.Cache = version, 10*random.Uint64N(4) }))
				case 3:
					c.Pass(top + random.Uint64N(20))
				case 4:
					if random.IntN(4) == 0 {
						c.Flush()
					}
				}
				synctest.Wait()
				checkSums(t, c)
			}
			p.end(c)
			c.Empty(stats.UnusedFlush)
			checkSums(t, c)
		})
	}
}

func changedRow(change func(r *store.Row)) *store.Row {
	r := store.Row{Name: "photos", Max: 1<<64 - 1, Entry: store.NoEntry()}
	r.Version = 1
	change(&r)
	r.Max, r.Exact = r.Def.Limit(r.Max), r.Def.Cache
	return &r
}

func TestNumbersServedInTheMomentOfACancellationAreNotLost(t *testing.T) {
	c := cacheOf(&process{size: 10})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for number := range uint64(200) {
		w := c.waiters.get(1, time.Minute)
		c.mu.Lock()
		c.line.push(w)
		c.line.serve(w, number, 1)
		c.mu.Unlock()
		if got, _, err := c.wait(ctx, w); err != nil || got != number {
			t.Fatalf("got %d, %v; want %d, which had been given already", got, err, number)
		}
	}
}

func TestTheLineOfAnOrderSequenceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{order: true, hold: make(chan struct{})}
		c := cacheOf(p)
		first := make(chan uint64, 1)
		go func() {
			n, _, err := c.Take(context.Background(), 1, time.Time{})
			if err != nil {
				t.Error(err)
			}
			first <- n
		}()
		synctest.Wait()
		c.mu.Lock()
		c.line.length += maxOrderedQueue - 1 // so many others
		c.mu.Unlock()
		_, _, err := c.Take(context.Background(), 1, time.Time{})
		if err == nil || !strings.Contains(err.Error(), "too many wait") || !strings.Contains(err.Error(), "seq.example:3306") || !strings.Contains(err.Error(), `"photos"`) {
			t.Errorf("one too many gets %v", err)
		}
		close(p.hold)
		if n := <-first; n != 1 {
			t.Errorf("got %d, want 1", n)
		}
		if n, _, err := c.Take(context.Background(), 1, time.Time{}); n != 2 || err != nil {
			t.Errorf("got %d, %v; want 2", n, err)
		}
		if n := c.State(time.Now()).Waiting; n != maxOrderedQueue-1 {
			t.Errorf("%d are counted as waiting, want the others alone", n)
		}
		p.end(c)
	})
}

// A look at a sequence while its server is away records no row that was not read.
func TestALookWithoutARowTeachesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{size: 10}
		c := cacheOf(p)
		if _, _, err := c.Take(t.Context(), 1, time.Time{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		was := c.exhaustion.progress
		time.Sleep(rateSpan)
		c.Look(nil)
		if c.exhaustion.progress != was {
			t.Errorf("%+v became %+v", was, c.exhaustion.progress)
		}
		c.Look(&store.Row{Name: "photos", ID: 50, Max: math.MaxUint64, Entry: store.NoEntry()})
		if c.exhaustion.progress == was {
			t.Errorf("a row that was read left %+v", was)
		}
		p.end(c)
	})
}

func TestWhatIsNoWaitForNothing(t *testing.T) {
	for _, err := range []error{nil, context.Canceled, &define.NameError{Name: "photos", Err: define.ErrUnknown}} {
		if Unserved(err) {
			t.Errorf("%v counts as a wait for nothing", err)
		}
	}
	for _, err := range []error{&UnavailableError{Err: context.Canceled}, &define.NameError{Name: "photos", Err: define.ErrExhausted}} {
		if !Unserved(err) {
			t.Errorf("%v does not count as a wait for nothing", err)
		}
	}
}
