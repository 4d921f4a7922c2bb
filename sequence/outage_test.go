package sequence_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// slow makes each reservation of a script take a while.
func slow(sc *script, each time.Duration) *script {
	sc.check = func(uint64, uint64) { time.Sleep(each) }
	return sc
}

// An outage at any moment of a steady use is not noticed for the cover; then it is an error, with
// sequence and cause.
func TestOutageIsNotNoticedForTheCover(t *testing.T) {
	const rate, cover = 200, 90 // numbers per second, seconds
	for _, begins := range []int{300, 317, 350} {
		synctest.Test(t, func(t *testing.T) {
			sc := slow(&script{}, 100*time.Millisecond)
			cause := errors.New("connection refused")
			s, _ := scripted(t, sc, patience(2*time.Second), func(o *sequence.Options) { o.OutageCover = cover * time.Second })
			defer closeNow(t, s)
			second := func() (waits uint64) {
				before := s.Stats().Waits
				for range rate {
					mustTake(t, s, "photos", 1)
					time.Sleep(time.Second / rate)
				}
				return s.Stats().Waits - before
			}
			for i := range begins {
				if waits := second(); waits > 0 && i > 0 {
					t.Fatalf("%d calls waited in second %d of a steady use", waits, i)
				}
			}
			sc.set(func() { sc.down = cause })
			for i := range cover {
				if waits := second(); waits > 0 {
					t.Fatalf("%d calls waited in second %d of the outage, want none for %d s", waits, i, cover)
				}
			}
			var err error
			for taken := 0; err == nil && taken < 3*rate*cover; taken++ {
				begin := time.Now()
				if _, err = s.Take(context.Background(), []byte("photos"), 1); err != nil && time.Since(begin) != 2*time.Second {
					t.Errorf("the error came after %v, want the allocate timeout of 2s", time.Since(begin))
				}
			}
			wantText(t, err, `sequence "photos"`, "seq.example:3306", "connection refused")
			sc.set(func() { sc.down = nil })
			time.Sleep(sequence.UsualTiming().LastBackoff + time.Second)
			if waits := second(); waits > 0 {
				t.Errorf("%d calls waited after the outage", waits)
			}
		})
	}
}

// Every cached number is given while the servers are dead, and there are as many as the rate
// demands.
func TestDeadServerIsNotNoticedForTheCover(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withAll(t, map[string]uint64{"albums": 0})
	s := p.open(t, cacheSize(10))
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Cover: 20})
	rates := map[string]float64{"photos": 100, "albums": 50}
	covers := map[string]float64{"photos": 20, "albums": sequence.DefaultOutageCover.Seconds()}
	var numbers ledger
	for name, rate := range rates {
		numbers.add(t, name+" at the start", hash(name)+mustTake(t, s, name, 1), 1)
		c := sequence.Inside(s).Cache(name)
		c.Pace(rate)
		eventually(t, "the cover of "+name+" is cached", func() bool {
			numbers.add(t, name+" before", hash(name)+mustTake(t, s, name, 1), 1)
			return float64(c.Cached()) >= rate*covers[name]
		})
		settled(t, s, name)
	}
	all, err := s.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if seconds := i.CachedFor.Seconds(); seconds < covers[i.Name] || seconds > 3*covers[i.Name] {
			t.Errorf("%s: seconds_left is %.1f, want %v or somewhat more", i.Name, seconds, covers[i.Name])
		}
	}
	p.kill(t)
	sequence.Inside(s).Waits(2 * time.Second)
	for name, rate := range rates {
		cached := sequence.Inside(s).Cached(name)
		if float64(cached) < rate*covers[name] {
			t.Errorf("%s: %d numbers are cached, want %v", name, cached, rate*covers[name])
		}
		waits := s.Stats().Waits
		for range cached {
			numbers.add(t, name+" in the outage", hash(name)+mustTake(t, s, name, 1), 1)
		}
		if got := s.Stats().Waits - waits; got != 0 {
			t.Errorf("%s: %d of %d calls waited in the outage", name, got, cached)
		}
		_, err := s.Take(context.Background(), []byte(name), 1)
		var away *sequence.UnavailableError
		if !errors.As(err, &away) || away.Sequence != name || away.Waited < 2*time.Second {
			t.Errorf("%s: got %v, want an UnavailableError of it after the allocate timeout", name, err)
		}
		wantText(t, err, name, p.server.Addr(), "connect")
	}
	p.restart(t)
	for name := range rates {
		eventually(t, name+" is there again", func() bool { return sequence.Inside(s).Cached(name) > 0 })
		numbers.add(t, name+" after the outage", hash(name)+mustTake(t, s, name, 1), 1)
	}
}

// In the outage a client's own key is no question of what is in memory: the error says so.
func TestAKeyAboveWhatIsReservedNeedsTheServer(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(100))
	wantTaken(t, s, "photos", 1)
	settled(t, s, "photos")
	p.kill(t)
	sequence.Inside(s).Waits(200 * time.Millisecond)
	if err := s.Avoid(t.Context(), []byte("photos"), []uint64{2, 50}); err != nil {
		t.Errorf("keys that are reserved: %v", err)
	}
	wantTaken(t, s, "photos", 3)
	err := s.Avoid(t.Context(), []byte("photos"), []uint64{1 << 40})
	const why = "the statement brings a key above all that this proxy has reserved"
	wantText(t, err, "photos", p.server.Addr(), why)
	if text, ok := sequence.Public(err); !ok || !strings.Contains(text, why) || !strings.Contains(text, "its sequence server is unavailable (waited ") {
		t.Errorf("a client gets %q, want that the server is away, and %q", text, why)
	}
	wantTaken(t, s, "photos", 4)
}

// All of several servers are dead at once: the cached numbers of each server are given, and when
// they are back all heals by itself.
func TestSeveralDeadServersAreNotNoticedForTheCover(t *testing.T) {
	for name, how := range map[string]func(*sequence.Options){"blocks": blocks(100), "steps": inSteps} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 3)
			s := f.open(t, how, cacheSize(10), patience(30*time.Second))
			const rate, cover = 100, 20
			mustCreate(t, s, sequence.CreateOptions{Name: "photos", Cover: cover})
			h := newGivenEver()
			c := sequence.Inside(s).Cache("photos")
			if !c.Exists() {
				h.add(t, "photos", mustTake(t, s, "photos", 1))
				c = sequence.Inside(s).Cache("photos")
			}
			eventually(t, "the cover is cached", func() bool {
				c.Pace(rate)
				h.add(t, "photos", mustTake(t, s, "photos", 1))
				return c.Cached() >= rate*cover
			})
			settled(t, s, "photos")
			for _, p := range f {
				p.kill(t)
			}
			cached, waits := c.Cached(), s.Stats().Waits
			if cached < rate*cover {
				t.Errorf("%d numbers are cached, want %d", cached, rate*cover)
			}
			serversAreAway(t, s, f, name)
			newcomer := f.open(t, how)
			serversAreAway(t, newcomer, f, "")
			if all, err := newcomer.List(context.Background()); len(all) != 0 || !errors.As(err, new(*sequence.UnavailableError)) {
				t.Errorf("the list of who has used none: got %v, %v, want an UnavailableError alone", all, err)
			}
			for range cached {
				h.add(t, "photos", mustTake(t, s, "photos", 1))
			}
			if got := s.Stats().Waits - waits; got != 0 {
				t.Errorf("%d of %d calls waited in the outage", got, cached)
			}
			for _, p := range f {
				p.restart(t)
			}
			for range 2000 {
				h.add(t, "photos", mustTake(t, s, "photos", 1))
			}
			eventually(t, "all are in use again", func() bool {
				h.add(t, "photos", mustTake(t, s, "photos", 1))
				for _, v := range sequence.Inside(s).Members() {
					if v.Away() {
						return false
					}
				}
				return true
			})
			if all, err := s.SequenceServers(context.Background()); err != nil || len(all) != 3 || all[0].State != sequence.PlanInForce {
				t.Errorf("the sequence servers at the end: got %+v, %v", all, err)
			}
		})
	}
}

// serversAreAway checks the list of the sequence servers, none of which can be reached. way is how
// they divide the numbers, "" if s cannot know.
func serversAreAway(t *testing.T, s *sequence.Sequences, f fleet, way string) {
	t.Helper()
	all, err := s.SequenceServers(context.Background())
	var why *sequence.PlanError
	if !errors.As(err, &why) || len(all) != len(f) {
		t.Fatalf("got %d sequence servers and %v, want %d and a PlanError", len(all), err, len(f))
	}
	wantText(t, err, "no sequence server can be reached", "connect")
	for i, l := range all {
		divided := map[string]string{"blocks": sequence.InterleaveBlock, "steps": sequence.InterleaveStep}[way]
		if l.Address != f[i].server.Addr() || l.Position != i || l.State != "away" || l.Err == nil || (l.ID != "") != (way != "") || l.Interleave != divided {
			t.Errorf("sequence server %d: got %+v, want it to be away", i, l)
		}
	}
	cause := errors.New("the caller has gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if all, err := s.SequenceServers(ctx); len(all) != 0 || !errors.Is(err, cause) {
		t.Errorf("of a caller that has gone: got %v, %v, want its cause", all, err)
	}
}

// The list in an outage has what the proxy knows; what only the table could say is left open.
func TestListInAnOutageShowsWhatIsInMemory(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 10, "unused": 0})
	s := p.open(t, steadySize(100), patience(30*time.Second))
	mustCreate(t, s, sequence.CreateOptions{Name: "single", Cache: 1})
	mustCreate(t, s, sequence.CreateOptions{Name: "timed", Order: true})
	mustCreate(t, s, sequence.CreateOptions{Name: "round", Cycle: true, Max: 1000, Cache: 10})
	mustCreate(t, s, sequence.CreateOptions{Name: "gone"})
	for _, name := range []string{"photos", "single", "timed", "round", "gone"} {
		mustTake(t, s, name, 1)
		settled(t, s, name)
	}
	if _, err := s.Drop(context.Background(), []byte("gone"), false); err != nil {
		t.Fatal(err)
	}
	if all, err := s.List(context.Background()); err != nil || len(all) != 5 {
		t.Fatalf("got %v, %v, want all five", all, err)
	}
	p.kill(t)
	all, err := s.List(context.Background())
	var away *sequence.UnavailableError
	if !errors.As(err, &away) {
		t.Fatalf("got %v, want an UnavailableError", err)
	}
	wantText(t, err, p.server.Addr(), "connect")
	want := []sequence.Info{
		{Name: "photos", Next: 12, Cached: 99, Cache: 100},
		{Name: "round", Next: 2, Cached: 9, Cache: 10},
		{Name: "single", Cache: 1},
		{Name: "timed", Order: true},
	}
	if len(all) != len(want) {
		t.Fatalf("got %+v, want %d sequences", all, len(want))
	}
	for i, w := range want {
		got := all[i]
		if got.Name != w.Name || got.Next != w.Next || got.Cached != w.Cached || got.Cache != w.Cache || got.Order != w.Order {
			t.Errorf("got %+v, want %+v", got, w)
		}
		if got.Rate <= 0 || got.CachedFor == sequence.Never || (got.CachedFor > 0) != (w.Cached > 0) || got.Reserved.IsZero() || got.End == 0 || (got.Skew == sequence.Never) == w.Order {
			t.Errorf("%s: got %+v, want its rate, how long its numbers last, and no skew unless it is ordered", w.Name, got)
		}
	}
	cause := errors.New("the caller has gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if all, err := s.List(ctx); len(all) != 0 || !errors.Is(err, cause) {
		t.Errorf("of a caller that has gone: got %v, %v, want its cause", all, err)
	}
	p.restart(t)
	eventually(t, "the whole list is logged again", func() bool {
		all, err = s.List(context.Background())
		return err == nil
	})
	if len(all) != 5 {
		t.Errorf("got %+v, want all five", all)
	}
}

// hash keeps the numbers of two sequences apart in one ledger.
func hash(name string) uint64 { return uint64(name[0]) << 40 }

// An idle sequence is asked for 20,000 numbers a second from one moment to the next. Its server
// takes 50 ms for each answer.
func TestBurstAfterIdleTimeIsServedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, clients, each = 20_000, 200, 50 * time.Millisecond
		sc := slow(&script{}, each)
		s, _ := scripted(t, sc)
		defer closeNow(t, s)
		mustTake(t, s, "photos", 1)
		time.Sleep(5 * time.Hour)
		var longest, waitedLate atomic.Int64
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				for i := range 10 * rate / clients {
					begin := time.Now()
					mustTake(t, s, "photos", 1)
					took := time.Since(begin)
					for old := longest.Load(); int64(took) > old && !longest.CompareAndSwap(old, int64(took)); old = longest.Load() {
					}
					if took > 0 && i > rate/clients {
						waitedLate.Add(1)
					}
					time.Sleep(time.Second * clients / rate)
				}
			})
		}
		wg.Wait()
		if got := time.Duration(longest.Load()); got > each {
			t.Errorf("a call waited %v, want one reservation at most, which takes %v", got, each)
		}
		if got := waitedLate.Load(); got > 0 {
			t.Errorf("%d calls waited after the first second", got)
		}
	})
}

// A crowd that comes at one moment waits for one reservation, however small the segments of an idle
// sequence are.
func TestCrowdWaitsForOneReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := slow(&script{}, 50*time.Millisecond)
		s, _ := scripted(t, sc, steadySize(10))
		defer closeNow(t, s)
		var late atomic.Int64
		var wg sync.WaitGroup
		begin := time.Now()
		// Its reservation is on its way when the others come.
		wg.Go(func() { mustTake(t, s, "photos", 1) })
		synctest.Wait()
		for range 5000 {
			wg.Go(func() {
				mustTake(t, s, "photos", 2)
				if time.Since(begin) > 100*time.Millisecond {
					late.Add(1)
				}
			})
		}
		wg.Wait()
		if got := late.Load(); got > 0 {
			t.Errorf("%d of 5000 waited for more than the reservation under way and one more", got)
		}
	})
}

// Where the rate rises, the cache follows, long before the old cover is used up.
func TestCoverKeepsUpWithARisingRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cache := scripted(t, &script{})
		defer closeNow(t, s)
		use := func(rate uint64, minutes int) {
			for i := range minutes * 60 {
				mustTake(t, s, "photos", rate)
				time.Sleep(time.Second)
				if i%2 == 0 {
					sequence.Inside(s).Beat() // as the heartbeat does
				}
			}
			synctest.Wait()
		}
		use(100, 10)
		use(300, 5)
		if cached, want := cache.Cached(), uint64(300*sequence.DefaultOutageCover.Seconds()); cached < want {
			t.Errorf("5 minutes after the rate rose to 300 a second %d numbers are cached, want %d", cached, want)
		}
		if err := s.Flush(context.Background(), []byte("photos")); err != nil {
			t.Fatal(err)
		}
		sequence.Inside(s).Beat()
		synctest.Wait()
		if cached := cache.Cached(); cached != 0 {
			t.Errorf("%d numbers are cached after FLUSH, although nobody asked", cached)
		}
	})
}

// A server that is 50 ms away is not noticed once a sequence is in use: each reservation takes
// several times that, and one with a new connection ten times.
func TestNoCallWaitsAtTheChangeOfSegments(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	link := mysqltest.NewLink(t, p.server.Addr())
	link.Delay(25 * time.Millisecond) // in each direction
	s := p.open(t, func(o *sequence.Options) { o.Servers[0].Addr, o.OutageCover = link.Addr(), time.Second })
	last := mustTake(t, s, "photos", 1)
	c := sequence.Inside(s).Cache("photos")
	c.Pace(2000)
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	use := func(enough func() bool) {
		for !enough() {
			got := mustTake(t, s, "photos", 20)
			if got <= last {
				t.Fatalf("got %d after %d", got, last)
			}
			last = got + 19
			<-ticks.C
		}
	}
	use(func() bool { return s.Stats().Cached >= 2000 })
	begin, before := s.Stats(), reservations(s, sequence.ReservedOK)
	use(func() bool { return reservations(s, sequence.ReservedOK) >= before+3 })
	end := s.Stats()
	if waits := end.Waits - begin.Waits; waits != 0 {
		t.Errorf("%d calls waited, of those for %d numbers in %d reservations", waits, end.Given-begin.Given, reservations(s, sequence.ReservedOK)-before)
	}
}

// A sequence that was hardly used is asked for 20,000 numbers at one moment. Its server is 50 ms
// away. No caller gets an error, and the segments grow at once: a reservation for each thousand
// would be 20.
func TestABurstIsServedByFewReservationsOfAFarServer(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	link := mysqltest.NewLink(t, p.server.Addr())
	s := p.open(t, func(o *sequence.Options) { o.Servers[0].Addr = link.Addr() })
	mustTake(t, s, "photos", 1)
	settled(t, s, "photos")
	link.Delay(25 * time.Millisecond) // in each direction
	const clients, each = 200, 100
	begin := reservations(s, sequence.ReservedOK)
	taken := make([][]uint64, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for range each {
				n, err := s.Take(context.Background(), []byte("photos"), 1)
				if err != nil {
					t.Error(err)
					return
				}
				taken[i] = append(taken[i], n)
			}
		})
	}
	wg.Wait()
	served := reservations(s, sequence.ReservedOK) - begin
	seen := make(map[uint64]bool)
	for _, numbers := range taken {
		for k, n := range numbers {
			if seen[n] || k > 0 && n <= numbers[k-1] {
				t.Fatalf("%d was given twice, or after a higher one", n)
			}
			seen[n] = true
		}
	}
	if served > 10 {
		t.Errorf("%d numbers took %d reservations", len(seen), served)
	}
}
