package sequence_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence"
	"seqproxy/sequence/store"
)

// isOrdered reads that on the node in use, once there is one.
func (m *member) isOrdered(t *testing.T, name string) bool {
	t.Helper()
	var stored store.Row
	within(t, 2*time.Minute, name+" can be read", func() (ok bool) {
		var err error
		stored, err = sequence.Inside(m.Sequences).First().Look(t.Context(), name)
		return err == nil
	})
	return stored.Def.Order
}

// The statement is answered before the replica has received it, and the primary is lost.
func TestThatASequenceIsOrderedOutlivesAFailOver(t *testing.T) {
	p := &passed{estate: startEstate(t, 2, "photos", "users")}
	a := p.join(t, "a", &given{}, patience(time.Minute))
	lax := p.join(t, "lax", &given{}, patience(time.Minute), func(o *sequence.Options) { o.OrderWithoutReplica = true })
	order := func(m *member, name string) error {
		ctx, stop := context.WithTimeoutCause(t.Context(), 4*time.Second, await.ErrPatience)
		defer stop()
		_, err := m.Alter(ctx, []byte(name), sequence.Alteration{Order: new(true)})
		return err
	}
	becomes := func(m *member, name string) {
		t.Helper()
		eventually(t, name+" becomes an ORDER sequence", func() bool {
			err := order(m, name)
			if err != nil {
				t.Log(err)
			}
			return err == nil
		})
	}
	for _, m := range []*member{a, lax} {
		sequence.Inside(m.Sequences).ChangeTiming(func(t *sequence.Timing) { t.Tenure = 0 }) // both are registered on both nodes
		m.take(t, "before", "photos", 1)
	}
	p.CatchUp(t, 1, 0)
	p.Cut(t, 1)
	refused := false
	eventually(t, "it is said that a fail-over could lose that, unless the one below tells", func() bool {
		err := order(a, "photos")
		refused = err != nil && strings.Contains(err.Error(), "a fail-over could lose")
		return refused || err == nil
	})
	if refused {
		eventually(t, "it is no ORDER sequence", func() bool { return !a.isOrdered(t, "photos") })
		becomes(lax, "users") // where numbers are given without replicas
		p.Mend(t, 1)
		becomes(a, "photos")
	}
	p.failOver(t, 1)
	if !a.isOrdered(t, "photos") {
		t.Error("a fail-over took back what was answered")
	}
}

// The node that took over is asked whether the others have what was written, and has not received
// it itself.
func TestThatASequenceIsOrderedIsNotSaidByANodeThatDoesNotKnow(t *testing.T) {
	p := &passed{estate: startEstate(t, 2, "photos")}
	// Of two nodes one is left.
	a := p.join(t, "a", &given{}, patience(time.Minute), func(o *sequence.Options) { o.OrderWithoutReplica = true })
	a.take(t, "a", "photos", 1)
	p.CatchUp(t, 1, 0)
	p.Cut(t, 1)
	changed, err := sequence.Inside(a.Sequences).AlterOnly(t.Context(), "photos", sequence.Alteration{Order: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	if err := sequence.Inside(a.Sequences).OrderedForGood(t.Context(), &changed); err != nil {
		t.Fatal(err)
	}
	p.failOver(t, 1)
	if a.isOrdered(t, "photos") {
		t.Fatal("the replica knows what was written while it was cut off")
	}
	wantText(t, sequence.Inside(a.Sequences).OrderedForGood(t.Context(), &changed), "is not the ORDER sequence that it was made")
}

// A statement that sets more than ORDER is not confirmed: the sequence then has no ORDER, either.
func TestORDERIsTakenBackWhereTheRESTARTBesideItIsNotConfirmed(t *testing.T) {
	p := &passed{estate: startEstate(t, 2, "photos")}
	a := p.join(t, "a", &given{}, patience(time.Minute))
	a.take(t, "a", "photos", 1)
	p.CatchUp(t, 1, 0)
	p.Cut(t, 1)
	const gone = "INSERT INTO sequence_proxy (id, host, since, heartbeat, version) VALUES ('gone', 'web7, process 12', UTC_TIMESTAMP(), UTC_TIMESTAMP() - INTERVAL 1 HOUR, 3)"
	if _, err := p.pools[0].Exec(gone); err != nil {
		t.Fatal(err)
	}
	to := uint64(100)
	eventually(t, "it is no ORDER sequence after the error", func() bool {
		to += 100
		if err := sequence.Inside(a.Sequences).Change(t.Context(), "photos", sequence.Alteration{Order: ref(false)}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeoutCause(t.Context(), 4*time.Second, await.ErrPatience)
		defer stop()
		_, err := a.Alter(ctx, []byte("photos"), sequence.Alteration{Order: ref(true), Restart: &to})
		if err == nil {
			t.Fatal("it is confirmed, though a fail-over could lose it and a proxy is gone")
		}
		t.Log(err)
		return strings.Contains(err.Error(), "a fail-over could ") && !a.isOrdered(t, "photos")
	})
}

// Of three nodes one may lag, and be promoted: the others show only how far they have come, not
// what it lacks.
func TestThatASequenceIsOrderedIsNotLostByALaggingNode(t *testing.T) {
	e := startEstate(t, 3, "photos")
	a := e.join(t, "a", &given{}, patience(time.Minute))
	sequence.Inside(a.Sequences).ChangeTiming(func(t *sequence.Timing) { t.Tenure = 0 })
	a.take(t, "a", "photos", 1)
	e.CatchUp(t, 1, 0)
	e.CatchUp(t, 2, 0)
	e.Cut(t, 2)
	ctx, stop := context.WithTimeoutCause(t.Context(), 5*time.Second, await.ErrPatience)
	defer stop()
	if _, err := a.Alter(ctx, []byte("photos"), sequence.Alteration{Order: ref(true)}); err == nil {
		t.Error("it is an ORDER sequence, though the next primary may not know that")
	}
	e.Mend(t, 2)
	mustAlter(t, a.Sequences, "photos", sequence.Alteration{Order: ref(true)})
	e.Cut(t, 2)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 2)
	e.Follow(t, 1, 2)
	if !a.isOrdered(t, "photos") {
		t.Error("a fail-over took back what was answered")
	}
}

// A node that lags for seconds, as replicas do, is waited for.
func TestANodeThatLagsIsWaitedForBeforeASequenceIsOrdered(t *testing.T) {
	const name = "photos"
	e := startEstate(t, 2)
	s := openWith(t, sequence.Options{Servers: []sequence.ServerOptions{e.server()}, Tuning: sequence.Tuning{CreateTable: true}})
	sequence.Inside(s).ChangeTiming(func(t *sequence.Timing) { t.Tenure = 0 })
	mustCreate(t, s, sequence.CreateOptions{Name: name})
	mustTake(t, s, name, 1)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	altered := make(chan error, 1)
	go func() {
		_, err := s.Alter(t.Context(), []byte(name), sequence.Alteration{Order: new(true)})
		altered <- err
	}()
	select {
	case err := <-altered:
		t.Errorf("nothing was waited for: %v", err)
		altered <- err
	case <-time.After(2500 * time.Millisecond):
	}
	e.Mend(t, 1)
	if err := <-altered; err != nil {
		t.Error(err)
	}
	wantOrdered(t, s, name, true)
}
