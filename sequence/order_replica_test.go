package sequence_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
	"seqproxy/test/history"
)

// An old primary that is cut off and lives on could give numbers after those of the new one; where
// the replica has to confirm, it gives none.
func TestAnIsolatedPrimaryGivesNoOrderedNumberBehindTheNewOnes(t *testing.T) {
	e := startEstate(t, 3)
	lax := func(o *sequence.Options) { o.OrderWithoutReplica = true }
	all := &given{}
	old, fresh, careless := e.join(t, "old", all), e.join(t, "new", all), e.join(t, "careless", all, lax)
	mustCreate(t, old.Sequences, sequence.CreateOptions{Name: "photos", Order: true})
	var h, broken history.History
	take := func(m *member, who string) error {
		t.Helper()
		var first uint64
		err := h.Record(who, func() (uint64, uint64, error) {
			var err error
			first, err = m.Take(t.Context(), []byte("photos"), 1)
			return first, first, err
		})
		if err == nil {
			_ = broken.Record(who, func() (uint64, uint64, error) { return first, first, nil })
		}
		return err
	}
	for range 5 {
		for who, m := range map[string]*member{"old": old, "new": fresh, "careless": careless} {
			if err := take(m, who); err != nil {
				t.Fatalf("%s: %v", who, err)
			}
		}
	}
	e.CatchUp(t, 1, 0)
	e.CatchUp(t, 2, 0)
	old.cut(1, 2) // they see only the old primary, and the other one only the others
	careless.cut(1, 2)
	old.waits(2 * time.Second)
	refused := func() {
		t.Helper()
		refusedWith(t, func() error { return take(old, "old") }, "home of this ORDER sequence", "order_requires_replica", e.linkOf(old, 1))
	}
	refused()
	fresh.cut(0)
	e.Promote(t, 1)
	e.Follow(t, 2, 1)
	if err := take(fresh, "new"); err != nil {
		t.Fatal(err)
	}
	refused()
	if err := take(fresh, "new"); err != nil {
		t.Fatal(err)
	}
	if err := h.Check(); err != nil {
		t.Error(err)
	}

	// The reason for the option.
	number, err := careless.Take(t.Context(), []byte("photos"), 1)
	if err != nil {
		t.Fatalf("a proxy that may continue without the replica: got %v, want no error", err)
	}
	_ = broken.Record("careless", func() (uint64, uint64, error) { return number, number, nil })
	if err := broken.Check(); err == nil || !strings.Contains(err.Error(), "not in the order of time") {
		t.Errorf("without the replica %d was given: got %v, want it to be out of order", number, err)
	}

	// The configuration counts at once, both ways.
	old.Tune(sequence.Tuning{AllocateTimeout: usualPatience, OrderWithoutReplica: true})
	if _, err := old.Take(t.Context(), []byte("photos"), 1); err != nil {
		t.Errorf("a proxy that is configured to continue without the replica: got %v, want no error", err)
	}
	old.Tune(sequence.Tuning{AllocateTimeout: 2 * time.Second})
	refused()

	// It is reachable again: numbers go on by themselves.
	old.links[1].Mend()
	old.links[2].Mend()
	e.Nodes[0].Exec(t, "SET GLOBAL read_only = 1")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if err := take(old, "old"); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}

// Numbers that such a proxy discards are counted as reserved and unused: so the numbers of its
// reservations are those that it counts.
func TestOrderedNumbersThatMustNotBeGivenAreCountedAsUnused(t *testing.T) {
	e := startEstate(t, 2)
	core, logs := observer.New(zap.DebugLevel)
	m := e.join(t, "m", &given{}, func(o *sequence.Options) { o.Logger = zap.New(core) })
	mustCreate(t, m.Sequences, sequence.CreateOptions{Name: "photos", Order: true})
	m.take(t, "m", "photos", 5)
	m.cut(1)
	m.waits(2 * time.Second)
	if number, err := m.Take(t.Context(), []byte("photos"), 1); err == nil {
		t.Fatalf("%d was given, though the replica is not seen", number)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var reserved uint64
	for _, line := range logs.FilterMessage("numbers reserved").FilterField(zap.String("sequence", "photos")).All() {
		reserved += line.ContextMap()["reserved"].(uint64)
	}
	st := statsOf(t, m.Sequences, "photos")
	unseen := st.Unused[stats.UnusedRefused] + st.Unused[stats.UnusedUnknownCommit]
	if reserved == 0 || unseen == 0 || reserved+unseen != st.Reserved {
		t.Errorf("reservations of %d numbers were logged, %d are counted as not made sure of, and %d as reserved", reserved, unseen, st.Reserved)
	}
	checkSums(t, m.Sequences)
}

// Numbers were reserved on a primary that lives on alone, while another request has found the new
// one. That the new one is the holder says nothing about them.
func TestOrderedNumbersOfTheNodeBeforeAreNotGiven(t *testing.T) {
	e := startEstate(t, 3)
	m, fresh := e.join(t, "m", &given{}), e.join(t, "new", &given{})
	mustCreate(t, m.Sequences, sequence.CreateOptions{Name: "photos", Order: true})
	last := mustTake(t, m.Sequences, "photos", 1)
	e.CatchUp(t, 1, 0)
	e.CatchUp(t, 2, 0)
	v := sequence.Inside(m.Sequences).First()
	ceiling, _ := v.Ceilings().Ceiling("photos")
	if ceiling <= last {
		t.Fatalf("after %d its ceiling is %d", last, ceiling)
	}
	taking := store.Taking{Name: "photos", N: 1, Used: v.Rules.Of("photos"), Share: v.Share(), UpTo: limit.UpTo{Grouped: true, Ceiling: ceiling}}
	if err := v.LimitTaking(&taking); err != nil {
		t.Fatal(err)
	}
	reserve := func(conn *sql.Conn) (uint64, error) {
		t.Helper()
		did := v.Take(t.Context(), conn, &taking)
		if did.Outcome == store.OutcomeDone {
			did.Err = v.MayGive(t.Context(), conn, &taking, &did.Stored)
		}
		return did.Last, did.Err
	}
	before, err := v.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if n, err := reserve(before); err != nil || n <= last {
		t.Fatalf("while it is the primary: got %d after %d, %v", n, last, err)
	}

	fresh.cut(0)
	e.Promote(t, 1)
	e.Follow(t, 2, 1)
	last = mustTake(t, fresh.Sequences, "photos", 1)
	next := *sequence.Inside(fresh.Sequences).First().Current()
	next.Node = v.Nodes()[1]
	v.Settle(&next)
	position := func() (id uint64) {
		if err := e.pools[0].QueryRow("SELECT id FROM sequence WHERE name = 'photos'").Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	at := position()
	n, err := reserve(before)
	if err == nil {
		t.Errorf("got %d after %d", n, last)
	} else if !v.IsMoved(err) {
		t.Errorf("got %v, want an error upon which it is tried again", err)
	}
	if position() == at {
		t.Error("nothing was reserved on the node before")
	}
	v.Moved()
	if err := v.Ceilings().StillHolds(t.Context(), before); !v.IsMoved(err) {
		t.Errorf("while another one is looked for: got %v, want an error upon which it is tried again", err)
	}
	e.Nodes[0].Exec(t, "SET GLOBAL read_only = 1")
	if n := mustTake(t, m.Sequences, "photos", 1); n <= last {
		t.Errorf("at last: got %d after %d", n, last)
	}
}
