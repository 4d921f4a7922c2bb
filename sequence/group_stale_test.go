package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
)

// A connection to the old node outlives the choice of another one. A takeover that is meant for the
// new primary does not happen there: the old one lives on alone, and would become the holder again,
// with windows that the new one gives, too.
func TestAConnectionThatStillLeadsToTheNodeBeforeTakesNothingOverThere(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	old, between, fresh := e.join(t, "old", all), e.join(t, "between", all), e.join(t, "new", all)
	old.take(t, "old", "photos", 25)
	between.take(t, "between", "photos", 5)
	e.CatchUp(t, 1, 0)
	v := sequence.Inside(between.Sequences).First()
	var conns [3]*sql.Conn
	var err error
	for i := range conns {
		if conns[i], err = v.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	old.cut(1)
	fresh.cut(0)
	old.waits(3 * time.Second)
	between.waits(3 * time.Second)
	e.Promote(t, 1)
	for _, s := range v.Survey(t.Context()) {
		if now := s.Choice(); now.Node == v.Nodes()[1] { // it has found only the new one
			v.Settle(now)
		}
	}
	for _, conn := range conns { // what they were used for has ended
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	err = v.Ceilings().TakeOver(t.Context(), "photos", limit.Holder{})
	t.Log("between:", err)

	var first, second uint64
	for i, term := range []*uint64{&first, &second} {
		if err := e.pools[i].QueryRow("SELECT MAX(`term`) FROM sequence_holder").Scan(term); err != nil {
			t.Fatal(err)
		}
	}
	if first != 1 {
		t.Errorf("the old primary is the holder in term %d, want 1 as before", first)
	}
	for range 5 {
		fresh.take(t, "new", "photos", 40)
	}
	t.Log("old:", old.takeAll(t, "old", "photos", 1000))
	fresh.take(t, "new", "photos", 100)
}

// Two proxies find a group without a holder. One has seen none on the primary when the other makes
// it the holder, and then finds that on the replicas: that is no primary from elsewhere.
func TestTwoProxiesHaveTheFirstPrimaryTakeOverAtTheSameTime(t *testing.T) {
	e := startEstate(t, 3, "photos")
	all := &given{}
	for round := range 10 {
		e.Nodes[0].Exec(t, "DROP TABLE IF EXISTS app.sequence_holder, app.sequence_limit, app.sequence_member, app.sequence_plan, app.sequence_plan_start")
		for _, i := range []int{1, 2} {
			e.CatchUp(t, i, 0)
		}
		late, fast := e.join(t, "late", all), e.join(t, "fast", all)
		for _, i := range []int{1, 2} {
			late.links[i].Delay(10 * time.Millisecond)
		}
		done := make(chan error, 1)
		go func() {
			_, err := late.Take(t.Context(), []byte("photos"), 1)
			done <- err
		}()
		time.Sleep(time.Duration(round) * 33 * time.Millisecond) // at some time it comes exactly between
		fast.take(t, "fast", "photos", 1)
		if err := <-done; err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		takeovers := 0
		for _, m := range []*member{late, fast} {
			takeovers += m.logs.FilterMessage("sequences held by a node").Len() + m.logs.FilterMessage("sequences held by another node").Len()
		}
		if takeovers != 1 {
			t.Errorf("round %d: %d take-overs were logged by both proxies together, want 1", round, takeovers)
		}
		for _, m := range []*member{late, fast} {
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// A proxy sees that the other one of two nodes was taken over after its own, which then dies. The
// other one is not taken over once more for that, because the dead node would have to confirm it.
func TestANodeDoesNotTakeOverFromItsOwnClaim(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	a, b := e.join(t, "a", all), e.join(t, "b", all)
	a.take(t, "a", "photos", 5)
	e.CatchUp(t, 1, 0)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	b.take(t, "b", "photos", 5)
	v := sequence.Inside(b.Sequences).First()
	claim := func() (top limit.Holder) {
		limits, err := v.Limits.Read(t.Context(), v.Pool(), limit.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		return limits.Holder()
	}
	before := claim()
	if err := v.Ceilings().TakeOver(t.Context(), "photos", before); err != nil {
		// What was seen there is this.
		t.Error(err)
	}
	if after := claim(); after != before || before.Term != 2 || !before.Complete {
		t.Errorf("it claims %+v, and claimed %+v", after, before)
	}
	b.take(t, "b", "photos", 200)
}

// Two proxies find that one of two nodes is dead. The slow one has seen that the other node may not
// give numbers yet when the fast one makes it the holder. The dead node would have to confirm a
// second takeover, and until then no client would get a number.
func TestTwoProxiesHaveTheSurvivorOfTwoTakeOverAtTheSameTime(t *testing.T) {
	e := startEstate(t, 2, "photos")
	first := e.join(t, "first", &given{})
	first.take(t, "first", "photos", 5)
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.CatchUp(t, 1, 0)
	a, slow := e.join(t, "a", &given{}), e.join(t, "slow", &given{}) // they reserve nothing
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	pool := e.pools[1]
	var before string
	if err := pool.QueryRow("SELECT `holder` FROM sequence_holder").Scan(&before); err != nil {
		t.Fatal(err)
	}
	takeOver := func(m *member) error {
		return sequence.Inside(m.Sequences).First().Ceilings().TakeOver(t.Context(), "photos", limit.Holder{})
	}
	for _, m := range []*member{a, slow} {
		eventually(t, "it has found the survivor", func() bool { return takeOver(m) == nil })
	}
	slow.links[1].Delay(3 * time.Millisecond)
	took := time.Duration(1)
	for after := time.Duration(0); after < took; after += max(2*time.Millisecond, took/30) {
		// Until the slow one has finished before the other begins.
		for _, text := range []string{"DELETE FROM sequence_holder WHERE `holder` <> ?", "DELETE FROM sequence_limit WHERE `giver` <> ?"} {
			if _, err := pool.Exec(text, before); err != nil {
				t.Fatal(err)
			}
		}
		begin, other := time.Now(), make(chan error, 1)
		go func() {
			time.Sleep(after)
			other <- takeOver(a)
		}()
		err := takeOver(slow)
		took = time.Since(begin)
		if err := errors.Join(err, <-other); err != nil {
			t.Errorf("%s after the slow one: %v", after, err)
		}
		var term, complete uint64
		if err := pool.QueryRow("SELECT `term`, `complete` FROM sequence_holder ORDER BY `term` DESC LIMIT 1").Scan(&term, &complete); err != nil {
			t.Fatal(err)
		}
		if term != 2 || complete != 1 {
			t.Errorf("%s after the slow one: it is the holder in term %d, complete %d: want 2, and 1", after, term, complete)
		}
	}
}

// The view on which a takeover is based may be old when it is written, because a proxy was stopped
// meanwhile. This node was taken over by another proxy, and the other node after it. What this
// proxy knew at first is then not enough for the node to be the holder alone, because both would
// give the same numbers.
func TestATakeOverThatWasPreparedFromAnOldViewIsNotMade(t *testing.T) {
	e := startEstate(t, 2, "photos")
	m := e.join(t, "a", &given{})
	m.take(t, "a", "photos", 5)
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.CatchUp(t, 1, 0)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	late := e.join(t, "late", &given{})
	v := sequence.Inside(late.Sequences).First()
	conn, err := v.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test is over
	now := v.Current()
	group := v.Ceilings().Group(conn, now)
	group.Store = slowStore{group.Store, func() {
		// Meanwhile this node was taken over in term 2, and the other node in term 3, which is why
		// a proxy claims this one in term 4.
		if _, err := conn.ExecContext(t.Context(), "INSERT INTO "+v.Table.Holder+" (`holder`, `term`) VALUES ("+now.Self+", 4)"); err != nil {
			t.Error(err)
		}
	}}
	if _, err := group.TakeOver(t.Context(), "", limit.Holder{}); !errors.Is(err, limit.ErrOvertaken) {
		t.Errorf("got %v, want that it was overtaken", err)
	}
	var term, complete uint64
	if err := e.pools[1].QueryRow("SELECT `term`, `complete` FROM sequence_holder ORDER BY `term` DESC LIMIT 1").Scan(&term, &complete); err != nil {
		t.Fatal(err)
	}
	if term != 4 || complete != 0 {
		t.Errorf("it is the holder in term %d, complete %d: want 4, and 0", term, complete)
	}
}

// slowStore runs a function before a transaction.
type slowStore struct {
	limit.Store
	meanwhile func()
}

func (s slowStore) Transact(ctx context.Context, f func(limit.Tx) error) error {
	s.meanwhile()
	return s.Store.Transact(ctx, f)
}

// A proxy has seen that the other one of two nodes was taken over after this one, which turns out
// to be the primary again, and that node dies. This one still gives the rest below its ceilings.
func TestANodeDoesNotClaimAgainstAnotherThatCannotBeAsked(t *testing.T) {
	e := startEstate(t, 2, "photos")
	a := e.join(t, "a", &given{})
	a.take(t, "a", "photos", 5)
	if err := e.Nodes[1].Kill(); err != nil {
		t.Fatal(err)
	}
	v := sequence.Inside(a.Sequences).First()
	if err := v.Ceilings().TakeOver(t.Context(), "photos", limit.Holder{ID: "the other one", Term: 2}); err == nil || !strings.Contains(err.Error(), "the other one took over after it, in term 2") {
		t.Errorf("got %v, want an error that says why", err)
	}
	a.take(t, "a", "photos", 500)
	e.join(t, "b", a.given).take(t, "b", "photos", 500)
}

// A sequence may be restarted between the look at its position and its first window.
func TestAFirstWindowBeginsWhereTheSequenceStands(t *testing.T) {
	e := startEstate(t, 2, "photos", "late")
	a := e.join(t, "a", &given{})
	a.take(t, "a", "photos", 5)
	v := sequence.Inside(a.Sequences).First()
	conn, err := v.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test is over
	now := v.Current()
	if _, err := conn.ExecContext(t.Context(), "DELETE FROM "+v.Table.Limit+" WHERE `name` = 'late'"); err != nil {
		t.Fatal(err)
	}
	if err := v.Ceilings().Group(conn, now).Store.Want(t.Context(), limit.Holder{ID: now.Holder, Term: 1}, "late", 2000, 1000); err != nil {
		// It was at 1000.
		t.Fatal(err)
	}
	if ok, err := v.Ceilings().Group(conn, now).Admitted(t.Context(), "late"); !ok || err != nil {
		t.Errorf("it gives no numbers of the sequence (%v)", err)
	}
}

// A node was taken over, and dies before its replica has applied where its sequences begin. The
// replica becomes the holder after it, begins at the same numbers, and then applies that: its
// counter goes back to its beginning. The simulation found this; see limit.Record.Admits.
func TestWhereAHolderBeforeBeganMayArriveLate(t *testing.T) {
	e := startEstate(t, 3, "photos")
	all := &given{}
	a, b := e.join(t, "a", all), e.join(t, "b", all)
	a.take(t, "a", "photos", 5)
	e.CatchUp(t, 1, 0)
	e.CatchUp(t, 2, 0)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	e.Follow(t, 2, 1)
	b.take(t, "b", "photos", 40)
	settled(t, b.Sequences, "photos") // it keeps what it has reserved
	eventually(t, "b has seen the row", func() bool {
		var id uint64
		err := e.pools[1].QueryRow("SELECT id FROM sequence WHERE name = 'photos'").Scan(&id)
		return err == nil && sequence.Inside(b.Sequences).First().SeenAt("photos") == id
	})
	late := func() error {
		tx, err := e.pools[1].Begin()
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		for _, text := range []string{
			"UPDATE sequence AS s JOIN sequence_limit AS l ON l.name = s.name AND l.term = 2 SET s.id = l.floor WHERE s.name = 'photos'",
			"INSERT INTO sequence_holder (holder, term, complete) VALUES ('another one', 1, 1)",
			"INSERT INTO sequence_limit (name, giver, term, wanted, floor) SELECT name, 'another one', 1, floor, floor FROM sequence_limit WHERE name = 'photos' AND term = 2",
		} {
			if result, err := tx.Exec(text); err != nil {
				return err
			} else if n, err := result.RowsAffected(); err != nil || n != 1 {
				t.Fatalf("%s: %d rows, %v", text, n, err)
			}
		}
		return tx.Commit()
	}
	eventually(t, "it arrives late", func() bool { // a may ask for numbers in between
		err := late()
		if err != nil && !link.IsConflict(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	time.Sleep(3 * sequence.Inside(b.Sequences).Timing().Follow) // a and b look at the row
	c := e.join(t, "c", all)
	c.take(t, "c", "photos", 40)
	b.take(t, "b", "photos", 40)
	a.wantNothingBack(t)
	b.wantNothingBack(t)
	// A new term has begun, by the process that came first: a wants numbers, too.
	var term int
	if err := e.pools[1].QueryRow("SELECT MAX(term) FROM sequence_holder WHERE complete = 1").Scan(&term); err != nil || term != 3 {
		t.Errorf("the term is %d, %v, want 3", term, err)
	}
}

// A proxy moves a sequence ahead on the primary, above all that was wanted there, and both die. The
// replica has received that, becomes the holder, and gives numbers beyond. Then it applies what it
// has received, and its counter goes back to where it was moved. The simulation shows the same; see
// limitTable.wants.
func TestWhatAPrimaryBeforeMovedAheadMayArriveLate(t *testing.T) {
	for what, move := range map[string]func(s *sequence.Sequences, n uint64) error{
		"SETVAL, REPAIR, RESTART": func(s *sequence.Sequences, n uint64) error {
			return sequence.Inside(s).MoveTo(t.Context(), "photos", n)
		},
		"a key that was chosen": func(s *sequence.Sequences, n uint64) error {
			_, err := sequence.Inside(s).First().RaiseTo(t.Context(), "photos", n, n, math.MaxUint64)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			const above = 100_000
			e := startEstate(t, 3, "photos")
			all := &given{}
			a, mover := e.join(t, "a", all), e.join(t, "mover", all)
			a.take(t, "a", "photos", 5)
			if err := a.Close(t.Context()); err != nil {
				t.Error(err)
			}
			for _, i := range []int{1, 2} {
				e.CatchUp(t, i, 0)
				e.Cut(t, i)
			}
			if err := move(mover.Sequences, above); err != nil {
				t.Fatal(err)
			}
			if err := mover.Close(t.Context()); err != nil {
				t.Error(err)
			}
			e.PromoteLate(t, 1, 0)
			if err := e.Nodes[0].Kill(); err != nil {
				t.Fatal(err)
			}
			e.Follow(t, 2, 1)
			b := e.join(t, "b", all)
			highest := uint64(0)
			for highest < above+5000 {
				n, err := b.Take(t.Context(), []byte("photos"), 1000)
				if err != nil {
					t.Fatal(err)
				}
				highest = n + 999
			}
			if err := b.Close(t.Context()); err != nil { // no process is left that knows
				t.Error(err)
			}
			e.ApplyLate(t, 1)
			var stands uint64
			if err := e.pools[1].QueryRow("SELECT id FROM sequence WHERE name = 'photos'").Scan(&stands); err != nil || stands != above {
				t.Fatalf("the row is at %d (%v), want %d, or this shows nothing", stands, err, above)
			}
			if n, err := e.join(t, "c", all).Take(t.Context(), []byte("photos"), 1); err != nil || n <= highest {
				t.Errorf("got %d, %v, where %d was given before", n, err, highest)
			}
		})
	}
}
