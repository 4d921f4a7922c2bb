package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/store"
)

// calendar is a sequence server in simulated time, with the counters of the days of one sequence.
type calendar struct {
	def   define.Definition
	trip  time.Duration // a question and its answer
	mu    sync.Mutex
	away  bool              // guarded by mu
	stand map[string]uint64 // guarded by mu; by the name of a row
}

var errAway = errors.New("the server is away")

// counters returns the positions of the rows.
func (c *calendar) counters() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.stand)
}

// ask is a question to the server, which may be away when it comes.
func (c *calendar) ask(ctx context.Context, answer func() error) error {
	for range 2 {
		select {
		case <-time.After(c.trip / 2):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if answer == nil {
			return nil
		}
		c.mu.Lock()
		err := errAway
		if !c.away {
			err = answer()
		}
		c.mu.Unlock()
		if err != nil {
			return err
		}
		answer = nil
	}
	return nil
}

func (c *calendar) Clock(ctx context.Context) (at time.Time, err error) {
	err = c.ask(ctx, func() error { return nil })
	return time.Now(), err
}

func (c *calendar) Counter(ctx context.Context, name string) (found store.Row, err error) {
	err = c.ask(ctx, func() error {
		stored := define.CounterName(name)
		c.stand[stored] += 0
		found = store.Row{Name: stored, ID: c.stand[stored], Max: math.MaxUint64, Exact: c.def.Cache, Entry: store.Entry{Def: c.def}}
		return nil
	})
	return found, err
}

func (c *calendar) Reserve(ctx context.Context, name string, want, _ uint64) (g sequence.Grant, err error) {
	err = c.ask(ctx, func() error {
		last, made := c.stand[name]
		if !made {
			return &sequence.NameError{Name: name, Err: sequence.ErrUnknown}
		}
		c.stand[name] = last + want
		g = sequence.Grant{Seg: segment.New(last+1, last+want), Max: math.MaxUint64, Exact: c.def.Cache}
		return nil
	})
	return g, err
}

func (c *calendar) GiveBack(context.Context, string, uint64, segment.Segment) (bool, error) {
	return false, nil
}

func (c *calendar) setAway(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

func newCalendar(t *testing.T, clause string, cache uint64) *calendar {
	return &calendar{def: define.Definition{Kind: kindOf(t, clause), Cache: cache}, trip: 20 * time.Millisecond, stand: make(map[string]uint64)}
}

// proxy opens a proxy whose clock is ahead. The caller closes it inside its bubble.
func (c *calendar) proxy(t *testing.T, ahead time.Duration) *sequence.Sequences {
	t.Helper()
	o := sequence.Options{Servers: []sequence.ServerOptions{{Addr: "seq.example:3306", Database: "app"}}}
	sequence.SetWall(&o, func() time.Time { return time.Now().Add(ahead).Round(0) })
	s, err := sequence.New(o)
	if err != nil {
		t.Fatal(err)
	}
	sequence.Inside(s).ReserveFrom(c)
	sequence.Inside(s).SetPeriodRows(c)
	sequence.Inside(s).FollowNothing() // nothing else is asked of the server
	_, err = sequence.Inside(s).Meet("po", store.Row{Name: define.CounterName("po"), Max: math.MaxUint64, Exact: c.def.Cache, Entry: store.Entry{Def: c.def}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// midnight is the first midnight of a bubble, whose time begins at another.
func midnight() time.Time { return time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// The nanosecond before midnight has the date of the old day, and midnight that of the new one.
func TestADayBeginsAtMidnightAndNotBefore(t *testing.T) {
	for _, cache := range []uint64{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			c, l := newCalendar(t, daily, cache), new(textLedger)
			c.trip = 0
			s := c.proxy(t, 0)
			defer closeNow(t, s)
			for day := range 3 {
				next := midnight()
				today, tomorrow := next.Add(-time.Hour).Format("20060102"), next.Format("20060102")
				time.Sleep(time.Until(next) - time.Nanosecond)
				n := map[bool]int{true: 1, false: 2}[day == 0]
				wantKey(t, l.take(t, s, "po"), fmt.Sprintf("PO-%s-%06d", today, n))
				time.Sleep(time.Nanosecond)
				wantKey(t, l.take(t, s, "po"), "PO-"+tomorrow+"-000001")
			}
		})
	}
}

// Proxies whose clocks differ, up to what is allowed, give keys around midnight without a pause. A
// key has a date that the proxy's clock showed while it was taken; none repeats, and with NOCACHE
// none is left out.
func TestKeysOnBothSidesOfMidnight(t *testing.T) {
	for _, cache := range []uint64{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			c, l := newCalendar(t, daily, cache), new(textLedger)
			next := midnight()
			time.Sleep(time.Until(next) - 3*time.Minute)
			var taking sync.WaitGroup
			for _, ahead := range []time.Duration{0, 59 * time.Second, -59 * time.Second} {
				s := c.proxy(t, ahead)
				defer closeNow(t, s)
				for range 3 {
					taking.Go(func() {
						for time.Since(next) < 3*time.Minute {
							before := time.Now().Add(ahead).Format("20060102")
							key := l.take(t, s, "po")
							after := time.Now().Add(ahead).Format("20060102")
							if date := strings.Split(key, "-")[1]; date != before && date != after {
								t.Errorf("a proxy whose clock is ahead by %v gives %s at %v", ahead, key, time.Now())
							}
							time.Sleep(30 * time.Millisecond)
						}
					})
				}
				taking.Go(func() {
					for time.Since(next) < 3*time.Minute {
						sequence.Inside(s).Beat() // as the heartbeat does
						time.Sleep(2 * time.Second)
					}
				})
			}
			taking.Wait()
			given := make(map[string]uint64)
			for key := range l.given {
				given[strings.Split(key, "-")[1]]++
			}
			for _, day := range []string{next.Add(-time.Hour).Format("20060102"), next.Format("20060102")} {
				reserved := c.counters()["po@"+day+"#counter"]
				if n := given[day]; n < 3000 || n > reserved || cache == 1 && n != reserved {
					t.Errorf("CACHE %d: of %s %d keys were given, and %d reserved", cache, day, n, reserved)
				}
			}
			if len(given) != 2 {
				t.Errorf("keys of %v were given, want two days", given)
			}
		})
	}
}

// The clocks of a proxy and the server may differ by a minute, and no more: also for cached
// numbers, and for the next day.
func TestAClockIsBelievedUpToAMinute(t *testing.T) {
	for _, off := range []time.Duration{time.Minute, -time.Minute} {
		for _, more := range []time.Duration{0, time.Nanosecond, 24 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				ahead := off + more
				if off < 0 {
					ahead = off - more
				}
				c := newCalendar(t, daily, 20)
				c.trip = 0
				time.Sleep(time.Until(midnight()) - time.Second)
				s := c.proxy(t, ahead)
				defer closeNow(t, s)
				for range 2 { // on both sides
					took, err := s.TakeRun(t.Context(), []byte("po"), 1)
					var wrong *snowflake.ClockError
					switch date := "PO-" + time.Now().Add(ahead).Format("20060102"); {
					case more == 0 && (err != nil || !strings.HasPrefix(took.Text, date)):
						t.Errorf("a clock that is off by %v gives %+v, %v, want a key of %s", ahead, took, err, date)
					case more > 0 && (!errors.As(err, &wrong) || wrong.Off != ahead):
						t.Errorf("a clock that is off by %v gives %+v, %v", ahead, took, err)
					}
					time.Sleep(2 * time.Second)
				}
				if made := c.counters(); more > 0 && len(made) > 0 {
					t.Errorf("a clock that is off by %v has made the counters %v", ahead, made)
				}
			})
		}
	}
}

// The server is away at midnight. With NOCACHE callers wait, for as long as they may, and their
// keys then have the date of the clock when they were served. With a cache no caller waits.
func TestAServerThatIsAwayAtMidnight(t *testing.T) {
	for _, c := range []struct {
		cache        uint64
		outage       time.Duration
		waits, fails bool
	}{{1, 2 * time.Second, true, false}, {1, time.Minute, true, true}, {500, 2 * time.Second, false, false}, {500, time.Minute, false, false}} {
		synctest.Test(t, func(t *testing.T) {
			server, l, next := newCalendar(t, daily, c.cache), new(textLedger), midnight()
			time.Sleep(time.Until(next) - time.Hour)
			s := server.proxy(t, 0)
			defer closeNow(t, s)
			from := next.Add(-time.Second)
			time.AfterFunc(time.Until(from), func() { server.setAway(true) })
			time.AfterFunc(time.Until(from.Add(c.outage)), func() { server.setAway(false) })
			waited, failed := 0, 0
			for time.Since(next) < time.Hour {
				begin := time.Now()
				took, err := s.TakeRun(t.Context(), []byte("po"), 1)
				if time.Since(begin) >= time.Second {
					waited++
				}
				var away *sequence.UnavailableError
				switch {
				case err == nil:
					l.add(t, took.Text)
					if date := strings.Split(took.Text, "-")[1]; date != begin.Format("20060102") && date != time.Now().Format("20060102") {
						t.Errorf("%s is given from %v to %v", took.Text, begin, time.Now())
					}
				case !errors.As(err, &away) || away.Sequence != "po":
					t.Errorf("it gives %v", err)
				default:
					failed++
				}
				sequence.Inside(s).Beat() // as the heartbeat does
				time.Sleep(time.Second)
			}
			if c.waits != (waited > 0) || c.fails != (failed > 0) {
				t.Errorf("%+v: %d callers waited, %d got none", c, waited, failed)
			}
		})
	}
}
