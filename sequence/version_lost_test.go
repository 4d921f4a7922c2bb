package sequence_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seqproxy/sequence"
)

// ahead is by how much the clock of the old primary is wrong, in the unit of versions.
const ahead = uint64(3 * time.Hour / time.Microsecond)

// lossy is a group whose primary is about to be lost with all that the replica does not have. Its
// clock was ahead at the last change that the replica knows.
type lossy struct {
	*estate
	a, b    *member // b lives on, and has cached numbers
	version uint64  // that both nodes have
	change  []func(*sequence.Options)
}

func newLossy(t *testing.T, change ...func(*sequence.Options)) *lossy {
	t.Helper()
	e := &lossy{estate: startEstate(t, 2, "photos", "users"), change: append(change, steadySize(10), patience(time.Minute))}
	e.a, e.b = e.join(t, "a", &given{}, e.change...), e.join(t, "b", &given{}, e.change...)
	cache := uint64(10)
	for _, name := range []string{"photos", "users"} {
		e.a.take(t, "a", name, 1)
		if _, err := e.a.Alter(t.Context(), []byte(name), sequence.Alteration{Cache: &cache}); err != nil {
			t.Fatal(err)
		}
		e.a.given, e.b.given = &given{}, &given{}
	}
	e.run(t, 0, "UPDATE sequence_options SET version = version + ? WHERE version > 0", ahead)
	e.run(t, 0, "UPDATE sequence_version SET version = version + ?", ahead)
	if err := e.pools[0].QueryRow("SELECT version FROM sequence_version").Scan(&e.version); err != nil {
		t.Fatal(err)
	}
	mustTake(t, e.b.Sequences, "photos", 1)
	settled(t, e.b.Sequences, "photos")
	within(t, time.Minute, "both proxies have confirmed what they obey", func() bool {
		var confirmed int
		err := e.pools[0].QueryRow("SELECT COUNT(*) FROM sequence_proxy WHERE version = ?", e.version).Scan(&confirmed)
		return err == nil && confirmed == 2
	})
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	return e
}

func (e *lossy) run(t *testing.T, node int, text string, args ...any) {
	t.Helper()
	if _, err := e.pools[node].Exec(text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// stopRounds keeps b from seeing changes until the returned function is called.
func (e *lossy) stopRounds() (goOn func()) {
	sequence.Inside(e.b.Sequences).StopFollowing()
	return sequence.Inside(e.b.Sequences).FollowAgain
}

// failOver ends the old primary, and returns a proxy that knows nothing of it.
func (e *lossy) failOver(t *testing.T) *member {
	t.Helper()
	e.pools[0].SetMaxIdleConns(0) // the test's own connections end in order
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	fresh := e.join(t, "fresh", &given{}, e.change...)
	sequence.Inside(fresh.Sequences).ChangeTiming(func(t *sequence.Timing) { t.Tenure = 0 }) // both others are registered on the replica
	within(t, time.Minute, "the new primary serves", func() bool {
		_, err := fresh.Take(t.Context(), []byte("users"), 1)
		return err == nil
	})
	return fresh
}

// confirmOrder makes a sequence an ORDER sequence, and tries until that is confirmed.
func confirmOrder(t *testing.T, s *sequence.Sequences) error {
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline) && t.Context().Err() == nil; time.Sleep(50 * time.Millisecond) {
		if _, err = s.Alter(t.Context(), []byte("photos"), sequence.Alteration{Order: ref(true)}); err == nil {
			return nil
		}
	}
	return err
}

// orderLater returns when the sequence is changed, and reports when its ORDER is confirmed.
func (e *lossy) orderLater(t *testing.T, fresh *member) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- confirmOrder(t, fresh.Sequences) }()
	within(t, time.Minute, "the sequence is changed", func() bool {
		var ordered int
		err := e.pools[1].QueryRow("SELECT COUNT(*) FROM sequence_options WHERE ordered").Scan(&ordered)
		return err == nil && ordered == 1
	})
	return done
}

// wantOrdered takes of both an ORDER sequence: each number is above all before it.
func (e *lossy) wantOrdered(t *testing.T, fresh *member) {
	t.Helper()
	last := uint64(0)
	for range 10 {
		for _, s := range []*sequence.Sequences{fresh.Sequences, e.b.Sequences} {
			n := mustTake(t, s, "photos", 1)
			if n <= last {
				t.Errorf("got %d after %d", n, last)
			}
			last = n
		}
	}
}

// wantAnew takes of both after a restart: no number comes twice.
func (e *lossy) wantAnew(t *testing.T, fresh *member) {
	t.Helper()
	h := newGivenEver()
	for range 60 {
		h.add(t, "photos", mustTake(t, fresh.Sequences, "photos", 1))
	}
	for range 5 {
		h.add(t, "photos", mustTake(t, e.b.Sequences, "photos", 1))
	}
}

// A proxy has just read the last version on the old primary, and confirms it to the new one. There
// a sequence becomes an ORDER sequence under a lower version: that waits until the proxy has seen
// that change.
func TestAVersionThatWasReadOnALostPrimaryIsNotToldToTheNewOne(t *testing.T) {
	e := newLossy(t, func(o *sequence.Options) { o.OrderWithoutReplica = true })
	goOn := e.stopRounds()
	defer func() { goOn() }()
	v := sequence.Inside(e.b.Sequences).First()
	cache := uint64(11)
	if _, err := e.a.Alter(t.Context(), []byte("users"), sequence.Alteration{Cache: &cache}); err != nil {
		t.Fatal(err)
	}
	heard, err := v.Hear(t.Context())
	if err != nil || heard.Version <= e.version {
		t.Fatalf("read %+v, %v; want a version above %d", heard, err, e.version)
	}
	fresh := e.failOver(t)
	done := e.orderLater(t, fresh)
	within(t, time.Minute, "the proxy gives a sign of life to the new primary", func() bool {
		return v.Obey(t.Context(), heard) == nil
	})
	select {
	case err := <-done:
		t.Errorf("ORDER was confirmed before all proxies knew (%v)", err)
	case <-time.After(3 * time.Second): // time enough to find it in most runs, if it is so
		goOn()
		goOn = func() {}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	e.wantOrdered(t, fresh)
}

// A change of the old primary, which a proxy obeys, is lost, and the next one of the new primary
// has the same version.
func TestAChangeThatHasTheVersionOfALostOneIsObeyed(t *testing.T) {
	e := newLossy(t, func(o *sequence.Options) { o.OrderWithoutReplica = true })
	cache := uint64(11)
	if _, err := e.a.Alter(t.Context(), []byte("users"), sequence.Alteration{Cache: &cache}); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "the proxy obeys it", func() bool {
		var version uint64
		err := e.pools[0].QueryRow("SELECT version FROM sequence_proxy WHERE id = ?", sequence.Inside(e.b.Sequences).First().Registry.ID).Scan(&version)
		return err == nil && version > e.version
	})
	goOn := e.stopRounds()
	defer func() { goOn() }()
	fresh := e.failOver(t)
	done := e.orderLater(t, fresh)
	goOn()
	goOn = func() {}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	e.wantOrdered(t, fresh)
}

// A restart under a clock that was ahead is lost. A proxy that does not know of it restarts the
// sequence once more, or makes it an ORDER sequence: a proxy from before gives no cached number of
// it any more.
func TestAChangeAfterALostOneOfALaterTimeIsObeyed(t *testing.T) {
	for _, then := range []string{"it begins again", "it becomes an ORDER sequence"} {
		t.Run(then, func(t *testing.T) {
			e := newLossy(t, func(o *sequence.Options) { o.OrderWithoutReplica = true })
			beginAgain(t, e.pools[0], e.a.Sequences, "photos", 1)
			e.run(t, 0, "UPDATE sequence_options SET epoch = epoch + ? WHERE name = 'photos'", 2*ahead)
			e.run(t, 0, "UPDATE sequence_options SET version = version + ? WHERE name = 'photos'", 2*ahead)
			e.run(t, 0, "UPDATE sequence_version SET version = version + ?", 2*ahead)
			within(t, time.Minute, "the proxy obeys it", func() bool {
				var version uint64
				err := e.pools[0].QueryRow("SELECT version FROM sequence_proxy WHERE id = ?", sequence.Inside(e.b.Sequences).First().Registry.ID).Scan(&version)
				return err == nil && version > e.version+ahead
			})
			for range 25 {
				mustTake(t, e.b.Sequences, "photos", 1)
			}
			settled(t, e.b.Sequences, "photos")
			fresh := e.failOver(t)
			if then == "it begins again" {
				beginAgain(t, e.pools[1], fresh.Sequences, "photos", 1)
				within(t, time.Minute, "the other proxy has heard of it", func() bool { return sequence.Inside(e.b.Sequences).Cached("photos") == 0 })
				e.wantAnew(t, fresh)
				return
			}
			if err := confirmOrder(t, fresh.Sequences); err != nil {
				t.Fatal(err)
			}
			e.wantOrdered(t, fresh)
		})
	}
}

// The tables of sequences are restored from a backup, and not that of the proxies, in which one
// confirms a change that is lost. That one hangs: ORDER is not confirmed before it has seen the
// change.
func TestAVersionThatWasToldBeforeTheTableWasRestoredCountsForNothing(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(10)), p.open(t, steadySize(10))
	mustAlter(t, a, "photos", sequence.Alteration{Cache: ref(uint64(10))})
	p.exec(t, "CREATE TABLE old_options AS SELECT * FROM sequence_options")
	p.exec(t, "CREATE TABLE old_version AS SELECT * FROM sequence_version")
	mustTake(t, b, "photos", 1)
	settled(t, b, "photos")
	p.exec(t, "UPDATE sequence_options SET version = version + ?", ahead)
	p.exec(t, "UPDATE sequence_version SET version = version + ?", ahead)
	within(t, time.Minute, "the proxy obeys it", func() bool {
		var confirmed int
		err := p.db.QueryRow("SELECT COUNT(*) FROM sequence_proxy, sequence_version AS o WHERE sequence_proxy.version = o.version AND sequence_proxy.id = ?",
			sequence.Inside(b).First().Registry.ID).Scan(&confirmed)
		return err == nil && confirmed == 1
	})
	sequence.Inside(b).StopFollowing()
	p.exec(t, "REPLACE INTO sequence_options SELECT * FROM old_options")
	p.exec(t, "REPLACE INTO sequence_version SELECT * FROM old_version")
	limited, stop := context.WithTimeoutCause(t.Context(), 3*time.Second, errors.New("waited long enough"))
	defer stop()
	if _, err := a.Alter(limited, []byte("photos"), sequence.Alteration{Order: ref(true)}); err == nil {
		t.Error("ORDER was confirmed before all proxies knew")
	}
	sequence.Inside(b).FollowAgain()
	if err := confirmOrder(t, a); err != nil {
		t.Fatal(err)
	}
	last := mustTake(t, a, "photos", 1)
	if n := mustTake(t, b, "photos", 1); n <= last {
		t.Errorf("got %d after %d", n, last)
	}
}
