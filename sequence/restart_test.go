package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/store"
	"seqproxy/test/mysqltest"
)

func down(n uint64) sequence.Alteration { return sequence.Alteration{Restart: ref(n), Force: true} }

// beginAgain restarts a sequence although another proxy is registered, which is declared gone for
// good and is not. db is where proxies are registered.
func beginAgain(t *testing.T, db *sql.DB, s *sequence.Sequences, name string, n uint64) {
	t.Helper()
	within(t, 2*time.Minute, name+" begins again", func() bool {
		if _, err := db.Exec("DELETE FROM sequence_proxy WHERE id <> ?", sequence.Inside(s).ID()); err != nil {
			t.Log(err)
			return false
		}
		_, err := s.Alter(t.Context(), []byte(name), down(n))
		if err != nil {
			t.Log(err) // the other one was faster
		}
		return err == nil
	})
}

// wantRefused wants a restart of a sequence refused because of others, and returns the error.
func wantRefused(t *testing.T, s *sequence.Sequences, name string, others ...string) error {
	t.Helper()
	_, err := s.Alter(t.Context(), []byte(name), down(1))
	var refused *sequence.RegisteredError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a RegisteredError", err)
	}
	var named []string
	for _, p := range refused.Proxies {
		named = append(named, p.ID)
	}
	slices.Sort(named)
	slices.Sort(others)
	if !slices.Equal(named, others) {
		t.Errorf("the error names %q, want %q", named, others)
	}
	return err
}

func TestRestartOnlyRaisesUnlessItIsForced(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a := p.open(t, steadySize(100))
	wantTaken(t, a, "photos", 1, 2, 3)
	settled(t, a, "photos")
	for _, n := range []uint64{0, 1, 100} {
		_, err := a.Alter(t.Context(), []byte("photos"), sequence.Alteration{Restart: ref(n)})
		if !errors.Is(err, define.ErrBadOption) {
			t.Errorf("RESTART WITH %d: got %v, want ErrBadOption", n, err)
		}
		wantText(t, err, "ALTER SEQUENCE `photos` RESTART WITH", "FORCE")
	}
	if got := mustAlter(t, a, "photos", sequence.Alteration{Restart: ref(uint64(101))}); got.Next != 101 {
		t.Errorf("got %+v, want 101", got)
	}
	wantTaken(t, a, "photos", 101)
	for _, again := range []uint64{1, 7, 1 << 40, 2} {
		settled(t, a, "photos")
		if got := mustAlter(t, a, "photos", down(again)); got.Next != again {
			t.Errorf("got %+v, want %d", got, again)
		}
		wantTaken(t, a, "photos", again, again+1) // it has no number from before in its cache
	}
	if got := rewinds(a); got != 0 {
		t.Errorf("got %d rewinds, want none", got)
	}
}

// A sequence does not restart while another proxy is registered, which may have cached numbers:
// whether that one lives, is silent, or has died.
func TestASequenceDoesNotBeginAgainBesideAnotherProxy(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(10)), p.open(t, steadySize(10))
	wantTaken(t, a, "photos", 1)
	settled(t, a, "photos")
	mustAlter(t, a, "photos", down(1)) // the other one is not registered: it has no number
	wantTaken(t, a, "photos", 1)
	wantTaken(t, b, "photos", 11)
	err := wantRefused(t, a, "photos", sequence.Inside(b).ID())
	wantText(t, err, "not restarted", "which lives", "stop it first")
	p.exec(t, "INSERT INTO sequence_proxy (id, host, since, heartbeat, version) VALUES ('gone', 'web7, process 12', "+
		"UTC_TIMESTAMP() - INTERVAL 1 DAY, UTC_TIMESTAMP() - INTERVAL 1 HOUR, 3)")
	err = wantRefused(t, a, "photos", sequence.Inside(b).ID(), "gone")
	remove := "DELETE FROM " + store.NewTable(p.schema, "sequence").Proxies + " WHERE id = 'gone'"
	wantText(t, err, "web7, process 12", "silent for 1h0m", remove)
	if got := mustTake(t, a, "photos", 1); got != 2 {
		t.Errorf("after that got %d, want 2: it continues where it was", got)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, a, "photos", "gone")
	p.exec(t, remove)
	mustAlter(t, a, "photos", down(1))
	wantTaken(t, a, "photos", 1)
}

// A proxy registers while a sequence restarts. It registers before the restart, which is refused
// then, or after it, and takes numbers from the new start.
func TestAProxyThatRegistersWhileASequenceBeginsAgainTakesNoNumberOfBefore(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 5000})
	a := p.open(t, steadySize(10))
	mustTake(t, a, "photos", 1)
	restarts := 0
	for round := range 12 {
		b := p.open(t, steadySize(10))
		took := make(chan uint64, 1)
		go func() {
			time.Sleep(time.Duration(round) * time.Millisecond)
			n, err := b.Take(context.Background(), []byte("photos"), 1)
			if err != nil {
				t.Error(err)
			}
			took <- n
		}()
		_, err := a.Alter(t.Context(), []byte("photos"), down(1))
		var refused *sequence.RegisteredError
		n := <-took
		switch {
		case err == nil:
			restarts++
			h := newGivenEver()
			h.add(t, "photos", n)
			for range 30 {
				h.add(t, "photos", mustTake(t, a, "photos", 1))
			}
			if n > 1000 {
				t.Errorf("round %d: it began again, and the other proxy has %d", round, n)
			}
		case !errors.As(err, &refused):
			t.Errorf("round %d: got %v, want a RegisteredError", round, err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustAlter(t, a, "photos", sequence.Alteration{Restart: ref(p.id(t, "photos") + 5000)})
		mustTake(t, a, "photos", 1)
	}
	t.Logf("%d of 12 times it began again", restarts)
}

// A proxy whose entry is gone discards its cached numbers, and reserves nothing before it has a new
// entry.
func TestAProxyWithoutAnEntryReservesNothing(t *testing.T) {
	for name, order := range map[string]bool{"cached": false, "ORDER": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
			s := p.open(t, steadySize(10))
			if order {
				mustAlter(t, s, "photos", sequence.Alteration{Order: ref(true)})
			}
			mustTake(t, s, "photos", 1)
			settled(t, s, "photos")
			v := sequence.Inside(s).First()
			for range 2 { // once more, when it knows the ORDER sequence
				sequence.Inside(s).StopFollowing() // so that no heartbeat notices
				p.exec(t, "DELETE FROM sequence_proxy")
				g, err := v.Reserve(t.Context(), "photos", 5, 5)
				if !errors.Is(err, store.OutcomeUnlisted) || g.Seg.Remaining() > 0 {
					t.Errorf("got %+v, %v; want that the entry is gone", g, err)
				}
				sequence.Inside(s).FollowAgain()
				eventually(t, "what it held is given up, and it is registered again", func() bool {
					return registeredOn(t, p, s) && sequence.Inside(s).Cached("photos") == 0
				})
				mustTake(t, s, "photos", 1)
				settled(t, s, "photos")
			}
		})
	}
}

// An account that may not write the list of proxies gives no numbers.
func TestAnAccountThatMayNotRegisterGivesNoNumbers(t *testing.T) {
	p := newPlace(t).withAll(t, map[string]uint64{"photos": 7})
	at := p.id(t, "photos")
	as := p.user(t, "SELECT")
	for _, table := range []string{"sequence", "sequence_options"} {
		p.grant(t, as, "INSERT, UPDATE, DELETE", table)
	}
	s := p.open(t, as)
	_, err := s.Take(t.Context(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %v, want ErrUnfit", err)
	}
	wantText(t, err, "sequence_proxy", "gives no numbers", "GRANT")
	if got := p.id(t, "photos"); got != at {
		t.Errorf("the row has moved from %d to %d", at, got)
	}
}

// The server is killed at any moment of restarts: the sequence always continues, and gives no
// number twice after the last complete restart.
func TestRestartSurvivesTheServersCrash(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0})
	a := p.open(t, steadySize(5), patience(10*time.Second))
	for round := range 4 {
		mustTake(t, a, "photos", 1)
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			time.Sleep(time.Duration(round*3) * time.Millisecond)
			p.kill(t)
			p.restart(t)
		}()
		_, err := a.Alter(context.Background(), []byte("photos"), down(uint64(1+round)))
		<-killed
		t.Logf("round %d: %v", round, err)
		within(t, time.Minute, "it begins again", func() bool {
			_, err := a.Alter(t.Context(), []byte("photos"), down(uint64(1+round)))
			return err == nil
		})
		h := newGivenEver()
		for range 40 {
			n := mustTake(t, a, "photos", 1)
			h.add(t, "photos", n)
			if n > 1000 {
				t.Fatalf("round %d: got %d from before the restart", round, n)
			}
		}
	}
}

// What test suites do, and then the cure that the errors and the log name.
func TestTableEmptiedOrLoweredByHandIsCuredByARestart(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a := p.open(t, steadySize(10))
	drain := func() (err error) {
		for range 50 {
			if _, err = a.Take(t.Context(), []byte("photos"), 1); err != nil {
				break
			}
		}
		return err
	}
	if err := drain(); err != nil {
		t.Fatal(err)
	}
	settled(t, a, "photos")
	p.exec(t, "UPDATE sequence SET id = 0")
	if err := drain(); err != nil {
		t.Fatal(err)
	}
	if got := mustTake(t, a, "photos", 1); got <= 60 || rewinds(a) == 0 {
		t.Errorf("after the row was lowered got %d, want no number again", got)
	}
	mustAlter(t, a, "photos", down(1))
	wantTaken(t, a, "photos", 1)

	if err := drain(); err != nil {
		t.Fatal(err)
	}
	settled(t, a, "photos")
	p.exec(t, "TRUNCATE sequence")
	if err := drain(); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("after TRUNCATE got %v, want ErrUnknown", err)
	} else {
		wantText(t, err, "its row was deleted", "CREATE SEQUENCE `photos`", "ALTER SEQUENCE `photos` RESTART WITH 1 FORCE")
	}
	if made := mustCreate(t, a, sequence.CreateOptions{Name: "photos"}); !made.Raised {
		t.Errorf("got %+v, want it raised above what was given", made)
	}
	mustAlter(t, a, "photos", down(1))
	wantTaken(t, a, "photos", 1)
	if rewinds(a) > 1 {
		t.Errorf("a restart counts as a row gone back: %d", rewinds(a))
	}
}

// The error about a proxy that may have cached numbers says why, and names the way out.
func TestTheErrorAboutAProxyThatMayHoldNumbersNamesTheWayOut(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a := p.open(t)
	mustTake(t, a, "photos", 1)
	remove := "DELETE FROM " + store.NewTable(p.schema, "sequence").Proxies + " WHERE id = 'other'"
	for heartbeat, want := range map[string][]string{
		"UTC_TIMESTAMP(6) + INTERVAL 3 HOUR": {"in the future", "clock went back", "set that clock right", remove},
		"UTC_TIMESTAMP(6) - INTERVAL 3 HOUR": {"silent for 3h0m", remove},
		// on a machine so busy that this is long ago it is silent too
		"UTC_TIMESTAMP(6) - INTERVAL 1 SECOND": {"which lives, or did", "try again"},
	} {
		p.exec(t, "REPLACE INTO sequence_proxy (id, host, since, heartbeat, version) VALUES ('other', 'web7, process 12', '2031-02-03 04:05:06', "+heartbeat+", 3)")
		all, err := sequence.Inside(a).Proxies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cached := &sequence.CachedError{Sequence: "photos", Table: store.NewTable(p.schema, "sequence").Proxies}
		for i := range all {
			if all[i].ID == "other" {
				cached.Proxies = append(cached.Proxies, all[i])
			}
		}
		if len(cached.Proxies) == 1 && cached.Proxies[0].Stale() && want[0] == "which lives, or did" {
			continue
		}
		wantText(t, cached, append(want, "web7, process 12, registered since 2031-02-03 04:05:06 UTC")...)
		if cached.Several = true; strings.Contains(cached.Error(), "DELETE") {
			wantText(t, cached, remove+", on each sequence server")
		}
		if lives := want[0] == "which lives, or did"; lives && strings.Contains(cached.Error(), "DELETE") {
			t.Errorf("one that lives is to be removed: %v", cached)
		}
	}
}
