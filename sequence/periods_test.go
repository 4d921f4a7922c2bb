package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/snowflake"
	"seqproxy/test/mysqltest"
)

// daily is the kind that most of these tests use.
const daily = "FORMAT 'PO-{yyyyMMdd}-{n:6}' RESET DAILY"

// almanac is a clock that a test moves. It goes on besides.
type almanac struct{ ahead atomic.Int64 }

func almanacAt(at time.Time) *almanac {
	a := new(almanac)
	a.set(at)
	return a
}

func (a *almanac) now() time.Time   { return time.Now().Add(time.Duration(a.ahead.Load())).Round(0) }
func (a *almanac) set(at time.Time) { a.ahead.Store(int64(time.Until(at))) }

// skewed is a machine whose clock is ahead.
func (a *almanac) skewed(by time.Duration) func() time.Time {
	return func() time.Time { return a.now().Add(by) }
}

// serverAt is sequence servers whose clock is an almanac.
type serverAt struct {
	periodRows
	*almanac
}

func (s serverAt) clock(ctx context.Context) (time.Time, error) {
	if _, err := s.periodRows.clock(ctx); err != nil { // it is away
		return time.Time{}, err
	}
	return s.now(), nil
}

// openAt opens a proxy whose machine has a clock, and whose sequence server has that of an almanac.
func (p place) openAt(t testing.TB, server *almanac, machine func() time.Time, change ...func(*Options)) *Sequences {
	t.Helper()
	s := p.open(t, append(change, func(o *Options) {
		o.wall, o.timing.clockAgain = machine, time.Nanosecond // both clocks jump
	})...)
	s.periodRows = serverAt{s.periodRows, server}
	return s
}

// textLedger is keys that were given.
type textLedger struct {
	mu    sync.Mutex
	given map[string]bool
}

func (l *textLedger) add(t testing.TB, key string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given[key] {
		t.Errorf("the key %s was given before", key)
	}
	if l.given == nil {
		l.given = make(map[string]bool)
	}
	l.given[key] = true
}

func (l *textLedger) take(t testing.TB, s *Sequences, name string) string {
	t.Helper()
	took, err := s.TakeRun(context.Background(), []byte(name), 1)
	if err != nil {
		t.Fatalf("a key of %s: %v", name, err)
	}
	key := took.Text
	if key == "" {
		key = fmt.Sprint(took.First)
	}
	l.add(t, key)
	return key
}

func wantKey(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got the key %s, want %s", got, want)
	}
}

// wantIn wants a key of a period whose counter is at least n.
func wantIn(t testing.TB, k kind.Kind, key, period string, n uint64) {
	t.Helper()
	is, ok := k.PeriodOf(key)
	counter, _, _ := k.Origin(key)
	if !ok || k.PeriodName(is) != period || counter < n {
		t.Errorf("the key %s is of %s, counter %d; want one of %s and at least %d", key, k.PeriodName(is), counter, period, n)
	}
}

// eve is an hour and a half before the end of a year.
var eve = time.Date(2026, 12, 31, 22, 30, 0, 0, time.UTC)

// The counter begins again with each day. The sequence is listed, described and flushed as one, and
// nobody reaches the counters of its days.
func TestTheCounterOfAFormatBeginsAgain(t *testing.T) {
	p := newPlace(t)
	ctx, clock, l, k := context.Background(), almanacAt(eve), new(textLedger), kindOf(t, daily)
	s := p.openAt(t, clock, clock.now)
	mustCreate(t, s, CreateOptions{Name: "po", Kind: k, Comment: "orders"})
	for i := range 3 {
		wantKey(t, l.take(t, s, "po"), fmt.Sprintf("PO-20261231-%06d", i+1))
	}
	listed := func(next uint64) {
		t.Helper()
		all, err := s.List(ctx)
		if err != nil || len(all) != 1 || all[0].Name != "po" || all[0].Kind != k || all[0].Next != next || all[0].Cached != 0 || all[0].Cache != 1 || all[0].ToEnd != Never {
			t.Errorf("it is listed as %+v, %v, want next %d", all, err, next)
		}
		if all := s.listHere(); len(all) != 1 || all[0].Name != "po" || all[0].Kind != k {
			t.Errorf("known here is %+v", all)
		}
		if d, state, err := s.Describe(ctx, []byte("po")); err != nil || d.Name != "po" || d.Comment != "orders" || d.Cache != 1 || state.After != next {
			t.Errorf("it is described as %+v, %+v, %v", d, state, err)
		}
	}
	listed(4)
	clock.set(eve.Add(2 * time.Hour))
	listed(1)
	wantKey(t, l.take(t, s, "po"), "PO-20270101-000001")
	wantKey(t, l.take(t, s, "po"), "PO-20270101-000002")
	listed(3)
	if defs, err := s.Definitions(ctx); err != nil || len(defs) != 1 || defs[0].Name != "po" || defs[0].Comment != "orders" {
		t.Errorf("defined are %+v, %v", defs, err)
	}
	if st := s.Stats(); st.Sequences != 1 || st.Given != 5 || st.Reserved != 5 {
		t.Errorf("it counts %+v", st)
	}
	for _, st := range s.BySequence() {
		if st.Name != "po" && st.Name != Others || st.Name == "po" && (st.Given != 5 || st.Attempts[ReservedOK] != 7 && st.Attempts[ReservedOK] != 5) {
			t.Errorf("it is counted as %+v", st)
		}
	}
	if err := s.UsableFor(ctx, []byte("po")); err != nil {
		t.Error(err)
	}
	if err := s.Flush(ctx, []byte("po")); err != nil {
		t.Error(err)
	}
	stands := p.id(t, "po@20270101#counter")
	for _, name := range []string{"po@20270101", "po@20270101#counter", "PO@20270101#COUNTER"} {
		if key, err := s.TakeRun(ctx, []byte(name), 1); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s gives %+v, %v", name, key, err)
		}
		if known, err := s.Exists(ctx, []byte(name)); known || err != nil {
			t.Errorf("%s exists: %v, %v", name, known, err)
		}
		for _, force := range []bool{false, true} {
			if _, err := s.Alter(ctx, []byte(name), Alteration{Restart: ref(uint64(1)), Force: force}); !errors.Is(err, ErrUnknown) {
				t.Errorf("%s is restarted: %v", name, err)
			}
		}
		if _, err := s.Drop(ctx, []byte(name), false); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s is dropped: %v", name, err)
		}
		if d, _, err := s.Describe(ctx, []byte(name)); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s is %+v, %v", name, d, err)
		}
		if _, err := s.Advance(ctx, []byte(name), 1); !errors.Is(err, ErrUnknown) {
			t.Errorf("a ticket of %s: %v", name, err)
		}
	}
	if now := p.id(t, "po@20270101#counter"); now != stands {
		t.Errorf("who asked for the row has moved it from %d to %d", stands, now)
	}
	// what DROP leaves says which numbers were given
	if _, err := s.Drop(ctx, []byte("po"), false); err != nil {
		t.Fatal(err)
	}
	if key, err := s.TakeRun(ctx, []byte("po"), 1); !errors.Is(err, ErrUnknown) {
		t.Errorf("a sequence that was dropped gives %+v, %v", key, err)
	}
	if all, err := s.List(ctx); len(all) != 0 || err != nil {
		t.Errorf("listed are %+v, %v", all, err)
	}
	_, err := s.Create(ctx, CreateOptions{Name: "po", Kind: kindOf(t, "FORMAT 'PO-{yyyyMMdd}-{n:6}'")})
	wantKindError(t, "another kind", err)
	mustCreate(t, s, CreateOptions{Name: "po", Kind: k})
	wantKey(t, l.take(t, s, "po"), "PO-20270101-000003")
	clock.set(eve.Add(24 * time.Hour))
	wantKey(t, l.take(t, s, "po"), "PO-20270101-000004")
}

// Three proxies whose clocks are up to a minute apart give keys through the end of a year. None is
// given twice, the date is that of the counter, and counters begin again.
func TestKeysThroughTheEndOfAPeriod(t *testing.T) {
	for _, c := range []struct {
		clause, before, after string
		cache                 uint64
		zone                  time.Duration
	}{
		{daily, "20261231", "20270101", 0, 0},
		{daily, "20261231", "20270101", 50, 0},
		{"FORMAT '{yyyyMM}{n:7}' RESET MONTHLY", "202612", "202701", 7, 0},
		{"FORMAT '{n}/{yyyy}' TIME ZONE 'Asia/Shanghai' RESET YEARLY", "2026", "2027", 3, 8 * time.Hour},
	} {
		t.Run(fmt.Sprintf("%s CACHE %d", c.clause, c.cache), func(t *testing.T) {
			p, k, l := newPlace(t), kindOf(t, c.clause), new(textLedger)
			clock := almanacAt(eve.Add(89*time.Minute - c.zone))
			var proxies []*Sequences
			for _, skew := range []time.Duration{0, 25 * time.Second, -25 * time.Second} {
				proxies = append(proxies, p.openAt(t, clock, clock.skewed(skew)))
			}
			mustCreate(t, proxies[0], CreateOptions{Name: "po", Kind: k, Cache: c.cache})
			var group sync.WaitGroup
			var over atomic.Bool
			seen := make(map[string]map[string]bool)
			for i, s := range proxies {
				for range 4 {
					group.Go(func() {
						for last := ""; !over.Load(); {
							key := l.take(t, s, "po")
							is, ok := k.PeriodOf(key)
							now := k.PeriodName(is)
							if !ok || now < last || now != c.before && now != c.after {
								t.Errorf("proxy %d gives the key %s behind one of %s", i, key, last)
							}
							last = now
						}
					})
				}
			}
			for range 60 {
				time.Sleep(30 * time.Millisecond)
				clock.set(clock.now().Add(2 * time.Second))
			}
			over.Store(true)
			group.Wait()
			least := make(map[string]uint64)
			for key := range l.given {
				is, _ := k.PeriodOf(key)
				n, _, _ := k.Origin(key)
				if !k.IsText() {
					var number uint64
					_, _ = fmt.Sscan(key, &number)
					n, _, _ = k.Counter(number)
				}
				now := k.PeriodName(is)
				if least[now] == 0 || n < least[now] {
					least[now] = n
				}
				if seen[now] == nil {
					seen[now] = make(map[string]bool)
				}
				seen[now][key] = true
			}
			if least[c.before] != 1 || least[c.after] > 3*c.cache+1 || len(seen[c.before]) < 10 || len(seen[c.after]) < 10 {
				t.Errorf("the lowest counters are %v, of %d and %d keys", least, len(seen[c.before]), len(seen[c.after]))
			}
		})
	}
}

var (
	_ = strings.Contains
	_ = define.ErrBadOption
	_ snowflake.ClockError
	_ mysqltest.Server
)
