package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/test/mysqltest"
)

// statsOf returns the counters of one sequence.
func statsOf(t *testing.T, s *sequence.Sequences, name string) sequence.SequenceStats {
	t.Helper()
	for _, st := range s.BySequence() {
		if st.Name == name {
			return st
		}
	}
	t.Fatalf("the status has nothing of %q", name)
	return sequence.SequenceStats{}
}

func TestStatsOfOneSequence(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "users": 500})
	s := p.open(t, steadySize(10))
	for range 4 {
		mustTake(t, s, "photos", 1)
	}
	mustTake(t, s, "photos", 3)
	settled(t, s, "photos")
	st := statsOf(t, s, "photos")
	if st.Given != 7 || st.Cached+7 != st.Reserved || st.Reserved != p.id(t, "photos") {
		t.Errorf("got %d given, %d held, %d reserved, want 7 and as many reserved as the row has, %d", st.Given, st.Cached, st.Reserved, p.id(t, "photos"))
	}
	if st.Waits != 1 || st.Waited <= 0 || st.Unserved != 0 || st.Attempts[stats.ReservedOK] != st.Reserved/10 {
		t.Errorf("got %d waits of %v, %d of them for nothing, and %v attempts, want one wait, and one good attempt for 10 numbers", st.Waits, st.Waited, st.Unserved, st.Attempts)
	}
	if st.Size != 10 || st.CachedFor == sequence.Never || st.CachedFor == 0 || st.Skew == sequence.Never || st.Order {
		t.Errorf("got %+v, want a size of 10 and times", st)
	}

	// Looking at an unused sequence reserves nothing for it.
	if err := s.UsableFor(t.Context(), []byte("users")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if st := statsOf(t, s, "users"); st.Cached != 0 || st.Reserved != 0 || st.CachedFor != sequence.Never || st.Skew != sequence.Never || st.ToEnd != sequence.Never {
			t.Errorf("a sequence that is not used: got %+v", st)
		}
	}
	if err := sequence.Inside(s).Round(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := p.id(t, "users"); got != 500 {
		t.Errorf("its row is at %d, want 500", got)
	}

	servers := s.ServerStats()
	if len(servers) != 1 || servers[0].Server != p.server.Addr() || servers[0].Node != p.server.Addr() || !servers[0].Up || servers[0].Durations[stats.ReservedOK].Count() != st.Attempts[stats.ReservedOK] {
		t.Errorf("the server: got %+v", servers)
	}
}

func TestWhyNumbersAreNotUsedIsCounted(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	// which would raise a row before a reservation meets it
	s := p.open(t, steadySize(10), seldomHearing)
	ctx := t.Context()
	for i, c := range []struct {
		why stats.Unused
		do  func(name string) error
	}{
		{stats.UnusedRun, func(name string) error {
			// the next segment does not adjoin
			p.exec(t, "UPDATE sequence SET id = id + 1000 WHERE name = ?", name)
			mustTake(t, s, name, 30)
			return nil
		}},
		{stats.UnusedAlter, func(name string) error {
			two := uint64(2)
			_, err := s.Alter(ctx, []byte(name), sequence.Alteration{Increment: &two})
			return err
		}},
		{stats.UnusedCache, func(name string) error {
			one := uint64(1)
			_, err := s.Alter(ctx, []byte(name), sequence.Alteration{Cache: &one})
			return err
		}},
		{stats.UnusedRestart, func(name string) error {
			at := uint64(5000)
			_, err := s.Alter(ctx, []byte(name), sequence.Alteration{Restart: &at})
			return err
		}},
		{stats.UnusedChosen, func(name string) error {
			st := p.id(t, name)
			return s.Avoid(ctx, []byte(name), []uint64{st - 2})
		}},
		{stats.UnusedFlush, func(name string) error {
			// the cached numbers cannot be returned
			p.exec(t, "UPDATE sequence SET id = id + 1 WHERE name = ?", name)
			return s.Flush(ctx, []byte(name))
		}},
		{stats.UnusedReturned, func(name string) error { return s.Flush(ctx, []byte(name)) }},
		{stats.UnusedRewind, func(name string) error {
			p.exec(t, "UPDATE sequence SET id = 0 WHERE name = ?", name)
			mustTake(t, s, name, 30)
			return nil
		}},
	} {
		name := fmt.Sprint("s", i)
		createOn(t, s, name)
		mustTake(t, s, name, 1)
		settled(t, s, name)
		if err := c.do(name); err != nil {
			t.Fatalf("%v: %v", c.why, err)
		}
		settled(t, s, name)
		st := statsOf(t, s, name)
		if st.Unused[c.why] == 0 {
			t.Errorf("%v: got %v", c.why, st.Unused)
		}
		checkSums(t, s)
	}
	createOn(t, s, "dropped")
	mustTake(t, s, "dropped", 1)
	settled(t, s, "dropped")
	before := s.Stats().Unused[stats.UnusedDrop]
	if _, err := s.Drop(ctx, []byte("dropped"), false); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats().Unused[stats.UnusedDrop] - before; got != 9 {
		t.Errorf("a dropped sequence: got %d numbers passed over, want 9", got)
	}
}

func TestWaitsForNothingAreCounted(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, patience(30*time.Second))
	if _, err := s.Exists(t.Context(), []byte("photos")); err != nil {
		t.Fatal(err)
	}
	p.exec(t, "RENAME TABLE sequence TO hidden")
	s.Tune(sequence.Tuning{AllocateTimeout: 50 * time.Millisecond})
	if _, err := s.Take(t.Context(), []byte("photos"), 1); err == nil {
		t.Fatal("got a number without a table")
	}
	st := statsOf(t, s, "photos")
	if st.Waits != 1 || st.Unserved != 1 || st.Waited <= 0 {
		t.Errorf("got %d waits, %d for nothing, of %v, want one of each", st.Waits, st.Unserved, st.Waited)
	}
	eventually(t, "an attempt has failed", func() bool {
		for result, n := range statsOf(t, s, "photos").Attempts {
			if stats.Result(result) != stats.ReservedOK && n > 0 {
				return true
			}
		}
		return false
	})
	p.exec(t, "RENAME TABLE hidden TO sequence")
}

// TestOnlySoManySequencesAreNamed makes more sequences than are counted by name.
func TestOnlySoManySequencesAreNamed(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	const more = 30
	text := "INSERT INTO sequence (name) VALUES ('other')"
	for i := range stats.MaxNamed + more {
		text += fmt.Sprintf(", ('s%d')", i)
	}
	p.exec(t, text)
	s := p.open(t, steadySize(2))
	mustTake(t, s, "other", 1) // a name that stands for others
	for i := range stats.MaxNamed + more {
		if _, err := s.Exists(t.Context(), fmt.Appendf(nil, "s%d", i)); err != nil {
			t.Fatal(err)
		}
		if i >= stats.MaxNamed {
			mustTake(t, s, fmt.Sprintf("s%d", i), 1)
		}
	}
	all := s.BySequence()
	if len(all) != stats.MaxNamed+1 || all[stats.MaxNamed].Name != stats.Others {
		t.Fatalf("got %d, the last of them %s, want %d and the others", len(all), all[len(all)-1].Name, stats.MaxNamed)
	}
	if got := all[stats.MaxNamed].Given; got != more+1 {
		t.Errorf("the others: got %d numbers, want %d", got, more+1)
	}

	// One of the unnamed is dropped: their count does not fall. A named one is dropped: another one
	// gets a name.
	for _, name := range []string{fmt.Sprintf("s%d", stats.MaxNamed+1), "s0"} {
		if _, err := s.Drop(t.Context(), []byte(name), false); err != nil {
			t.Fatal(err)
		}
	}
	p.exec(t, "INSERT INTO sequence (name) VALUES ('new')")
	mustTake(t, s, "new", 1)
	if got := statsOf(t, s, stats.Others).Given; got != more+1 {
		t.Errorf("the others after one was dropped: got %d numbers, want %d", got, more+1)
	}
	if got := statsOf(t, s, "new").Given; got != 1 {
		t.Errorf("a new one in place of one that was dropped: got %d numbers, want 1", got)
	}
}

// Requests for numbers are counted too while no server has shown yet that the sequence exists.
// Looks are not.
func TestWaitsForASequenceThatIsNotKnownYetAreCounted(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	link := mysqltest.NewLink(t, p.server.Addr())
	s := p.open(t, patience(300*time.Millisecond), func(o *sequence.Options) { o.Servers[0].Addr = link.Addr() })
	link.Cut()
	for range 2 {
		if _, err := s.Take(t.Context(), []byte("photos"), 1); !errors.As(err, new(*sequence.UnavailableError)) {
			t.Errorf("got %v, want *UnavailableError", err)
		}
	}
	if err := s.UsableFor(t.Context(), []byte("photos")); err == nil {
		t.Error("the sequence is usable without its server")
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.Take(gone, []byte("photos"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the caller has gone", err)
	}
	if st := statsOf(t, s, stats.Others); st.Waits != 2 || st.Unserved != 2 || st.Waited <= 0 {
		t.Errorf("got %d waits of %v, %d of them for nothing, want 2", st.Waits, st.Waited, st.Unserved)
	}
	link.Mend()
	sequence.Inside(s).Waits(usualPatience)
	eventually(t, "the server is back", func() bool {
		_, err := s.Take(t.Context(), []byte("photos"), 1)
		return err == nil
	})
	unknown := statsOf(t, s, stats.Others).Unserved
	if _, err := s.Take(t.Context(), []byte("nobody"), 1); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	if st := statsOf(t, s, stats.Others); st.Unserved != unknown {
		t.Errorf("a sequence that is not there counts as %d waits for nothing", st.Unserved-unknown)
	}
}

// Numbers that are given in one second may be as far apart as all proxies' caches together. The
// status says so, and follows a smaller CACHE, a shorter cover and proxies that leave.
func TestOrderSkewIsThatOfAllProxiesTogether(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t), p.open(t)
	mustTake(t, a, "photos", 1)
	mustTake(t, b, "photos", 1)
	c := sequence.Inside(a).Cache("photos")
	skewed := func(what string, proxies, seconds, numbers float64) {
		t.Helper()
		eventually(t, what, func() bool {
			c.Pace(1000)
			mustTake(t, a, "photos", 1)
			all, err := a.List(t.Context())
			if err != nil || len(all) != 1 {
				t.Fatalf("got %+v, %v", all, err)
			}
			i := all[0]
			want := proxies * seconds * segment.Headroom
			if numbers > 0 {
				want = proxies * numbers / i.Rate
			}
			return i.Rate > 0 && math.Abs(i.Skew.Seconds()-want) <= want/50
		})
	}
	skewed("the skew is that of two proxies with the usual cover", 2, sequence.DefaultOutageCover.Seconds(), 0)
	mustAlter(t, b, "photos", sequence.Alteration{Cover: ref(uint64(60))})
	skewed("a cover of its own makes it smaller", 2, 60, 0)
	mustAlter(t, b, "photos", sequence.Alteration{Cache: ref(uint64(50))})
	skewed("CACHE makes it smaller", 2, 0, 50)
	closeNow(t, b)
	skewed("a proxy has left", 1, 0, 50)
}

// Callers take numbers, and the sequence is changed, while its counters are read.
func TestCountersAddUpAtAnyMoment(t *testing.T) {
	sc := &script{}
	for i := range uint64(5000) {
		sc.gaps = append(sc.gaps, i%3) // others reserve too
	}
	s, c := scripted(t, sc, steadySize(20))
	defer closeNow(t, s)
	var callers sync.WaitGroup
	for i := range uint64(4) {
		callers.Go(func() {
			for k := range 300 {
				if _, err := s.TakeRun(context.Background(), []byte("photos"), 1+i); err != nil {
					t.Errorf("TakeRun: %v", err)
					return
				}
				if k%100 == 99 {
					c.Void(stats.UnusedRestart)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { callers.Wait(); close(done) }()
	for {
		select {
		case <-done:
			st := statsOf(t, s, "photos")
			if st.Given == 0 || st.Unused[stats.UnusedRun] == 0 || st.Unused[stats.UnusedRestart] == 0 {
				t.Errorf("that shows little: %+v", st)
			}
			return
		default:
		}
		checkSums(t, s)
	}
}

// A reservation whose numbers reach no cache is counted as reserved, and as unused.
func TestReservationsThatNobodyGetsAreCounted(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s, other := p.open(t, steadySize(10), seldomHearing), p.open(t)
	mustTake(t, s, "photos", 1)
	settled(t, s, "photos")
	v, before := sequence.Inside(s).First(), s.Stats()
	more := func(what string, why stats.Unused, want uint64) {
		t.Helper()
		after := s.Stats()
		if n, reserved := after.Unused[why]-before.Unused[why], after.Reserved-before.Reserved; n != want || reserved != want {
			t.Errorf("%s: %d more numbers are counted as reserved, and %d as unused, %v; want %d", what, reserved, n, why, want)
		}
		before = after
	}
	// As where the state file cannot be written.
	take := func() sequence.Grant {
		t.Helper()
		g, err := v.ReserveOnce(t.Context(), "photos", 10)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := take()
	v.TakeBack(t.Context(), "photos", g.Seg)
	more("a reservation that is undone", stats.UnusedReturned, 10)
	g = take()
	mustTake(t, other, "photos", 1)
	settled(t, other, "photos")
	v.TakeBack(t.Context(), "photos", g.Seg)
	more("a reservation that cannot be undone", stats.UnusedRefused, 10)

	// Another proxy has changed the rule, and this one has not seen it.
	two := uint64(2)
	if _, err := other.Alter(t.Context(), []byte("photos"), sequence.Alteration{Increment: &two}); err != nil {
		t.Fatal(err)
	}
	before = s.Stats()
	v.Rules.Set("photos", segment.Rule{Step: 1})
	if g, err := v.Reserve(t.Context(), "photos", 10, 1); err != nil || g.Rule.Step != 2 {
		t.Fatalf("got numbers by %+v, %v; want the new rule", g.Rule, err)
	}
	more("a changed rule", stats.UnusedAlter, 10) // another proxy is registered
}

// reservations is how many attempts of a process to reserve ended so.
func reservations(s *sequence.Sequences, result sequence.Result) (n uint64) {
	for _, st := range s.ServerStats() {
		n += st.Durations[result].Count()
	}
	return n
}

// rewinds is how many rows a process has found to have gone back.
func rewinds(s *sequence.Sequences) (n uint64) {
	for _, st := range s.ServerStats() {
		n += st.Rewinds
	}
	return n
}
