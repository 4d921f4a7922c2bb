package sequence_test

import (
	"context"
	"errors"
	"fmt"
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

// snow is SNOWFLAKE with an epoch before each clock of a test.
func snow(t testing.TB) kind.Kind {
	return kindOf(t, "SNOWFLAKE EPOCH '2020-01-01' TICK '1ms' TIME BITS 43 WORKER BITS 8 COUNTER BITS 12")
}

// keyLedger are keys that were given.
type keyLedger struct {
	mu    sync.Mutex
	given map[uint64]bool
}

func (l *keyLedger) take(t testing.TB, s *sequence.Sequences, name string, n uint64) uint64 {
	t.Helper()
	first := mustTake(t, s, name, n)
	l.note(t, first, n)
	return first
}

func (l *keyLedger) note(t testing.TB, first, n uint64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range n {
		if l.given[first+i] {
			t.Errorf("the key %d was given before", first+i)
		}
		if l.given == nil {
			l.given = make(map[uint64]bool)
		}
		l.given[first+i] = true
	}
}

func (l *keyLedger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.given)
}

// wantNow wants a key of the present time.
func wantNow(t testing.TB, k kind.Kind, key uint64) {
	t.Helper()
	tick, _, _ := k.Decompose(key)
	if off := time.Since(k.TimeOf(tick)).Abs(); off > 5*time.Second {
		t.Errorf("the key %d is of %v", key, k.TimeOf(tick))
	}
}

// Proxies have workers of their own, whose rows are hidden. A killed proxy leaves its worker, and
// no key repeats, whatever happens to the rows.
func TestASnowflakeIsGivenOnce(t *testing.T) {
	p := newPlace(t)
	ctx := context.Background()
	k, l := snow(t), new(keyLedger)
	a := p.open(t)
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Kind: k})
	proxies := []*sequence.Sequences{a, p.open(t), p.open(t)}
	workers := make(map[uint64]bool)
	var group sync.WaitGroup
	for _, s := range proxies {
		group.Go(func() {
			last := uint64(0)
			for i := range uint64(2000) {
				key := l.take(t, s, "photos", i%5+1)
				if key <= last {
					t.Errorf("behind %d comes %d", last, key)
				}
				last = key
			}
			wantNow(t, k, last)
			_, worker, _ := k.Decompose(last)
			l.mu.Lock()
			workers[worker] = true
			l.mu.Unlock()
		})
	}
	group.Wait()
	if len(workers) != 3 {
		t.Errorf("three proxies give keys of the workers %v", workers)
	}
	eventually(t, "the first proxy has ticks for its cover", func() bool {
		all, err := a.List(ctx)
		return err == nil && len(all) == 1 && all[0].CachedFor >= 15*time.Minute
	})
	all, err := a.List(ctx)
	if err != nil || len(all) != 1 || all[0].Name != "photos" || all[0].Kind != k || all[0].Next != 0 || all[0].CachedFor < 15*time.Minute ||
		all[0].Used < 1 || all[0].Used > 50 || all[0].ToEnd < 100*365*24*time.Hour {
		t.Errorf("it is listed as %+v, %v", all, err)
	}
	if all, err := p.open(t).List(ctx); err != nil || len(all) != 1 || all[0].Used < 1 || all[0].ToEnd < 100*365*24*time.Hour {
		t.Errorf("one who has not used it lists %+v, %v", all, err)
	}
	if defs, err := a.Definitions(ctx); err != nil || len(defs) != 1 || defs[0].Kind != k {
		t.Errorf("defined are %+v, %v", defs, err)
	}
	if st := a.Stats(); st.Given != 6000 || st.Sequences != 1 || st.Reserved != st.Given+st.Cached {
		t.Errorf("it counts %+v", st)
	}
	for _, st := range a.BySequence() {
		if st.Name != "photos" && st.Name != stats.Others || st.Name == "photos" && (st.Given != 6000 || st.CachedFor < 15*time.Minute || st.Attempts[stats.ReservedOK] == 0) {
			t.Errorf("it is counted as %+v", st)
		}
	}
	for worker := range workers {
		name := define.WorkerName("photos", worker)
		stands := p.id(t, name+define.CounterSuffix)
		for _, spelled := range []string{name, name + define.CounterSuffix} {
			if key, err := a.Take(ctx, []byte(spelled), 1); !errors.Is(err, sequence.ErrUnknown) {
				t.Errorf("%s gives %d, %v", spelled, key, err)
			}
			if exists, err := a.Exists(ctx, []byte(spelled)); exists || err != nil {
				t.Errorf("%s exists: %v, %v", spelled, exists, err)
			}
			if _, err := a.Alter(ctx, []byte(spelled), sequence.Alteration{Restart: ref(uint64(1)), Force: true}); !errors.Is(err, sequence.ErrUnknown) {
				t.Errorf("%s is restarted: %v", spelled, err)
			}
			if _, err := a.Drop(ctx, []byte(spelled), false); !errors.Is(err, sequence.ErrUnknown) {
				t.Errorf("%s is dropped: %v", spelled, err)
			}
			if d, _, err := a.Describe(ctx, []byte(spelled)); !errors.Is(err, sequence.ErrUnknown) {
				t.Errorf("%s is %+v, %v", spelled, d, err)
			}
		}
		if now := p.id(t, name+define.CounterSuffix); now != stands {
			t.Errorf("who asked for %s has moved it from %d to %d", name, stands, now)
		}
	}

	// It ends and begins, and is dropped and made again.
	for range 3 {
		b := p.open(t)
		wantNow(t, k, l.take(t, b, "photos", 100))
		if _, err := b.Drop(ctx, []byte("photos"), false); err != nil {
			t.Fatal(err)
		}
		if key, err := b.Take(ctx, []byte("photos"), 1); !errors.Is(err, sequence.ErrUnknown) {
			t.Errorf("a sequence that was dropped gives %d, %v", key, err)
		}
		for _, other := range []kind.Kind{{}, kindOf(t, "SNOWFLAKE EPOCH '2020-01-02'")} {
			_, err := b.Create(ctx, sequence.CreateOptions{Name: "photos", Kind: other})
			wantKindError(t, "another kind", err)
		}
		mustCreate(t, b, sequence.CreateOptions{Name: "photos", Kind: k})
		l.take(t, b, "photos", 100)
		if err := b.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the others hear that it was made again", func() bool {
		key, err := a.Take(ctx, []byte("photos"), 1)
		return err == nil && key > 0
	})
}

// The rows are restored from a while ago. The proxy with reservations notices, and the others begin
// at the present time.
func TestARestoredTableGivesNoSnowflakeTwice(t *testing.T) {
	p := newPlace(t)
	k, l := snow(t), new(keyLedger)
	a := p.open(t, stateIn(t.TempDir()+"/state"))
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Kind: k, Cover: 2})
	l.take(t, a, "photos", 10)
	p.exec(t, "CREATE TABLE kept AS SELECT * FROM sequence")
	time.Sleep(3 * time.Second)
	l.take(t, a, "photos", 4096)
	p.exec(t, "REPLACE INTO sequence SELECT * FROM kept")
	for range 100 {
		l.take(t, a, "photos", 1000)
		time.Sleep(50 * time.Millisecond)
	}
	wantNow(t, k, l.take(t, a, "photos", 1))
}

// A fail-over may lose that a row is a worker's, and keep the row. Others do not use that worker.
func TestAWorkerWhoseRowIsUnfitIsPassedOver(t *testing.T) {
	p := newPlace(t)
	k, l := snow(t), new(keyLedger)
	a := p.open(t)
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Kind: k, Cover: 2})
	l.take(t, a, "photos", 10)
	for worker := range 32 { // more than are looked at together
		p.exec(t, fmt.Sprintf("INSERT IGNORE INTO sequence (name, id) VALUES ('photos#w%d#counter', 1)", worker))
	}
	p.exec(t, "DELETE FROM sequence_options WHERE name LIKE 'photos#w%'")
	for range 3 {
		l.take(t, p.open(t), "photos", 10)
	}
}

// Options that a sequence with a clock refuses.
func TestWhatASnowflakeDoesNotGoWithIsRefused(t *testing.T) {
	p := newPlace(t)
	s, ctx, k := p.open(t), context.Background(), snow(t)
	for word, o := range map[string]sequence.CreateOptions{
		"START": {Start: 5}, "MAXVALUE": {Max: 1000}, "MINVALUE": {Min: 3}, "CACHE": {Cache: 1}, "ORDER": {Order: true}, "INCREMENT BY 2": {Increment: 2}, "CYCLE": {Cycle: true},
	} {
		o.Name, o.Kind = "bad", k
		_, err := s.Create(ctx, o)
		wantKindError(t, word, err, word, "SNOWFLAKE")
	}
	mustCreate(t, s, sequence.CreateOptions{Name: strings.Repeat("p", 37), Kind: k})
	if _, err := s.Create(ctx, sequence.CreateOptions{Name: strings.Repeat("p", 38), Kind: k}); !errors.Is(err, define.ErrBadOption) || !strings.Contains(err.Error(), "at most 37") {
		t.Errorf("a long name: %v", err)
	}
	if _, err := s.Create(ctx, sequence.CreateOptions{Name: "photos#w3", Kind: kindOf(t, "UUID")}); !errors.Is(err, define.ErrBadOption) {
		t.Errorf("the name of a worker's row: %v", err)
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Kind: k})
	mustTake(t, s, "photos", 4096)
	var run *snowflake.RunError
	if _, err := s.TakeRun(ctx, []byte("photos"), 4097); !errors.As(err, &run) {
		t.Errorf("more than a tick has: %v", err)
	}
	for what, err := range map[string]error{
		"NEXTVAL with a count": s.Consecutive(ctx, []byte("photos")),
		"a ticket":             second(s.Advance(ctx, []byte("photos"), 1)),
		"RESTART":              second(s.Alter(ctx, []byte("photos"), sequence.Alteration{Restart: ref(uint64(70))})),
		"RESTART FORCE":        second(s.Alter(ctx, []byte("photos"), sequence.Alteration{Restart: ref(uint64(70)), Force: true})),
		"ORDER":                second(s.Alter(ctx, []byte("photos"), sequence.Alteration{Order: ref(true)})),
		"CACHE":                second(s.Alter(ctx, []byte("photos"), sequence.Alteration{Cache: ref(uint64(9))})),
	} {
		wantKindError(t, what, err)
	}
	if _, _, err := s.SetValue(ctx, []byte("photos"), 70, true); !errors.As(err, new(*define.KindError)) {
		t.Errorf("SETVAL: %v", err)
	}
	if step, err := s.Step(ctx, []byte("photos")); step != 1 || err != nil {
		t.Errorf("keys of one statement are %d apart, %v", step, err)
	}
	mustAlter(t, s, "photos", sequence.Alteration{Cover: ref(uint64(60))})
	mustTake(t, s, "photos", 1)
	// A chosen key changes nothing.
	if err := s.Avoid(ctx, []byte("photos"), []uint64{k.MaxKey(), 5}); err != nil {
		t.Error(err)
	}
	wantNow(t, k, mustTake(t, s, "photos", 1))
}

// The id column is for small numbers.
func TestTicksThatTheTableDoesNotHoldAreRefused(t *testing.T) {
	p := newPlace(t)
	mustCreate(t, p.open(t), sequence.CreateOptions{Name: "users"})
	p.exec(t, "ALTER TABLE sequence MODIFY id INT UNSIGNED NOT NULL")
	s := p.open(t)
	mustTake(t, s, "users", 1)
	_, err := s.Create(context.Background(), sequence.CreateOptions{Name: "photos", Kind: snow(t)})
	wantText(t, err, `sequence "photos"`, fmt.Sprint(snow(t).MaxCounter()), "4294967295", "BIGINT UNSIGNED")
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Kind: kindOf(t, "SNOWFLAKE EPOCH '"+time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)+"' TICK '1s' TIME BITS 32 WORKER BITS 4")})
	mustTake(t, s, "photos", 1)
}

func second[T any](_ T, err error) error { return err }

// A column has keys of a future time: there are no keys before that.
func TestASnowflakeBeginsAboveTheKeysThatAreThere(t *testing.T) {
	p := newPlace(t)
	s, k := p.open(t, patience(20*time.Second)), snow(t)
	from := func(later time.Duration) uint64 { return k.TickAt(time.Now().Add(later).UnixNano()) }
	mustCreate(t, s, sequence.CreateOptions{Name: "albums", Kind: k, Floor: from(time.Minute)})
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Kind: k, Floor: from(2 * time.Second)})
	var clock *snowflake.ClockError
	if key, err := s.Take(context.Background(), []byte("albums"), 1); !errors.As(err, &clock) || clock.Behind > time.Minute {
		t.Errorf("before the keys of the column: %d, %v", key, err)
	}
	eventually(t, "a key behind those of the column", func() bool {
		key, err := s.Take(context.Background(), []byte("photos"), 1)
		if err == nil {
			wantNow(t, k, key)
		} else if !errors.As(err, &clock) || clock.Behind > 2*time.Second {
			t.Fatalf("before the keys of the column: %v", err)
		}
		return err == nil
	})
	if _, err := s.Raise(context.Background(), []byte("photos"), k.TickAt(time.Now().Add(time.Hour).UnixNano())); err != nil {
		t.Fatal(err)
	}
	if key, err := s.Take(context.Background(), []byte("photos"), 1); !errors.As(err, &clock) || clock.Behind < 59*time.Minute {
		t.Errorf("before the keys of another column: %d, %v", key, err)
	}
}

// A proxy whose clock differs from the sequence server's gives no key, with an error that says so;
// one whose clock is set while it runs goes on.
func TestAClockThatIsWrongGivesNoSnowflake(t *testing.T) {
	p := newPlace(t)
	k, l := snow(t), new(keyLedger)
	var step atomic.Int64
	clock := func(o *sequence.Options) {
		sequence.SetWall(o, func() time.Time { return time.Now().Add(time.Duration(step.Load())) })
		sequence.SetUsualTiming(o)
		sequence.ChangeTiming(o, func(t *sequence.Timing) { t.ClockLook = 100 * time.Millisecond })
	}
	a := p.open(t, clock)
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Kind: k})
	l.take(t, a, "photos", 1)
	steps := func(want uint64, set time.Duration) {
		t.Helper()
		st, _ := a.ClockAhead()
		if got := a.BySequence()[0]; got.ClockSteps != want || got.ClockRefusals != 0 || st.Round(time.Minute) != set {
			t.Errorf("it counts %d steps of the clock, which is %v ahead, want %d and %v", got.ClockSteps, st, want, set)
		}
	}
	steps(0, 0)
	for _, by := range []time.Duration{-time.Hour, 24 * time.Hour} {
		step.Store(int64(by))
		eventually(t, "the clock is seen to be wrong", func() bool {
			ahead, _ := a.ClockAhead()
			return ahead.Round(time.Minute) == by && a.BySequence()[0].ClockSteps > 0
		})
		steps(1, by) // it is wrong since the first one
		wantNow(t, k, l.take(t, a, "photos", 100))
		var wrong *snowflake.ClockError
		b := p.open(t, clock)
		if key, err := b.Take(context.Background(), []byte("photos"), 1); !errors.As(err, &wrong) || wrong.Off.Round(time.Minute) != by {
			t.Errorf("a clock that is %v off: %d, %v", by, key, err)
		}
		if st := b.BySequence()[0]; st.Name != "photos" || st.ClockRefusals != 1 || st.Unserved != 1 {
			t.Errorf("it counts %d keys that were refused because of a clock, and %d in all", st.ClockRefusals, st.Unserved)
		}
		if ahead, ok := b.ClockAhead(); !ok || ahead.Round(time.Minute) != by {
			t.Errorf("its clock is %v ahead", ahead)
		}
	}
}

// The sequence server is away for less than the cover.
func TestSnowflakesAreCovered(t *testing.T) {
	server := mysqltest.Start(t)
	p := placeOn(t, server)
	k, l := snow(t), new(keyLedger)
	s := p.open(t, patience(20*time.Second))
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Kind: k, Cover: 4})
	l.take(t, s, "photos", 1)
	s.Tune(sequence.Tuning{AllocateTimeout: time.Second, CreateTable: true})
	begin := time.Now()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	for time.Since(begin) < 4*time.Second {
		key, err := s.Take(context.Background(), []byte("photos"), 10)
		switch took := time.Since(begin); {
		case err == nil:
			l.note(t, key, 10)
		case took < 4*time.Second: // later it may have been asked for
			t.Fatalf("after %v: %v", took, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	var away *sequence.UnavailableError
	eventually(t, "no ticks are left", func() bool {
		_, err := s.Take(context.Background(), []byte("photos"), 1)
		return errors.As(err, &away) && away.Sequence == "photos"
	})
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server is back", func() bool {
		key, err := s.Take(context.Background(), []byte("photos"), 1)
		if err == nil {
			wantNow(t, k, key)
		}
		return err == nil
	})
}
