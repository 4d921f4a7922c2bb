package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/stats"
	"seqproxy/test/mysqltest"
)

// daily is the kind of most of these tests.
const daily = "FORMAT 'PO-{yyyyMMdd}-{n:6}' RESET DAILY"

// almanac is a clock that a test moves. It also goes on by itself.
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

// jumps gives a machine the test's clock, which is read anew each time.
func jumps(now func() time.Time) func(*sequence.Options) {
	return func(o *sequence.Options) {
		sequence.SetWall(o, now)
		sequence.ChangeTiming(o, func(t *sequence.Timing) { t.ClockAgain = time.Nanosecond })
	}
}

// openAt opens a proxy whose machine has a clock, and whose sequence server has that of an almanac.
func (p place) openAt(t testing.TB, server *almanac, machine func() time.Time, change ...func(*sequence.Options)) *sequence.Sequences {
	t.Helper()
	s := p.open(t, append(change, jumps(machine))...)
	sequence.Inside(s).SetPeriodClock(server.now)
	return s
}

// textLedger has the keys that were given.
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

func (l *textLedger) take(t testing.TB, s *sequence.Sequences, name string) string {
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
// no statement reaches the counters of its days.
func TestTheCounterOfAFormatBeginsAgain(t *testing.T) {
	p := newPlace(t)
	ctx, clock, l, k := context.Background(), almanacAt(eve), new(textLedger), kindOf(t, daily)
	s := p.openAt(t, clock, clock.now)
	mustCreate(t, s, sequence.CreateOptions{Name: "po", Kind: k, Comment: "orders"})
	for i := range 3 {
		wantKey(t, l.take(t, s, "po"), fmt.Sprintf("PO-20261231-%06d", i+1))
	}
	listed := func(next uint64) {
		t.Helper()
		all, err := s.List(ctx)
		if err != nil || len(all) != 1 || all[0].Name != "po" || all[0].Kind != k || all[0].Next != next || all[0].Cached != 0 || all[0].Cache != 1 || all[0].ToEnd != sequence.Never {
			t.Errorf("it is listed as %+v, %v, want next %d", all, err, next)
		}
		if all := sequence.Inside(s).ListHere(); len(all) != 1 || all[0].Name != "po" || all[0].Kind != k {
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
		if st.Name != "po" && st.Name != stats.Others || st.Name == "po" && (st.Given != 5 || st.Attempts[stats.ReservedOK] != 7 && st.Attempts[stats.ReservedOK] != 5) {
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
		if key, err := s.TakeRun(ctx, []byte(name), 1); !errors.Is(err, sequence.ErrUnknown) {
			t.Errorf("%s gives %+v, %v", name, key, err)
		}
		if exists, err := s.Exists(ctx, []byte(name)); exists || err != nil {
			t.Errorf("%s exists: %v, %v", name, exists, err)
		}
		for _, force := range []bool{false, true} {
			if _, err := s.Alter(ctx, []byte(name), sequence.Alteration{Restart: ref(uint64(1)), Force: force}); !errors.Is(err, sequence.ErrUnknown) {
				t.Errorf("%s is restarted: %v", name, err)
			}
		}
		if _, err := s.Drop(ctx, []byte(name), false); !errors.Is(err, sequence.ErrUnknown) {
			t.Errorf("%s is dropped: %v", name, err)
		}
		if d, _, err := s.Describe(ctx, []byte(name)); !errors.Is(err, sequence.ErrUnknown) {
			t.Errorf("%s is %+v, %v", name, d, err)
		}
		if _, err := s.Advance(ctx, []byte(name), 1); !errors.Is(err, sequence.ErrUnknown) {
			t.Errorf("a ticket of %s: %v", name, err)
		}
	}
	if now := p.id(t, "po@20270101#counter"); now != stands {
		t.Errorf("who asked for the row has moved it from %d to %d", stands, now)
	}
	// DROP leaves what says which numbers were given.
	if _, err := s.Drop(ctx, []byte("po"), false); err != nil {
		t.Fatal(err)
	}
	if key, err := s.TakeRun(ctx, []byte("po"), 1); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("a sequence that was dropped gives %+v, %v", key, err)
	}
	if all, err := s.List(ctx); len(all) != 0 || err != nil {
		t.Errorf("listed are %+v, %v", all, err)
	}
	_, err := s.Create(ctx, sequence.CreateOptions{Name: "po", Kind: kindOf(t, "FORMAT 'PO-{yyyyMMdd}-{n:6}'")})
	wantKindError(t, "another kind", err)
	mustCreate(t, s, sequence.CreateOptions{Name: "po", Kind: k})
	wantKey(t, l.take(t, s, "po"), "PO-20270101-000003")
	clock.set(eve.Add(24 * time.Hour))
	wantKey(t, l.take(t, s, "po"), "PO-20270101-000004")
}

// Three proxies whose clocks are up to a minute apart give keys through the end of a year. None
// repeats, the date is that of the counter, and counters begin again.
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
			var proxies []*sequence.Sequences
			for _, skew := range []time.Duration{0, 25 * time.Second, -25 * time.Second} {
				proxies = append(proxies, p.openAt(t, clock, clock.skewed(skew)))
			}
			mustCreate(t, proxies[0], sequence.CreateOptions{Name: "po", Kind: k, Cache: c.cache})
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

// A proxy whose clock is more than a minute off gives no key, and the error says how far. One whose
// clock is set while it runs stops at once, and goes on when it is set right.
func TestAClockThatIsWrongGivesNoDatedKey(t *testing.T) {
	p := newPlace(t)
	clock, l := almanacAt(eve), new(textLedger)
	a := p.openAt(t, clock, clock.now)
	mustCreate(t, a, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily), Cache: 10})
	l.take(t, a, "po")
	for _, by := range []time.Duration{-24 * time.Hour, -2 * time.Minute, 2 * time.Minute, time.Hour, 25 * time.Hour} {
		var wrong *snowflake.ClockError
		machine := almanacAt(clock.now().Add(by))
		b := p.openAt(t, clock, machine.now)
		for range 2 {
			took, err := b.TakeRun(context.Background(), []byte("po"), 1)
			if !errors.As(err, &wrong) || (wrong.Off-by).Abs() > time.Second || !strings.Contains(err.Error(), `sequence "po": the clock of this machine is`) {
				t.Errorf("a clock that is %v off: %+v, %v", by, took, err)
			}
		}
		machine.set(clock.now().Add(50 * time.Second)) // it is set right, as far as needed
		wantIn(t, kindNow(a, "po"), l.take(t, b, "po"), "20261231", 2)
		machine.set(clock.now().Add(by))
		if took, err := b.TakeRun(context.Background(), []byte("po"), 1); !errors.As(err, &wrong) {
			t.Errorf("a clock that is set %v off gives %+v, %v", by, took, err)
		}
		machine.set(clock.now())
		wantIn(t, kindNow(a, "po"), l.take(t, b, "po"), "20261231", 2)
		if rows := p.count(t, "SELECT COUNT(*) FROM sequence WHERE name LIKE 'po@%'"); rows != 1 {
			t.Errorf("a clock that is %v off has made %d counters", by, rows)
		}
	}
}

// A machine that was suspended notices no step of its clock: all its clocks stood still.
func TestAMachineThatWasSuspendedGivesNoKeyOfThen(t *testing.T) {
	p := newPlace(t)
	clock, machine := almanacAt(eve), almanacAt(eve)
	s := p.openAt(t, clock, machine.now, func(o *sequence.Options) {
		sequence.ChangeTiming(o, func(t *sequence.Timing) { t.ClockLook = 100 * time.Millisecond })
	})
	mustCreate(t, s, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily), Cache: 10})
	take := func() error {
		_, err := s.TakeRun(context.Background(), []byte("po"), 1)
		return err
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	clock.set(clock.now().Add(9 * time.Hour))
	var wrong *snowflake.ClockError
	eventually(t, "the clock is found to be wrong", func() bool {
		sequence.Inside(s).Beat()
		return errors.As(take(), &wrong)
	})
	if wrong.Off > -8*time.Hour {
		t.Errorf("the clock is %v off", wrong.Off)
	}
	machine.set(clock.now())
	eventually(t, "the clock is right again", func() bool { return take() == nil })
}

func kindNow(s *sequence.Sequences, name string) kind.Kind {
	return sequence.Inside(s).Cache(name).Kind()
}

func (p place) count(t testing.TB, query string) (n int) {
	t.Helper()
	if err := p.db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The counter of the next day exists an hour before, filled as CACHE says, and an outage over
// midnight is not noticed for as long as that lasts. Counters of past days are forgotten.
func TestAnOutageOverMidnightIsCovered(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t))
	clock, l := almanacAt(eve.Add(-time.Hour)), new(textLedger)
	s := p.openAt(t, clock, clock.now, patience(20*time.Second))
	mustCreate(t, s, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily), Cache: 20})
	mustCreate(t, s, sequence.CreateOptions{Name: "idle", Kind: kindOf(t, daily), Cache: 20})
	mustCreate(t, s, sequence.CreateOptions{Name: "single", Kind: kindOf(t, "FORMAT '{n}/{yyyyMMdd}' RESET DAILY")})
	for range 30 {
		l.take(t, s, "po")
	}
	wantKey(t, l.take(t, s, "single"), "1/20261231")
	sequence.Inside(s).Beat()
	time.Sleep(200 * time.Millisecond)
	if n := p.count(t, "SELECT COUNT(*) FROM sequence WHERE name LIKE '%@20270101%'"); n != 0 {
		t.Errorf("two and a half hours before midnight %d counters of the next day are there", n)
	}
	clock.set(eve.Add(45 * time.Minute))
	l.take(t, s, "po")
	eventually(t, "the counters of the next day are made, and filled", func() bool {
		c := sequence.Inside(s).Cache("po@20270101#counter")
		return c.Exists() && c.Cached() == 20 && sequence.Inside(s).Cache("single@20270101#counter").Exists()
	})
	if id := p.id(t, "po@20270101#counter"); id != 20 {
		t.Errorf("the next day stands at %d", id)
	}
	if id := p.id(t, "single@20270101#counter"); id != 0 {
		t.Errorf("the next day of one with NOCACHE stands at %d", id)
	}
	if n := p.count(t, "SELECT COUNT(*) FROM sequence WHERE name LIKE 'idle@%'"); n != 0 {
		t.Errorf("a sequence that nobody uses has %d counters", n)
	}
	clock.set(eve.Add(89*time.Minute + 20*time.Second))
	l.take(t, s, "po")
	settled(t, s, "po@20261231#counter")
	p.kill(t)
	s.Tune(sequence.Tuning{AllocateTimeout: time.Second, CreateTable: true})
	for range 5 {
		wantIn(t, kindNow(s, "po"), l.take(t, s, "po"), "20261231", 31)
	}
	clock.set(eve.Add(90*time.Minute + time.Second)) // no step that a proxy would notice
	for i := range 20 {
		wantKey(t, l.take(t, s, "po"), fmt.Sprintf("PO-20270101-%06d", i+1))
	}
	var away *sequence.UnavailableError
	for _, name := range []string{"po", "single"} {
		if took, err := s.TakeRun(context.Background(), []byte(name), 1); !errors.As(err, &away) || away.Sequence != name {
			t.Errorf("without the server %s gives %+v, %v", name, took, err)
		}
	}
	clock.set(eve.Add(36 * time.Hour)) // whether that is so is unknown
	if took, err := s.TakeRun(context.Background(), []byte("po"), 1); !errors.As(err, &away) || away.Sequence != "po" {
		t.Errorf("on a day whose counter is not known it gives %+v, %v", took, err)
	}
	p.restart(t)
	clock.set(eve.Add(2 * time.Hour))
	eventually(t, "the server is back", func() bool {
		took, err := s.TakeRun(context.Background(), []byte("po"), 1)
		if err == nil {
			l.add(t, took.Text)
			wantIn(t, kindNow(s, "po"), took.Text, "20270101", 21)
		}
		return err == nil
	})
	for day := range 10 { // nothing is kept of past days
		clock.set(eve.Add(time.Duration(day+2) * 24 * time.Hour))
		l.take(t, s, "po")
		eventually(t, "counters of days that are over are forgotten", func() bool {
			sequence.Inside(s).Beat()
			periods := 0
			for _, name := range sequence.Inside(s).Names() {
				if strings.HasPrefix(name, "po@") {
					periods++
				}
			}
			return periods <= 2
		})
	}
}

// The row of the present day is deleted by hand, alone or with its options. No proxy begins again
// at 1: an admin says above which keys it goes on.
func TestADayWhoseRowWasDeletedDoesNotBeginAgain(t *testing.T) {
	p := newPlace(t)
	ctx, clock, l := context.Background(), almanacAt(eve), new(textLedger)
	s := p.openAt(t, clock, clock.now)
	mustCreate(t, s, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily)})
	next := 1
	for _, deleted := range [][]string{{"sequence"}, {"sequence", "sequence_options"}} {
		for range 5 {
			wantKey(t, l.take(t, s, "po"), fmt.Sprintf("PO-20261231-%06d", next))
			next++
		}
		for _, table := range deleted {
			p.exec(t, "DELETE FROM "+table+" WHERE name = 'po@20261231#counter'")
		}
		proxies := []*sequence.Sequences{s}
		if len(deleted) == 1 {
			proxies = append(proxies, p.openAt(t, clock, clock.now)) // it has not given a key of that day
		}
		for i, s := range proxies {
			for range 2 {
				took, err := s.TakeRun(ctx, []byte("po"), 1)
				if !errors.Is(err, sequence.ErrUnfit) {
					t.Fatalf("proxy %d gives %+v, %v", i, took, err)
				}
				wantText(t, err, `sequence "po"`, "po@20261231#counter", "was deleted", "FLUSH SEQUENCES po on every proxy", "ALTER SEQUENCE `po` RESTART WITH n")
			}
		}
		done, err := s.Alter(ctx, []byte("po"), sequence.Alteration{Restart: ref(uint64(next + 100))})
		if next += 100; err != nil || done.Next != uint64(next) {
			t.Fatalf("it is restarted at %d, %v, want %d", done.Next, err, next)
		}
		time.Sleep(sequence.Inside(s).Timing().Unknown)
	}
	wantKey(t, l.take(t, s, "po"), fmt.Sprintf("PO-20261231-%06d", next))
	// Those of past days may go.
	clock.set(eve.Add(24 * time.Hour))
	l.take(t, s, "po")
	p.exec(t, "DELETE FROM sequence WHERE name LIKE 'po@%#counter' AND name < 'po@2027'")
	p.exec(t, "DELETE FROM sequence_options WHERE name LIKE 'po@%#counter' AND name < 'po@2027'")
	wantKey(t, l.take(t, s, "po"), "PO-20270101-000002")
}

// A takeover has kept the numbers of a day whose row a fail-over lost. If the row that was made
// after that is deleted by hand, the day does not begin again where that one did.
func TestADayThatWentOnAfterAFailOverDoesNotBeginThereAgain(t *testing.T) {
	p := newPlace(t)
	clock, l := almanacAt(eve), new(textLedger)
	s := p.openAt(t, clock, clock.now)
	mustCreate(t, s, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily)})
	l.take(t, s, "po")
	closeNow(t, s)
	const row = " WHERE name = 'po@20261231#counter'"
	p.exec(t, "DELETE FROM sequence"+row)
	p.exec(t, "UPDATE sequence_options SET floor = 100"+row)
	s = p.openAt(t, clock, clock.now)
	for n := range 3 {
		wantKey(t, l.take(t, s, "po"), fmt.Sprintf("PO-20261231-%06d", 101+n))
	}
	closeNow(t, s)
	p.exec(t, "DELETE FROM sequence"+row)
	if took, err := p.openAt(t, clock, clock.now).TakeRun(t.Context(), []byte("po"), 1); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %+v, %v, want ErrUnfit", took, err)
	}
}

// ALTER applies to the present day, the next, and later ones; RESTART to the present one only.
func TestAFormatWithResetIsAltered(t *testing.T) {
	p := newPlace(t)
	ctx, clock, l := context.Background(), almanacAt(eve.Add(time.Hour)), new(textLedger)
	s, other := p.openAt(t, clock, clock.now), p.openAt(t, clock, clock.now)
	mustCreate(t, s, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily)})
	if done := mustAlter(t, s, "po", sequence.Alteration{Comment: ref("before the first")}); done.Next != 1 {
		t.Errorf("it goes on at %d", done.Next)
	}
	wantKey(t, l.take(t, other, "po"), "PO-20261231-000001")
	wantKey(t, l.take(t, s, "po"), "PO-20261231-000002")
	eventually(t, "the next day is prepared", func() bool { return sequence.Inside(s).Cache("po@20270101#counter").Exists() })
	mustAlter(t, s, "po", sequence.Alteration{Cache: ref(uint64(5)), Max: ref(uint64(50)), Start: ref(uint64(7)), Comment: ref("orders")})
	for _, day := range []string{"po#counter", "po@20261231#counter", "po@20270101#counter"} {
		if n := p.count(t, "SELECT COUNT(*) FROM sequence_options WHERE name = '"+day+"' AND cache = 5 AND maximum = 50 AND start = 7"); n != 1 {
			t.Errorf("%s was not altered", day)
		}
	}
	eventually(t, "the other one hears of it", func() bool {
		l.take(t, other, "po")
		return sequence.Inside(other).Cache("po@20261231#counter").Cached() > 0
	})
	if done := mustAlter(t, s, "po", sequence.Alteration{Restart: ref(uint64(40))}); done.Next != 40 {
		t.Errorf("it goes on at %d", done.Next)
	}
	wantKey(t, l.take(t, s, "po"), "PO-20261231-000040")
	if _, err := s.Alter(ctx, []byte("po"), sequence.Alteration{Restart: ref(uint64(8))}); !errors.Is(err, define.ErrBadOption) || !strings.Contains(err.Error(), "not above 4") {
		t.Errorf("it is set back: %v", err)
	}
	clock.set(eve.Add(24 * time.Hour))
	wantIn(t, kindNow(s, "po"), l.take(t, s, "po"), "20270101", 1) // that one was made before START was altered
	clock.set(eve.Add(48 * time.Hour))
	wantKey(t, l.take(t, s, "po"), "PO-20270102-000007")
	_, err := s.Alter(ctx, []byte("po"), sequence.Alteration{Order: ref(true)})
	wantKindError(t, "ORDER", err)
	if err := other.Close(ctx); err != nil {
		t.Fatal(err)
	}
	var done sequence.Altered
	within(t, time.Minute, "nobody else is registered", func() bool {
		var err error
		done, err = s.Alter(ctx, []byte("po"), sequence.Alteration{Restart: ref(uint64(7)), Force: true})
		return err == nil
	})
	if took, err := s.TakeRun(ctx, []byte("po"), 1); done.Next != 7 || err != nil || took.Text != "PO-20270102-000007" {
		t.Errorf("set back to %d it gives %+v, %v", done.Next, took, err)
	}
}

// RESTART is for the present period, which a clock that is wrong does not know.
func TestAPeriodIsNotRestartedByAWrongClock(t *testing.T) {
	p := newPlace(t)
	ctx, clock, l := context.Background(), almanacAt(eve), new(textLedger)
	right, ahead := p.openAt(t, clock, clock.now), p.openAt(t, clock, clock.skewed(2*time.Hour))
	mustCreate(t, right, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily)})
	wantKey(t, l.take(t, right, "po"), "PO-20261231-000001")
	var wrong *snowflake.ClockError
	if done, err := ahead.Alter(ctx, []byte("po"), sequence.Alteration{Restart: ref(uint64(500)), Comment: ref("late")}); !errors.As(err, &wrong) {
		t.Errorf("by a clock that is ahead: %+v, %v", done, err)
	}
	if rows := p.count(t, "SELECT COUNT(*) FROM sequence WHERE name LIKE 'po@20270101%'"); rows != 0 {
		t.Error("the next day was made")
	}
	if d, _, err := right.Describe(ctx, []byte("po")); err != nil || d.Comment != "" {
		t.Errorf("a refused statement has altered %+v, %v", d, err)
	}
	mustAlter(t, ahead, "po", sequence.Alteration{Comment: ref("any time")})
	mustAlter(t, right, "po", sequence.Alteration{Restart: ref(uint64(500))})
	wantKey(t, l.take(t, right, "po"), "PO-20261231-000500")
}

// Names that periods need, and that users must not have.
func TestNamesOfPeriodsAreKept(t *testing.T) {
	p := newPlace(t)
	ctx, clock, l := context.Background(), almanacAt(eve), new(textLedger)
	s := p.openAt(t, clock, clock.now)
	for clause, most := range map[string]int{daily: 33, "FORMAT '{yyyyMM}{n:6}' RESET MONTHLY": 35, "FORMAT '{yyyy}{n:6}' RESET YEARLY": 37} {
		mustCreate(t, s, sequence.CreateOptions{Name: strings.Repeat("p", most), Kind: kindOf(t, clause)})
		l.take(t, s, strings.Repeat("p", most))
		_, err := s.Create(ctx, sequence.CreateOptions{Name: strings.Repeat("q", most+1), Kind: kindOf(t, clause)})
		if !errors.Is(err, define.ErrBadOption) || !strings.Contains(err.Error(), fmt.Sprintf("at most %d", most)) {
			t.Errorf("%s: a long name: %v", clause, err)
		}
	}
	for _, name := range []string{"po@2026", "po@202611", "po@20261125"} {
		if _, err := s.Create(ctx, sequence.CreateOptions{Name: name, Kind: kindOf(t, "UUID")}); !errors.Is(err, define.ErrBadOption) {
			t.Errorf("a sequence with a kind is named %s: %v", name, err)
		}
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "po@123", Kind: kindOf(t, "BIT_REVERSED")})
	mustCreate(t, s, sequence.CreateOptions{Name: "@20261231", Kind: kindOf(t, "BIT_REVERSED")})
}

// A plain sequence may be called like a period or a worker: each has a row of its own, whichever is
// made first.
func TestAPlainSequenceIsCalledLikeAPeriodOrAWorker(t *testing.T) {
	p := newPlace(t)
	ctx, clock, l := context.Background(), almanacAt(eve), new(textLedger)
	creates := func(o *sequence.Options) { o.CreateUnknown = true }
	s := p.openAt(t, clock, clock.now, creates)
	plain := func(name string) {
		t.Helper()
		for n := uint64(1); n <= 2; n++ {
			if got := mustTake(t, s, name, 1); got != n {
				t.Errorf("%s gives %d, want %d", name, got, n)
			}
		}
		if d, _, err := s.Describe(ctx, []byte(name)); err != nil || d.Name != name || !d.Kind.IsPlain() {
			t.Errorf("%s is %+v, %v", name, d, err)
		}
	}
	dropped := func(name string) {
		t.Helper()
		if dropped, err := s.Drop(ctx, []byte(name), false); dropped == nil || err != nil {
			t.Errorf("DROP of %s: %v", name, err)
		}
	}
	plain("po@20261231") // made by itself
	mustCreate(t, s, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily)})
	wantKey(t, l.take(t, s, "po"), "PO-20261231-000001")
	dropped("po@20261231")
	wantKey(t, l.take(t, s, "po"), "PO-20261231-000002")
	mustCreate(t, s, sequence.CreateOptions{Name: "po@20270101"})
	dropped("po@20270101")
	clock.set(eve.Add(24 * time.Hour))
	wantKey(t, l.take(t, s, "po"), "PO-20270101-000001") // a tombstone has the name
	clock.set(eve.Add(48 * time.Hour))
	wantKey(t, l.take(t, s, "po"), "PO-20270102-000001")
	mustCreate(t, s, sequence.CreateOptions{Name: "po@20270102"})
	plain("po@20270102")
	wantKey(t, l.take(t, s, "po"), "PO-20270102-000002")
	if _, err := s.Alter(ctx, []byte("po"), sequence.Alteration{Restart: ref(uint64(10))}); err != nil {
		t.Error(err)
	}
	wantKey(t, l.take(t, s, "po"), "PO-20270102-000010")

	s = p.open(t, workerID(7), creates)
	plain("photos#w7")
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Kind: snow(t)})
	for range 2 {
		if _, worker, _ := snow(t).Decompose(mustTake(t, s, "photos", 1)); worker != 7 {
			t.Errorf("the key is of worker %d", worker)
		}
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "tweets", Kind: snow(t)})
	mustTake(t, s, "tweets", 1)
	plain("tweets#w7")
	dropped("photos#w7")
	mustTake(t, s, "photos", 1)
	list, err := s.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	if got := strings.Join(names, " "); got != "photos po po@20270102 tweets tweets#w7" {
		t.Errorf("there are %s", got)
	}
}

// Several sequence servers divide the counters of each day, and one that is away at midnight gets
// its rows when it is back.
func TestSeveralServersCountEachDay(t *testing.T) {
	f := newFleet(t, 3)
	clock, l := almanacAt(eve), new(textLedger)
	open := func() *sequence.Sequences {
		s := f.open(t, jumps(clock.now))
		sequence.Inside(s).SetPeriodClock(clock.now)
		return s
	}
	a, b := open(), open()
	mustCreate(t, a, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily), Cache: 10})
	take := func(day string) {
		t.Helper()
		for range 100 {
			for _, s := range []*sequence.Sequences{a, b} {
				wantIn(t, kindNow(a, "po"), l.take(t, s, "po"), day, 1)
			}
		}
	}
	l.take(t, a, "po")
	take("20261231")
	clock.set(eve.Add(24 * time.Hour))
	take("20270101")
	all, err := a.List(context.Background())
	if err != nil || len(all) != 1 || all[0].Name != "po" {
		t.Errorf("listed are %+v, %v", all, err)
	}
}

// A proxy has given keys of a new day that the node which takes over has not received, nor that
// day's row. None of them repeats.
func TestAFailOverAtMidnightRepeatsNoKey(t *testing.T) {
	e := startEstate(t, 3, "users")
	clock, l, k := almanacAt(eve), new(textLedger), kindOf(t, daily)
	join := func(who string) *sequence.Sequences {
		m := e.join(t, who, &given{}, patience(20*time.Second), jumps(clock.now))
		sequence.Inside(m.Sequences).SetPeriodClock(clock.now)
		return m.Sequences
	}
	a, b := join("a"), join("b")
	mustCreate(t, a, sequence.CreateOptions{Name: "po", Kind: k, Cache: 5})
	for range 20 {
		wantIn(t, k, l.take(t, a, "po"), "20261231", 1)
	}
	e.CatchUp(t, 1, 0)
	e.CatchUp(t, 2, 0)
	e.Cut(t, 2)
	clock.set(eve.Add(2 * time.Hour))
	for range 40 {
		wantIn(t, k, l.take(t, a, "po"), "20270101", 1)
		wantIn(t, k, l.take(t, b, "po"), "20270101", 1)
	}
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 2)
	if rows := countOn(t, e, 2, "SELECT COUNT(*) FROM sequence WHERE name LIKE 'po@20270101%'"); rows != 0 {
		t.Fatal("the node that takes over has the row of the new day: this shows nothing")
	}
	e.Follow(t, 1, 2)
	late := join("late") // it knows nothing
	for range 40 {
		wantIn(t, k, l.take(t, late, "po"), "20270101", 81)
		for _, s := range []*sequence.Sequences{a, b} { // some may have reservations of before
			wantIn(t, k, l.take(t, s, "po"), "20270101", 1)
		}
	}
	clock.set(eve.Add(26 * time.Hour))
	for range 10 {
		for _, s := range []*sequence.Sequences{b, late, a} {
			wantIn(t, k, l.take(t, s, "po"), "20270102", 1)
		}
	}
}

func countOn(t testing.TB, e *estate, node int, query string) (n int) {
	t.Helper()
	if err := e.pools[node].QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The row of a day is made, and the primary dies before another node has received it: no number of
// it was given, and the day begins at 1.
func TestADayThatAFailOverHasLostBeginsWhereNoKeyWasGiven(t *testing.T) {
	e := startEstate(t, 2, "users")
	clock, l, k := almanacAt(eve), new(textLedger), kindOf(t, daily)
	m := e.join(t, "a", &given{}, jumps(clock.now))
	a := m.Sequences
	sequence.Inside(a).SetPeriodClock(clock.now)
	mustCreate(t, a, sequence.CreateOptions{Name: "po", Kind: k})
	l.take(t, a, "po")
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	m.waits(3 * time.Second)
	clock.set(eve.Add(2 * time.Hour))
	if took, err := a.TakeRun(t.Context(), []byte("po"), 1); err == nil {
		t.Fatalf("a key is given that only one node knows of: %+v", took)
	}
	if rows := countOn(t, e, 0, "SELECT COUNT(*) FROM sequence WHERE name LIKE 'po@20270101%'"); rows != 1 {
		t.Errorf("the old primary has %d rows of the new day", rows)
	}
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	eventually(t, "the other node serves", func() bool {
		took, err := a.TakeRun(t.Context(), []byte("po"), 1)
		if err == nil {
			wantIn(t, k, took.Text, "20270101", 1)
		}
		return err == nil
	})
}

// openAt is place.openAt for several servers.
func (f fleet) openAt(t testing.TB, server *almanac, machine func() time.Time, change ...func(*sequence.Options)) *sequence.Sequences {
	t.Helper()
	s := f.open(t, append(change, jumps(machine))...)
	sequence.Inside(s).SetPeriodClock(server.now)
	return s
}

// One of several servers is away at midnight. No caller waits for it; it has the row of the new day
// when it is back, and gives keys of it that the others do not.
func TestAMemberIsAwayAtMidnight(t *testing.T) {
	for _, cache := range []uint64{1, 10} {
		t.Run(fmt.Sprintf("CACHE %d", cache), func(t *testing.T) {
			if cache > 1 && testing.Short() {
				t.Skip("CI runs it")
			}
			f := newFleet(t, 3)
			clock, l := almanacAt(eve), new(textLedger)
			a := f.openAt(t, clock, clock.now, blocks(50), patience(20*time.Second))
			mustCreate(t, a, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily), Cache: cache})
			b := f.openAt(t, clock, clock.now, blocks(50), patience(20*time.Second))
			take := func(day string, n int, of ...*sequence.Sequences) {
				t.Helper()
				for range n {
					for _, s := range of {
						wantIn(t, kindOf(t, daily), l.take(t, s, "po"), day, 1)
					}
				}
			}
			take("20261231", 30, a, b)
			f[1].kill(t)
			clock.set(eve.Add(24 * time.Hour))
			take("20270101", 30, a, b)
			f[1].restart(t)
			late := f.openAt(t, clock, clock.now, blocks(50), patience(20*time.Second))
			within(t, time.Minute, "the member gives keys of the new day", func() bool {
				take("20270101", 20, late, a, b)
				var id uint64
				err := f[1].db.QueryRow("SELECT IFNULL(MAX(id), 0) FROM sequence WHERE name = 'po@20270101#counter'").Scan(&id)
				return err == nil && id > 0
			})
			take("20270101", 120, late, a, b)
		})
	}
}

// An admin deletes the rows of past days, by the statements on the page. A proxy whose clock is a
// day behind gives no key, and makes no row. When all clocks are set back, no proxy counts in such
// a day again: neither one that gave keys of it, nor one that begins then.
func TestADayWhoseRowsWereDeletedIsOver(t *testing.T) {
	eve := eve.AddDate(-1, 0, 0) // the page deletes what was before 2026
	deletes := pageOfKinds(t, "A counter that begins again")
	for servers, deleted := range map[int][]int{1: {0}, 2: {0, 1}, 3: {1}} {
		t.Run(fmt.Sprintf("deleted on %d of %d servers", len(deleted), servers), func(t *testing.T) {
			if servers > 2 && testing.Short() {
				t.Skip("CI runs it")
			}
			f := newFleet(t, servers)
			clock, l := almanacAt(eve), new(textLedger)
			s := f.openAt(t, clock, clock.now, blocks(50), patience(5*time.Second))
			mustCreate(t, s, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily)})
			for range 70 {
				wantIn(t, kindOf(t, daily), l.take(t, s, "po"), "20251231", 1)
			}
			clock.set(eve.Add(24 * time.Hour))
			wantIn(t, kindOf(t, daily), l.take(t, s, "po"), "20260101", 1)
			for _, i := range deleted {
				for table, least := range map[string]int{"sequence": 1, "sequence_limit": min(1, servers-1)} {
					if n := f[i].count(t, "SELECT COUNT(*) FROM "+table+" WHERE name LIKE 'po@2025%'"); n < least {
						t.Errorf("%s has %d rows of the day that is over, want some", table, n)
					}
				}
				for _, statement := range deletes {
					f[i].exec(t, statement)
				}
				if n := f[i].count(t, "SELECT COUNT(*) FROM sequence_limit WHERE name LIKE 'po@2025%'"); n != 0 {
					t.Errorf("%d ceilings of the day that is over are left", n)
				}
			}
			if all, err := s.List(t.Context()); err != nil || len(all) != 1 || all[0].Name != "po" {
				t.Errorf("listed are %+v, %v", all, err)
			}
			behind := f.openAt(t, clock, clock.skewed(-24*time.Hour), blocks(50), patience(5*time.Second))
			var wrong *snowflake.ClockError
			if took, err := behind.TakeRun(t.Context(), []byte("po"), 1); !errors.As(err, &wrong) {
				t.Errorf("a proxy that is a day behind gives %+v, %v", took, err)
			}
			ofLastYear := "SELECT COUNT(*) FROM sequence WHERE name LIKE 'po@2025%'"
			if n := f[deleted[0]].count(t, ofLastYear); n != 0 {
				t.Errorf("a proxy that is a day behind has made %d rows", n)
			}
			clock.set(eve.Add(time.Minute))
			for i, s := range []*sequence.Sequences{s, f.openAt(t, clock, clock.now, blocks(50), patience(5*time.Second))} {
				for range 60 {
					took, err := s.TakeRun(t.Context(), []byte("po"), 1)
					if err == nil {
						l.add(t, took.Text)
					}
					if len(deleted) == servers && !errors.Is(err, sequence.ErrUnfit) {
						t.Fatalf("proxy %d gives %+v, %v", i, took, err)
					}
				}
			}
			if n := f[deleted[0]].count(t, ofLastYear); n != 0 {
				t.Errorf("%d rows were made", n)
			}
		})
	}
}

// pageOfKinds returns the statements in the sql block of a section of docs/kinds.md.
func pageOfKinds(t *testing.T, section string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "# "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n#")
	_, block, _ := strings.Cut(rest, "```sql\n")
	block, _, ok := strings.Cut(block, ";\n```")
	if !ok {
		t.Fatalf("kinds.md has no SQL in the section %q", section)
	}
	return strings.Split(block, ";\n")
}

// The tables are restored from an earlier time while no proxy runs: in the middle of the day, or
// before it began. A proxy that gave the day's keys has that in its state file, and repeats none:
// the counter goes on above, or, where nothing is left of the day, an admin says above which keys.
func TestARestoredTableGivesNoDatedKeyTwice(t *testing.T) {
	tables := []string{"sequence", "sequence_options", "sequence_version"}
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("the day had not begun: %v", gone), func(t *testing.T) {
			p := newPlace(t)
			clock, l, dir := almanacAt(eve.Add(-24*time.Hour)), new(textLedger), t.TempDir()+"/state"
			s := p.openAt(t, clock, clock.now, stateIn(dir))
			mustCreate(t, s, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily)})
			keep := func() {
				t.Helper()
				for _, table := range tables {
					p.exec(t, "CREATE TABLE kept_"+table+" AS SELECT * FROM "+table)
				}
			}
			if gone {
				keep()
			}
			clock.set(eve)
			for n := range 40 {
				if n == 20 && !gone {
					keep()
				}
				wantKey(t, l.take(t, s, "po"), fmt.Sprintf("PO-20261231-%06d", n+1))
			}
			cutOff(t, s)
			for _, table := range tables {
				p.exec(t, "DELETE FROM "+table)
				p.exec(t, "INSERT INTO "+table+" SELECT * FROM kept_"+table)
			}
			p.exec(t, "DELETE FROM sequence_proxy")
			again := p.openAt(t, clock, clock.now, stateIn(dir))
			took, err := again.TakeRun(t.Context(), []byte("po"), 1)
			switch {
			case !gone && err == nil:
				wantKey(t, took.Text, "PO-20261231-000041")
			case !gone || !errors.Is(err, sequence.ErrUnfit):
				t.Fatalf("it gives %+v, %v", took, err)
			default:
				mustAlter(t, again, "po", sequence.Alteration{Restart: ref(uint64(100))})
				time.Sleep(sequence.Inside(again).Timing().Unknown)
				wantKey(t, l.take(t, again, "po"), "PO-20261231-000100")
			}
			clock.set(eve.Add(24 * time.Hour))
			wantKey(t, l.take(t, again, "po"), "PO-20270101-000001")
		})
	}
}
