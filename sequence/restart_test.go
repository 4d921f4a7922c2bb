package sequence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/internal/mysqltest"
)

func down(n uint64) Alteration { return Alteration{Restart: ref(n), Force: true} }

func TestRestartOnlyRaisesUnlessItIsForced(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(100)), p.open(t, steadySize(100))
	wantTaken(t, a, "photos", 1, 2, 3)
	settled(t, a, "photos")
	wantTaken(t, b, "photos", 101)
	settled(t, b, "photos")
	for _, n := range []uint64{0, 1, 200} {
		_, err := a.Alter(context.Background(), []byte("photos"), Alteration{Restart: ref(n)})
		if !errors.Is(err, ErrBadOption) {
			t.Errorf("RESTART WITH %d: got %v, want ErrBadOption", n, err)
		}
		wantText(t, err, "ALTER SEQUENCE `photos` RESTART WITH", "FORCE")
	}
	if got := mustAlter(t, a, "photos", Alteration{Restart: ref(uint64(201))}); got.Next != 201 {
		t.Errorf("got %+v, want 201", got)
	}
	wantTaken(t, a, "photos", 201)
	for _, again := range []uint64{1, 7, 1 << 40, 2} {
		if got := mustAlter(t, a, "photos", down(again)); got.Next != again {
			t.Errorf("got %+v, want %d", got, again)
		}
		// Neither has a number left of before, whoever comes first.
		first, second := a, b
		if again == 7 {
			first, second = b, a
		}
		wantTaken(t, first, "photos", again)
		settled(t, first, "photos")
		wantTaken(t, second, "photos", again+100)
		settled(t, second, "photos")
	}
	closeNow(t, a)
	if got := mustTake(t, b, "photos", 1); got != 103 {
		t.Errorf("got %d, want 103", got)
	}
	if proxies, err := b.Proxies(context.Background()); err != nil || len(proxies) != 1 || proxies[0].Held != 98 && proxies[0].Sequences != 1 {
		t.Errorf("after one of two proxies has ended: got %+v, %v; want the other", proxies, err)
	}
}

// What test suites do, and then the cure that the errors and the log name.
func TestTableEmptiedOrLoweredByHandIsCuredByARestart(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(10)), p.open(t, steadySize(10))
	drain := func(s *Sequences) (err error) {
		for range 50 {
			if _, err = s.Take(context.Background(), []byte("photos"), 1); err != nil {
				break
			}
		}
		return err
	}
	for _, s := range []*Sequences{a, b} {
		if err := drain(s); err != nil {
			t.Fatal(err)
		}
		settled(t, s, "photos")
	}
	p.exec(t, "UPDATE sequence SET id = 0")
	last := p.id(t, "photos")
	if err := drain(a); err != nil {
		t.Fatal(err)
	}
	if got := mustTake(t, a, "photos", 1); got <= 60 || a.Stats().Rewinds == 0 {
		t.Errorf("after the row was lowered to %d got %d, want no number again", last, got)
	}
	mustAlter(t, a, "photos", down(1))
	wantTaken(t, a, "photos", 1)
	if got := mustTake(t, b, "photos", 1); got > 30 {
		t.Errorf("after the restart the other proxy gives %d, want a low one", got)
	}

	for _, s := range []*Sequences{a, b} {
		if err := drain(s); err != nil {
			t.Fatal(err)
		}
		settled(t, s, "photos")
	}
	p.exec(t, "TRUNCATE sequence")
	if err := drain(a); !errors.Is(err, ErrUnknown) {
		t.Errorf("after TRUNCATE got %v, want ErrUnknown", err)
	} else {
		wantText(t, err, "its row was deleted", "CREATE SEQUENCE `photos`", "ALTER SEQUENCE `photos` RESTART WITH 1 FORCE")
	}
	made := mustCreate(t, a, CreateOptions{Name: "photos"})
	if !made.Raised {
		t.Errorf("got %+v, want it raised above what was given", made)
	}
	mustAlter(t, a, "photos", down(1))
	wantTaken(t, a, "photos", 1)
	eventually(t, "the other proxy begins again, too", func() bool {
		n, err := b.Take(context.Background(), []byte("photos"), 1)
		return err == nil && n < 30
	})
	if a.Stats().Rewinds > 1 {
		t.Errorf("a restart counts as a row gone back: %+v", a.Stats())
	}
}

func TestRestartWaitsForEveryRegisteredProxy(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a := p.open(t, steadySize(10))
	wantTaken(t, a, "photos", 1)
	settled(t, a, "photos")
	p.exec(t, "INSERT INTO sequence_proxy (id, host, since, heartbeat, version) VALUES ('gone', 'web7, process 12', "+
		"UTC_TIMESTAMP() - INTERVAL 1 DAY, UTC_TIMESTAMP() - INTERVAL 1 HOUR, 3)")
	begin := time.Now()
	_, err := a.Alter(context.Background(), []byte("photos"), down(1))
	var held *HeldError
	if !errors.As(err, &held) || len(held.Proxies) != 1 || held.Proxies[0].ID != "gone" {
		t.Fatalf("got %v, want a HeldError that names the proxy that is gone", err)
	}
	wantText(t, err, "web7, process 12", "silent for 1h0m", "DELETE FROM "+newTable(p.schema, "sequence").proxies+" WHERE id = 'gone'")
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("to find that out took %v; waiting does not help", took)
	}
	if got := mustTake(t, a, "photos", 1); got != 11 {
		t.Errorf("after that got %d, want 11: it continues where it was", got)
	}

	// One that lives, but does not answer.
	p.exec(t, "UPDATE sequence_proxy SET heartbeat = UTC_TIMESTAMP() + INTERVAL 1 HOUR WHERE id = 'gone'")
	ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	if _, err = a.Alter(ctx, []byte("photos"), down(1)); err == nil {
		t.Error("the restart did not wait")
	}
	if got := mustTake(t, a, "photos", 1); got <= 11 {
		t.Errorf("got %d again", got)
	}
	p.exec(t, "DELETE FROM sequence_proxy WHERE id = 'gone'")
	mustAlter(t, a, "photos", down(1))
	wantTaken(t, a, "photos", 1)

	// Its own row is removed: somebody believes that it holds nothing.
	settled(t, a, "photos")
	p.exec(t, "DELETE FROM sequence_proxy")
	eventually(t, "what it held is given up", func() bool { return a.names.get([]byte("photos")).tally().held == 0 })
	if got := mustTake(t, a, "photos", 1); got != 11 {
		t.Errorf("got %d, want 11", got)
	}
	if all, err := a.Proxies(context.Background()); err != nil || len(all) != 1 {
		t.Errorf("got %+v, %v; want it registered again", all, err)
	}
}

// The error about a proxy that may hold numbers says why that is believed, and names the way out.
func TestTheErrorAboutAProxyThatMayHoldNumbersNamesTheWayOut(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a := p.open(t)
	mustTake(t, a, "photos", 1)
	remove := "DELETE FROM " + newTable(p.schema, "sequence").proxies + " WHERE id = 'other'"
	for heartbeat, want := range map[string][]string{
		"UTC_TIMESTAMP(6) + INTERVAL 3 HOUR":   {"in the future", "clock went back", "set that clock right", remove},
		"UTC_TIMESTAMP(6) - INTERVAL 3 HOUR":   {"silent for 3h0m", remove},
		"UTC_TIMESTAMP(6) - INTERVAL 1 SECOND": {"which lives, or did", "try again"}, // on a machine that is so busy that this is long ago it is silent, too
	} {
		p.exec(t, "REPLACE INTO sequence_proxy (id, host, since, heartbeat, version) VALUES ('other', 'web7, process 12', '2031-02-03 04:05:06', "+heartbeat+", 3)")
		all, err := a.Proxies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held := &HeldError{Sequence: "photos", Table: newTable(p.schema, "sequence").proxies}
		for i := range all {
			if all[i].ID == "other" {
				held.Proxies = append(held.Proxies, all[i])
			}
		}
		if len(held.Proxies) == 1 && held.Proxies[0].Stale() && want[0] == "which lives, or did" {
			continue
		}
		wantText(t, held, append(want, "web7, process 12, registered since 2031-02-03 04:05:06 UTC")...)
		if held.Several = true; strings.Contains(held.Error(), "DELETE") {
			wantText(t, held, remove+", on each sequence server")
		}
		if lives := want[0] == "which lives, or did"; lives && strings.Contains(held.Error(), "DELETE") {
			t.Errorf("one that lives is to be removed: %v", held)
		}
	}
}

// A sequence whose restart died is recoverable at once by another restart, and by itself after a minute.
func TestFrozenSequenceContinuesWhereItWas(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 40})
	a := p.open(t, steadySize(10))
	hasty := late{context.Background(), time.Hour} // where what is wanted is the error
	wantTaken(t, a, "photos", 41)
	settled(t, a, "photos")
	freeze := func() {
		t.Helper()
		if _, err := a.servers.first().freeze(context.Background(), "photos", down(1)); err != nil {
			t.Fatal(err)
		}
		if got := p.id(t, "photos"); got != 1<<64-1 {
			t.Fatalf("a frozen row is at %d", got)
		}
		if _, err := p.db.Exec("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'"); err == nil {
			t.Fatal("an application counts in a frozen row")
		}
		var unavailable *UnavailableError
		eventually(t, "nothing is given", func() bool {
			_, err := a.Take(hasty, []byte("photos"), 1)
			return errors.As(err, &unavailable) && errors.Is(err, errFrozen)
		})
	}
	freeze()
	mustAlter(t, a, "photos", Alteration{Restart: ref(uint64(100))})
	wantTaken(t, a, "photos", 100)
	settled(t, a, "photos")

	freeze()
	freeze() // over a frozen one
	mustAlter(t, a, "photos", down(5))
	wantTaken(t, a, "photos", 5)
	settled(t, a, "photos")

	freeze() // and by hand, as docs/operations.md has it
	p.exec(t, "UPDATE sequence JOIN sequence_options AS o USING (name) SET id = o.saved, o.frozen_at = NULL WHERE o.frozen_at IS NOT NULL")
	wantTaken(t, a, "photos", 15)
	settled(t, a, "photos")

	next := uint64(25)
	for _, clock := range []string{"- INTERVAL 2 MINUTE", "+ INTERVAL 3 HOUR"} { // a minute has passed; the server's clock went back meanwhile
		freeze()
		p.exec(t, "UPDATE sequence_options SET frozen_at = frozen_at "+clock)
		eventually(t, "it continues", func() bool {
			n, err := a.Take(context.Background(), []byte("photos"), 1)
			if err == nil && n != next {
				t.Errorf("got %d, want %d", n, next)
			}
			return err == nil
		})
		next += 10
		settled(t, a, "photos")
	}

	freeze()
	if _, err := a.Drop(context.Background(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	if made := mustCreate(t, a, CreateOptions{Name: "photos"}); made.First != next {
		t.Errorf("dropped while frozen and made again: %+v, want %d", made, next)
	}
}

// Proxies count under load, while one after the other restarts the sequence. Numbers of takes that neither begin nor end while a restart
// is under way are unique between two restarts: it is told as done only when nobody gives numbers of before.
func TestRestartUnderLoadNeverRepeatsANumber(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	proxies := []*Sequences{p.open(t, steadySize(20)), p.open(t, steadySize(7)), p.open(t, steadySize(1000))}
	var mu sync.Mutex
	var epoch atomic.Uint64 // odd while a restart is under way
	seen := make(map[[2]uint64]string)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i, s := range proxies {
		for range 2 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if i == 2 {
						time.Sleep(time.Millisecond) // it has much in memory when a restart comes
					}
					began := epoch.Load()
					n, err := s.Take(context.Background(), []byte("photos"), 1)
					if err != nil {
						continue // frozen for long
					}
					mu.Lock()
					if key := [2]uint64{began, n}; began%2 == 0 && epoch.Load() == began {
						if by, twice := seen[key]; twice {
							t.Errorf("after %d restarts %d was given by %s and by proxy %d", began/2, n, by, i)
						}
						seen[key] = fmt.Sprintf("proxy %d", i)
					}
					mu.Unlock()
				}
			})
		}
	}
	for round := range 8 {
		time.Sleep(time.Duration(20+rand.IntN(80)) * time.Millisecond)
		epoch.Add(1)
		if _, err := proxies[round%3].Alter(context.Background(), []byte("photos"), down(1)); err != nil {
			t.Errorf("restart: %v", err)
		}
		epoch.Add(1)
	}
	time.Sleep(50 * time.Millisecond)
	close(stop)
	wg.Wait()
	by := make(map[uint64]int)
	for key := range seen {
		by[key[0]]++
	}
	if len(by) < 5 {
		t.Errorf("numbers were noted between %d restarts, want more: %v", len(by), by)
	}
	for i, s := range proxies {
		if got := s.Stats(); got.Rewinds != 0 {
			t.Errorf("proxy %d: %+v, want no rewind", i, got)
		}
	}
}

// The server is killed at any moment of restarts, and always the sequence goes on, with no number given twice after the last
// restart that was told as done.
func TestRestartSurvivesTheServersCrash(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0})
	a := p.open(t, steadySize(5), patience(10*time.Second))
	b := p.open(t, steadySize(5), patience(10*time.Second))
	for round := range 4 {
		for _, s := range []*Sequences{a, b} {
			mustTake(t, s, "photos", 1)
		}
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			time.Sleep(time.Duration(round*12) * time.Millisecond)
			p.kill(t)
			p.restart(t)
		}()
		_, err := a.Alter(context.Background(), []byte("photos"), down(uint64(1+round)))
		<-killed
		t.Logf("round %d: %v", round, err)
		deadline := time.Now().Add(20 * time.Second)
		for {
			if _, err = a.Alter(context.Background(), []byte("photos"), down(uint64(1+round))); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("RESTART again: %v", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		seen := make(map[uint64]bool)
		for range 20 {
			for _, s := range []*Sequences{a, b} {
				n := mustTake(t, s, "photos", 1)
				if seen[n] || n > 1000 {
					t.Fatalf("round %d: got %d, twice or from before the restart", round, n)
				}
				seen[n] = true
			}
		}
		if !seen[uint64(1+round)] {
			t.Errorf("round %d: %d was not given", round, 1+round)
		}
	}
}

func TestRestartsAtTheSameTimeEndInOne(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	proxies := []*Sequences{p.open(t, steadySize(10)), p.open(t, steadySize(10)), p.open(t, steadySize(10))}
	for round := range 3 {
		var done atomic.Int64
		var wg sync.WaitGroup
		for _, s := range proxies {
			mustTake(t, s, "photos", 1)
			wg.Go(func() {
				switch _, err := s.Alter(context.Background(), []byte("photos"), down(1)); {
				case err == nil:
					done.Add(1)
				case !errors.Is(err, errThawed):
					t.Errorf("got %v, want a word about the other restart", err)
				}
			})
		}
		wg.Wait()
		if done.Load() == 0 {
			t.Errorf("round %d: none of the restarts was done", round)
		}
		var book ledger
		for i := range 60 {
			n := mustTake(t, proxies[i%3], "photos", 1)
			book.add(t, fmt.Sprintf("proxy %d", i%3), n, 1)
			if n > 500 {
				t.Fatalf("round %d: got %d, want a low number", round, n)
			}
		}
	}
}

// Whoever restarts a sequence dies, and only applications that count in its row use it: it continues although no proxy is asked for a number of it.
func TestASequenceThatWasLeftFrozenContinuesWithoutBeingAskedFor(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 41, "albums": 7, "tags": 0})
	s, begun := p.open(t, steadySize(10)), time.Now()
	for name, late := range map[string]bool{"photos": true, "albums": false} {
		if _, err := s.servers.first().freeze(t.Context(), name, down(1)); err != nil {
			t.Fatal(err)
		}
		if late {
			p.exec(t, "UPDATE sequence_options SET frozen_at = frozen_at - INTERVAL 2 MINUTE WHERE name = ?", name)
		}
	}
	s.tending = 1
	mustTake(t, s, "tags", 1)
	eventually(t, "it continues", func() bool { return p.id(t, "photos") == 41 })
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if id := p.id(t, "albums"); id == 7 && time.Since(begun) < thawAfter {
		t.Error("a sequence continues that was frozen just now")
	}
}
