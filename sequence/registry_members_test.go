package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/store"
)

// registeredOn reports whether a proxy is registered on a sequence server.
func registeredOn(t *testing.T, p place, s *sequence.Sequences) bool {
	t.Helper()
	var n int
	err := p.db.QueryRow("SELECT COUNT(*) FROM sequence_proxy WHERE id = ?", sequence.Inside(s).ID()).Scan(&n)
	if err != nil && !strings.Contains(err.Error(), "1146") {
		t.Fatal(err)
	}
	return n == 1
}

// wantCached makes a change that needs proof that no proxy has cached numbers, and wants it refused
// because of one proxy.
func wantCached(t *testing.T, s *sequence.Sequences, name string, a sequence.Alteration, by *sequence.Sequences) {
	t.Helper()
	ctx, stop := context.WithTimeoutCause(t.Context(), 2*time.Second, await.ErrPatience)
	defer stop()
	_, err := s.Alter(ctx, []byte(name), a)
	var cached *sequence.CachedError
	switch {
	case err == nil:
		t.Errorf("%s is changed while a proxy has cached numbers of it, want an error", name)
	case errors.As(err, &cached) && !slices.ContainsFunc(cached.Proxies, func(p sequence.Proxy) bool { return p.ID == sequence.Inside(by).ID() }):
		t.Errorf("got %v, want an error about that proxy", err)
	}
}

// alterAtLast makes a change as soon as all proxies confirm it, one of which may have been silent.
func alterAtLast(t *testing.T, s *sequence.Sequences, name string, a sequence.Alteration) {
	t.Helper()
	within(t, 2*time.Minute, name+" is changed", func() bool {
		_, err := s.Alter(t.Context(), []byte(name), a)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
}

// A proxy with cached numbers sees no change while all sequence servers are replaced. The change
// waits for it all the same.
func TestAProxyThatDoesNotHearOfOtherServersIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name string
		move func(t *testing.T, e *planEstate, a *sequence.Sequences)
	}{
		{"by changes", func(t *testing.T, e *planEstate, a *sequence.Sequences) {
			e.change(t, a, sequence.PlanChange{Add: e.addr(1)})
			e.change(t, a, sequence.PlanChange{Remove: e.addr(0)})
		}},
		{"by changes that others finish", func(t *testing.T, e *planEstate, a *sequence.Sequences) {
			for _, c := range []sequence.PlanChange{{Add: e.addr(1)}, {Remove: e.addr(0)}} {
				died := e.open(t)
				sequence.Inside(died).OnPlanStep(func(step, address string) error {
					if step == change.Accepted {
						return errKilled
					}
					return nil
				})
				if len(sequence.Inside(a).Members()) > 1 {
					eventually(t, "the second coordinator knows both", func() bool {
						err := sequence.Inside(died).MeetPlan(t.Context())
						return err == nil && (len(sequence.Inside(died).Members()) > 1 || sequence.Inside(died).Look(t.Context()) == nil && len(sequence.Inside(died).Members()) > 1)
					})
				}
				if _, err := changeUntil(t.Context(), died, c); err == nil {
					t.Fatal("the coordinator did not die")
				}
				if _, err := a.ChangePlan(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"where the new one was away at the start", func(t *testing.T, e *planEstate, a *sequence.Sequences) {
			sequence.Inside(a).OnPlanStep(func(step, address string) error {
				if step == change.Accepted {
					e.links[1].Cut()
				}
				return nil
			})
			e.change(t, a, sequence.PlanChange{Add: e.addr(1)})
			sequence.Inside(a).OnPlanStep(nil)
			if e.member(t, 1).Plan != 0 {
				t.Fatal("it was started")
			}
			e.links[1].Mend()
			eventually(t, "it is brought to the plan", func() bool {
				_ = sequence.Inside(a).Look(t.Context())
				_, _ = a.Take(t.Context(), []byte("users"), 1)
				return e.member(t, 1).Plan == 1
			})
			e.change(t, a, sequence.PlanChange{Remove: e.addr(0)})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newPlanEstate(t, 2, map[string]uint64{"photos": 0, "users": 0})
			a, b := e.open(t, steadySize(10), patience(30*time.Second)), e.open(t, steadySize(10), patience(30*time.Second))
			for _, name := range []string{"photos", "users"} {
				wantTaken(t, b, name, 1)
				settled(t, b, name)
			}
			sequence.Inside(b).StopFollowing() // it sees no change
			hears := false
			defer func() {
				if !hears {
					sequence.Inside(b).FollowAgain()
				}
			}()
			c.move(t, e, a)
			if !registeredOn(t, e.places[1], b) {
				t.Error("the server does not know of the proxy")
			}
			wantRefused(t, a, "photos", sequence.Inside(b).ID())
			wantCached(t, a, "users", sequence.Alteration{Order: new(true)}, b)
			wantTaken(t, b, "photos", 2)
			hears = true
			sequence.Inside(b).FollowAgain()
			alterAtLast(t, a, "users", sequence.Alteration{Order: new(true)})
			h, last := newGivenEver(), uint64(0)
			for range 30 {
				for _, s := range []*sequence.Sequences{a, b} {
					h.add(t, "photos", mustTake(t, s, "photos", 1))
					n := mustTake(t, s, "users", 1)
					if n <= last {
						t.Errorf("got %d after %d", n, last)
					}
					last = n
				}
			}
		})
	}
}

// A proxy that takes no more numbers is known to servers that are added, and confirms there what it
// obeys. Nobody waits for one that stopped in order.
func TestAProxyIsRegisteredWithAllServersUntilItStops(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 0})
	a, b, idle := e.open(t, steadySize(10), patience(30*time.Second)), e.open(t, steadySize(10)), e.open(t)
	wantTaken(t, b, "photos", 1)
	settled(t, b, "photos")
	if exists, err := idle.Exists(t.Context(), []byte("photos")); !exists || err != nil {
		t.Fatal(exists, err)
	}
	sequence.Inside(idle).StartFollowing()
	e.change(t, a, sequence.PlanChange{Add: e.addr(1)})
	eventually(t, "it has entered itself", func() bool {
		for _, v := range sequence.Inside(b).Members() {
			if !v.Registry.Listed.Load() {
				return false
			}
		}
		return len(sequence.Inside(b).Members()) == 2
	})
	alterAtLast(t, a, "photos", sequence.Alteration{Order: new(true)})
	mustAlter(t, a, "photos", sequence.Alteration{Order: new(false)})
	all, err := sequence.Inside(a).Proxies(t.Context())
	if err != nil || len(all) != 1 || all[0].ID != sequence.Inside(b).ID() {
		t.Errorf("got %+v, %v; want the one proxy that has taken numbers, once", all, err)
	}
	settled(t, b, "photos")

	sequence.Inside(b).StopFollowing() // it stops before it sees the next change
	e.change(t, a, sequence.PlanChange{Add: e.addr(2)})
	if !registeredOn(t, e.places[2], b) {
		t.Error("the third server does not know of the proxy")
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	sequence.Inside(b).FollowAgain()
	for i, p := range e.places {
		if registeredOn(t, p, b) {
			t.Errorf("server %d waits for a proxy that has stopped", i)
		}
	}
	alterAtLast(t, a, "photos", sequence.Alteration{Order: new(true)})
}

// What a server knew of proxies before it was removed is void when it is added again.
func TestAServerThatIsAddedAgainKnowsTheProxiesOfToday(t *testing.T) {
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprintf("away when it was taken out: %t", away), func(t *testing.T) {
			e := newPlanEstate(t, 2, map[string]uint64{"photos": 0})
			a, b := e.open(t, patience(30*time.Second)), e.open(t, steadySize(10))
			wantTaken(t, b, "photos", 1)
			settled(t, b, "photos")
			e.change(t, a, sequence.PlanChange{Add: e.addr(1)})
			was := e.member(t, 0)
			e.change(t, a, sequence.PlanChange{Remove: e.addr(0)})
			if away { // it has not seen that
				e.places[0].exec(t, fmt.Sprintf("UPDATE sequence_member SET plan = %d, count = %d", was.Plan, was.Count))
			}
			eventually(t, "the proxy has heard of it", func() bool {
				members := sequence.Inside(b).Members()
				return len(members) == 1 && members[0].Name() == e.addr(1)
			})
			sequence.Inside(b).StopFollowing()
			e.places[0].exec(t, "UPDATE sequence_proxy SET version = 1 << 62")
			e.places[0].exec(t, "INSERT INTO sequence_proxy (id, host, since, heartbeat, version) VALUES ('gone', 'web7, process 12', UTC_TIMESTAMP(), UTC_TIMESTAMP() - INTERVAL 1 HOUR, 3)")
			e.change(t, a, sequence.PlanChange{Add: e.addr(0)})
			if !registeredOn(t, e.places[0], b) {
				t.Error("it does not know of the proxy")
			}
			wantCached(t, a, "photos", sequence.Alteration{Order: new(true)}, b)
			sequence.Inside(b).FollowAgain()
			alterAtLast(t, a, "photos", sequence.Alteration{Order: new(true)})
			if all, err := sequence.Inside(a).Proxies(t.Context()); err != nil || len(all) != 1 {
				t.Errorf("got %+v, %v; want the one that runs", all, err)
			}
		})
	}
}

// A proxy may be registered with one server alone, which others leave out, or which fails in the
// middle. Then nobody knows who has cached numbers.
func TestAServerThatIsLeftOutIsAskedWhoHoldsNumbers(t *testing.T) {
	f := newFleet(t, 2)
	a, b := f.open(t, blocks(50), steadySize(20), patience(30*time.Second)), f.open(t, blocks(50), steadySize(20))
	for _, name := range []string{"photos", "users"} {
		createOn(t, a, name)
		mustTake(t, b, name, 1)
		settled(t, b, name)
	}
	sequence.Inside(b).StopFollowing()
	only := sequence.Inside(b).Members()[1]
	for i, v := range sequence.Inside(b).Members() {
		switch there := registeredOn(t, f[i], b); {
		case v == only && !there:
			if err := v.Enlist(t.Context()); err != nil {
				t.Fatal(err)
			}
		case v != only && there:
			f[i].exec(t, "DELETE FROM sequence_proxy") // as if it had never registered there
		}
	}
	sequence.Inside(a).StopFollowing()
	out := sequence.Inside(a).Members()[1]
	out.AskAt(time.Now().Add(time.Hour))
	out.LeaveOut(errors.New("it was away"))
	sequence.Inside(a).FollowAgain()
	wantCached(t, a, "photos", sequence.Alteration{Order: new(true)}, b)
	sequence.Inside(b).FollowAgain()
	alterAtLast(t, a, "photos", sequence.Alteration{Order: new(true)})
}

// While a sequence server does not say who is registered there, nothing is confirmed that needs
// proof that no proxy has cached numbers.
func TestNothingIsPromisedWhileAServerDoesNotSayWhoHoldsNumbers(t *testing.T) {
	f := newFleet(t, 2)
	a := f.open(t, blocks(50), steadySize(20), patience(20*time.Second))
	createOn(t, a, "photos")
	mustTake(t, a, "photos", 1)
	settled(t, a, "photos")
	a.Tune(sequence.Tuning{CacheSize: 20, OutageCover: time.Nanosecond, AllocateTimeout: time.Second, CreateTable: true, NoDirectWriters: true})
	conn, err := f[1].db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, text := range []string{fmt.Sprintf(store.CreateProxies, "sequence_proxy"), "LOCK TABLES sequence_proxy WRITE"} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	within(t, 2*time.Minute, "it is said that not all servers answer", func() bool {
		_, err := a.Alter(t.Context(), []byte("photos"), sequence.Alteration{Order: new(true)})
		if err == nil {
			t.Fatal("ORDER is promised")
		}
		t.Log(err)
		return strings.Contains(err.Error(), "not all sequence servers say which proxies may hold numbers")
	})
	if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	alterAtLast(t, a, "photos", sequence.Alteration{Order: new(true)})
}

// A member that does not answer in time does not keep the others from sending and getting what is
// new.
func TestAMemberThatIsHeldUpHoldsUpNoOther(t *testing.T) {
	f := newFleet(t, 2)
	a, b := f.open(t, steadySize(20)), f.open(t, steadySize(20))
	createOn(t, a, "photos")
	mustTake(t, a, "photos", 1)
	eventually(t, "the proxy is registered with both", func() bool { return registeredOn(t, f[0], a) && registeredOn(t, f[1], a) })
	tx, err := f[1].db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var id string
	if err := tx.QueryRow("SELECT id FROM sequence_proxy WHERE id = ? FOR UPDATE", sequence.Inside(a).ID()).Scan(&id); err != nil {
		t.Fatal(err)
	}
	members := sequence.Inside(a).Members()
	for i := range 4 {
		mustAlter(t, b, "photos", sequence.Alteration{Comment: new(fmt.Sprint("no ", i))})
		members[1].Hurry()
		sequence.Inside(a).SeeChanges(t.Context())
		if members[0].Away() {
			t.Fatalf("round %d: the one that answers is left out", i)
		}
	}
	if !members[1].Away() {
		t.Error("the one that was held up is not left out")
	}
}

// One try may take longer than a round where clients wait long for numbers.
func TestAMemberThatHangsKeepsNoOtherFromComingBack(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 0})
	s := e.open(t, patience(time.Minute))
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	mustTake(t, s, "photos", 1)
	members := sequence.Inside(s).Members()
	hanging, err := e.places[2].db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hanging.Close() }()
	if _, err := hanging.ExecContext(t.Context(), "LOCK TABLES sequence_version WRITE"); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = hanging.ExecContext(context.Background(), "UNLOCK TABLES") }()
	members[0].LeaveOut(errors.New("it was away"))
	eventually(t, "the one that answers is asked again, and the one that hangs is not", func() bool {
		return !members[0].Away() && members[2].Away()
	})
}

// A proxy is registered with one member alone, which is removed, reachable or not. The server that
// remains does not restart a sequence.
func TestWhoIsRegisteredWithAMemberThatIsTakenOutKeepsASequenceFromBeginningAgain(t *testing.T) {
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprintf("away: %t", away), func(t *testing.T) {
			e := newPlanEstate(t, 3, map[string]uint64{"photos": 0})
			a, b := e.open(t, patience(30*time.Second)), e.open(t, steadySize(10))
			e.change(t, a, sequence.PlanChange{Add: e.addr(1)})
			e.change(t, a, sequence.PlanChange{Add: e.addr(2)})
			mustTake(t, b, "photos", 1)
			settled(t, b, "photos")
			sequence.Inside(b).StopFollowing() // it sees no change
			defer sequence.Inside(b).FollowAgain()
			for _, p := range e.places {
				p.exec(t, "DELETE FROM sequence_proxy") // as if it had never registered there
			}
			e.places[2].exec(t, "INSERT INTO sequence_proxy (id, host, since, heartbeat, version) VALUES ('"+sequence.Inside(b).ID()+"', 'b', UTC_TIMESTAMP(), UTC_TIMESTAMP() - INTERVAL 1 HOUR, 0)")
			if away {
				e.links[2].Cut()
			}
			e.change(t, a, sequence.PlanChange{Remove: e.addr(2), Force: true})
			e.change(t, a, sequence.PlanChange{Remove: e.addr(1)})
			_, err := a.Alter(t.Context(), []byte("photos"), sequence.Alteration{Restart: new(uint64(1)), Force: true})
			var registered *sequence.RegisteredError
			if !errors.As(err, &registered) || len(registered.Proxies) != 1 {
				t.Fatalf("got %v, want that one proxy may hold numbers", err)
			}
			switch p := registered.Proxies[0]; {
			case !away && p.ID != sequence.Inside(b).ID():
				t.Errorf("got %v, want an error about that proxy", err)
			case away && !strings.Contains(err.Error(), e.addr(2)):
				t.Errorf("got %v, want an error about those that nobody knows", err)
			}
			e.places[0].exec(t, "DELETE FROM sequence_proxy WHERE id = '"+registered.Proxies[0].ID+"'") // as the error says
			if _, err := a.Alter(t.Context(), []byte("photos"), sequence.Alteration{Restart: new(uint64(1)), Force: true}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A round of following that had to wait for another one has its time in full: with the rest of it,
// no member would answer in time, and all would be left out.
func TestARoundThatWaitedForAnotherHasItsTime(t *testing.T) {
	f := newFleet(t, 2)
	a := f.open(t, steadySize(20), longRounds)
	createOn(t, a, "photos")
	mustTake(t, a, "photos", 1)
	in := sequence.Inside(a)
	if err := in.Look(t.Context()); err != nil { // the options are read once
		t.Fatal(err)
	}

	in.StopFollowing()
	ended := make(chan error, 1)
	go func() { ended <- in.Round(t.Context()) }()
	var locked []*sql.Conn
	for i := range 2 {
		conn, err := f[i].db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.ExecContext(t.Context(), "LOCK TABLES sequence_version WRITE, sequence_proxy WRITE"); err != nil {
			t.Fatal(err)
		}
		locked = append(locked, conn)
	}
	time.Sleep(round - 500*time.Millisecond)
	in.FollowAgain()
	time.Sleep(500 * time.Millisecond) // the members answer late, and in time
	for _, conn := range locked {
		if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
