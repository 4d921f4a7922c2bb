package sequence_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/stats"
)

// rising returns a function that takes a number of photos, each above the one before.
func rising(t *testing.T, s *sequence.Sequences) (take func()) {
	t.Helper()
	last := uint64(0)
	return func() {
		t.Helper()
		n := mustTake(t, s, "photos", 1)
		if n <= last {
			t.Fatalf("got %d after %d although the row had gone back", n, last)
		}
		last = n
	}
}

// TestARowThatWentBackOnOneOfSeveralServersIsToldOfThatServer lowers the row on one member and
// takes numbers until it was asked again.
func TestARowThatWentBackOnOneOfSeveralServersIsToldOfThatServer(t *testing.T) {
	for name, divide := range map[string]func(*sequence.Options){"blocks": blocks(10), "steps": inSteps, "ORDER": blocks(10)} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			core, logs := observer.New(zap.ErrorLevel)
			s := f.open(t, divide, steadySize(10), func(o *sequence.Options) { o.Logger = zap.New(core) })
			if _, err := s.Create(t.Context(), sequence.CreateOptions{Name: "photos", Order: name == "ORDER"}); err != nil {
				t.Fatal(err)
			}
			take := rising(t, s)
			back := -1
			for range 60 {
				take()
			}
			settled(t, s, "photos")
			for i, id := range f.ids(t, "photos") {
				if id > 20 && back < 0 {
					back = i
				}
			}
			before := f[back].id(t, "photos")
			// As in a backup of a moment ago; an even distance keeps the residue of steps.
			lowered := before - 10
			f[back].exec(t, "UPDATE sequence SET id = ? WHERE name = 'photos'", lowered)
			eventually(t, "the server is asked again", func() bool {
				take()
				return f[back].id(t, "photos") > before
			})
			for range 100 {
				take()
			}
			settled(t, s, "photos")

			if got := rewinds(s); got != 1 {
				t.Errorf("got %d rewinds counted, want 1", got)
			}
			for i, st := range s.ServerStats() {
				want := uint64(0)
				if i == back {
					want = 1
				}
				if st.Server != f[i].server.Addr() || st.Rewinds != want || st.Durations[stats.ReservedRewind].Count() > want {
					t.Errorf("server %d: got %s with %d rewinds and %d such attempts, want %d, and not more attempts", i, st.Server, st.Rewinds, st.Durations[stats.ReservedRewind].Count(), want)
				}
			}
			logged := logs.FilterMessage("sequence row went back").All()
			if len(logged) != 1 {
				t.Fatalf("got %d lines about it, want 1: %+v", len(logged), logs.All())
			}
			if got := logged[0].ContextMap(); got["server"] != f[back].server.Addr() || got["sequence"] != "photos" || got["gave"] != lowered {
				t.Errorf("the line: got %v, want it to name %s and %d", got, f[back].server.Addr(), lowered)
			}
		})
	}
}

// TestNumbersGivenBackToOneOfSeveralServersAreNoRewind returns numbers to a row, and takes them
// again.
func TestNumbersGivenBackToOneOfSeveralServersAreNoRewind(t *testing.T) {
	f := newFleet(t, 2)
	s := f.open(t, blocks(10), steadySize(10))
	createOn(t, s, "photos")
	for i := range 30 {
		mustTake(t, s, "photos", 3)
		if i%5 == 4 {
			settled(t, s, "photos")
			if err := s.Flush(t.Context(), []byte("photos")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := s.Stats(); rewinds(s) != 0 || got.Unused[stats.UnusedReturned] == 0 {
		t.Errorf("got %d rewinds and %d numbers given back, want none and some", rewinds(s), got.Unused[stats.UnusedReturned])
	}
}

// TestARowThatIsSetBackUnderThreeProxiesIsNoticedByAnyOfThem sets a row back below numbers that two
// of them gave and the third one has only seen. The third takes numbers first.
func TestARowThatIsSetBackUnderThreeProxiesIsNoticedByAnyOfThem(t *testing.T) {
	for _, members := range []int{1, 2} {
		t.Run(strconv.Itoa(members), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, members)
			var all []*sequence.Sequences
			for range 3 {
				all = append(all, f.open(t, blocks(10), steadySize(10)))
			}
			createOn(t, all[0], "photos")
			var book ledger
			take := func(i, n int) { book.take(t, strconv.Itoa(i), all[i], "photos", n) }
			take(2, 1)
			for range 50 {
				take(0, 10)
				take(1, 10)
			}
			for _, s := range all {
				settled(t, s, "photos")
			}
			for _, s := range all { // only their proxy knows what was reserved since the last look
				f.seenBy(t, s)
			}
			sequence.Inside(all[2]).Cache("photos").Void(stats.UnusedFlush) // its cached numbers are sound
			before := f.ids(t, "photos")
			for i, id := range before {
				f[i].exec(t, "UPDATE sequence SET id = ? WHERE name = 'photos'", id-200)
			}
			for range 30 {
				take(2, 10)
				take(0, 10)
				take(1, 10)
			}
		})
	}
}

// TestARowThatIsSetBackIsRaisedThoughNobodyTakesOfIt: an idle proxy protects one that begins after
// the row was set back.
func TestARowThatIsSetBackIsRaisedThoughNobodyTakesOfIt(t *testing.T) {
	for _, members := range []int{1, 2} {
		t.Run(strconv.Itoa(members), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, members)
			core, logs := observer.New(zap.ErrorLevel)
			s := f.open(t, blocks(10), steadySize(10), func(o *sequence.Options) { o.Logger = zap.New(core) })
			createOn(t, s, "photos")
			for range 100 {
				mustTake(t, s, "photos", 1)
			}
			settled(t, s, "photos")
			f.seenBy(t, s)
			before := f.ids(t, "photos")
			f[0].exec(t, "UPDATE sequence SET id = 1 WHERE name = 'photos'")
			eventually(t, "the row is raised", func() bool { return f.ids(t, "photos")[0] >= before[0] })
			if got := rewinds(s); got != 1 {
				t.Errorf("got %d rewinds counted, want 1", got)
			}
			if logged := logs.FilterMessage("sequence row went back").Len(); logged != 1 {
				t.Errorf("got %d lines about it, want 1", logged)
			}
		})
	}
}

// The node that holds the sequences of a group raises a row as a single server does.
func TestARowOfAGroupThatIsSetBackIsRaisedThoughNobodyTakesOfIt(t *testing.T) {
	e, all := startEstate(t, 2, "photos"), &given{}
	a := e.join(t, "a", all)
	a.take(t, "a", "photos", 100)
	settled(t, a.Sequences, "photos")
	id := func() (id uint64) {
		t.Helper()
		if err := e.pools[0].QueryRow("SELECT id FROM sequence WHERE name = 'photos'").Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	before := id()
	eventually(t, "the row is seen", func() bool { return sequence.Inside(a.Sequences).First().SeenAt("photos") == before })
	if _, err := e.pools[0].Exec("UPDATE sequence SET id = 1 WHERE name = 'photos'"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the row is raised", func() bool { return id() >= before })
	if got := rewinds(a.Sequences); got != 1 {
		t.Errorf("got %d rewinds counted, want 1", got)
	}
	if logged := a.logs.FilterMessage("sequence row went back").Len(); logged != 1 {
		t.Errorf("got %d lines about it, want 1", logged)
	}
	e.join(t, "b", all).take(t, "b", "photos", 20)
}

// seenBy waits until a proxy has looked at the present rows.
func (f fleet) seenBy(t *testing.T, s *sequence.Sequences) {
	t.Helper()
	eventually(t, "the rows are seen", func() bool {
		for i, v := range sequence.Inside(s).Members() {
			if v.SeenAt("photos") < f[i].id(t, "photos") {
				return false
			}
		}
		return true
	})
}

// TestNumbersAreGivenBackByTheOnlyProxyOnly ends one of two proxies, and then the other one.
func TestNumbersAreGivenBackByTheOnlyProxyOnly(t *testing.T) {
	if !takesSeveral(t) {
		t.Skip("it takes more numbers at once than are left of a reservation")
	}
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	first, last := p.open(t, steadySize(20)), p.open(t, steadySize(20))
	mustTake(t, first, "photos", 1)
	mustTake(t, last, "photos", 1)
	settled(t, last, "photos")
	at := p.id(t, "photos")
	if err := last.Flush(t.Context(), []byte("photos")); err != nil {
		t.Error(err)
	}
	if err := last.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := p.id(t, "photos"); got != at {
		t.Errorf("FLUSH and the end of a proxy moved the row from %d to %d while another one was there", at, got)
	}
	if n := mustTake(t, first, "photos", 20); n <= at {
		t.Errorf("got %d, want one above %d", n, at)
	}
	settled(t, first, "photos")
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got, want := p.id(t, "photos"), at+20; got != want {
		t.Errorf("the end of the only proxy left the row at %d, want %d", got, want)
	}
}

// TestARowThatIsSetBackBetweenTwoLooksIsRaisedByWhoGaveMore sets a row back below what a proxy
// reserved since its last look, or before it was started again. Another proxy takes numbers first.
func TestARowThatIsSetBackBetweenTwoLooksIsRaisedByWhoGaveMore(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			p, state := newPlace(t).withTable(t, map[string]uint64{"photos": 0}), stateIn(t.TempDir())
			idle, other := p.open(t, steadySize(10), state), p.open(t, steadySize(10))
			mustTake(t, idle, "photos", 1)
			mustTake(t, other, "photos", 1)
			for _, s := range []*sequence.Sequences{idle, other} {
				settled(t, s, "photos")
				fleet{p}.seenBy(t, s)
			}
			before := p.id(t, "photos")
			if err := sequence.Inside(idle).Following().Acquire(t.Context()); err != nil { // it does not look
				t.Fatal(err)
			}
			for range 100 {
				mustTake(t, idle, "photos", 1)
			}
			settled(t, idle, "photos")
			given := p.id(t, "photos")
			if restarted {
				cutOff(t, idle)
			}
			p.exec(t, "UPDATE sequence SET id = ? WHERE name = 'photos'", before)
			sequence.Inside(idle).FollowAgain()
			if restarted {
				idle = p.open(t, steadySize(10), state)
				sequence.Inside(idle).StartFollowing()
				if ok, err := idle.Exists(t.Context(), []byte("photos")); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			eventually(t, "the row is raised", func() bool { return p.id(t, "photos") >= given })
		})
	}
}

// TestARowThatIsLoweredOnPurposeHasNotGoneBack: a proxy that only looks sees rows fall.
func TestARowThatIsLoweredOnPurposeHasNotGoneBack(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s, watcher := p.open(t, steadySize(50)), p.open(t, steadySize(50))
	mustTake(t, s, "photos", 1)
	settled(t, s, "photos")
	mustCreate(t, s, sequence.CreateOptions{Name: "days", Max: 100, Cycle: true, Cache: 10})
	sequence.Inside(watcher).StartFollowing()
	for _, name := range []string{"photos", "days"} {
		if ok, err := watcher.Exists(t.Context(), []byte(name)); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	v := sequence.Inside(watcher).First()
	for range 125 {
		mustTake(t, s, "days", 1)
	}
	settled(t, s, "days")
	time.Sleep(3 * sequence.Inside(watcher).Timing().Follow) // it looks, and keeps nothing
	if err := s.Close(t.Context()); err != nil {             // it returns numbers of photos to the row
		t.Fatal(err)
	}
	if id := p.id(t, "photos"); id != 1 {
		t.Fatalf("the row is at %d, want 1", id)
	}
	if n := mustTake(t, watcher, "photos", 1); n != 2 {
		t.Errorf("the next proxy got %d, want 2", n)
	}
	mustTake(t, watcher, "days", 1)
	mustAlter(t, watcher, "days", sequence.Alteration{Cycle: ref(false)})
	before := mustTake(t, watcher, "days", 1)
	eventually(t, "it looks once more", func() bool { return v.SeenAt("days") > 0 })
	if n := mustTake(t, watcher, "days", 20); n <= before || n > 80 {
		t.Errorf("a sequence that repeats no more gives %d after %d", n, before)
	}
	if got := rewinds(watcher); got != 0 {
		t.Errorf("got %d rewinds counted, want none", got)
	}
}

// TestARowOfAnEarlierEpochThatWentBackIsRaised restores one member from a backup that is older than
// the last restart of the sequence: its row is of a past epoch.
func TestARowOfAnEarlierEpochThatWentBackIsRaised(t *testing.T) {
	f := newFleet(t, 2)
	s := f.open(t, blocks(10), steadySize(10))
	mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
	for i := range f {
		f[i].exec(t, "UPDATE sequence_options SET epoch = 5 WHERE name = 'photos'")
	}
	take := rising(t, s)
	for range 100 {
		take()
	}
	settled(t, s, "photos")
	if got := sequence.Inside(s).Epoch("photos"); got != 5 {
		t.Fatalf("the proxy knows of epoch %d, want 5", got)
	}
	before := f[1].id(t, "photos")
	f[1].exec(t, "UPDATE sequence_options SET epoch = 0 WHERE name = 'photos'")
	f[1].exec(t, "UPDATE sequence SET id = ? WHERE name = 'photos'", before-20)
	eventually(t, "the server is asked again", func() bool {
		take()
		return f[1].id(t, "photos") > before
	})
}

// A snapshot that is older than the proxies has no entries of them. What they saw of each other's
// numbers counts all the same.
func TestARowThatWentBackIsRaisedByProxiesThatTheTableDoesNotKnow(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	low, high := p.open(t, steadySize(10)), p.open(t, steadySize(10))
	var book ledger
	book.take(t, "low", low, "photos", 50)
	book.take(t, "high", high, "photos", 1000)
	for _, s := range []*sequence.Sequences{low, high} {
		settled(t, s, "photos")
		fleet{p}.seenBy(t, s)
	}
	sequence.Inside(low).Cache("photos").Void(stats.UnusedFlush)
	for _, s := range []*sequence.Sequences{low, high} { // as in an outage
		if err := sequence.Inside(s).Following().Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.exec(t, "DELETE FROM sequence_proxy")
	p.exec(t, "UPDATE sequence SET id = 10 WHERE name = 'photos'")
	time.Sleep(sequence.Inside(low).Timing().Beat) // its next round begins with a sign of life
	sequence.Inside(low).FollowAgain()
	book.take(t, "low", low, "photos", 200)
	sequence.Inside(high).FollowAgain()
	book.take(t, "high", high, "photos", 200)
}
