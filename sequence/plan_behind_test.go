package sequence_test

import (
	"context"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// newBehind is an estate of three, and a fourth that was added. The third was lost when it had
// accepted that, and is back: it obeys the old plan.
func newBehind(t *testing.T) (e *planEstate, h *givenEver, s *sequence.Sequences, now sequence.Plan) {
	t.Helper()
	e, h = newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
	s = e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	now = e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	e.everyoneGives(t, h, now, "photos")
	now = e.changeWithout(t, s, sequence.PlanChange{Add: e.addr(3)}, 2, func() {})
	return e, h, s, now
}

// changeWithout makes a change in which a member that stays is lost when it has accepted, and is
// back when the change is in force on the others, after what happens meanwhile.
func (e *planEstate) changeWithout(t *testing.T, s *sequence.Sequences, asked sequence.PlanChange, i int, meanwhile func()) sequence.Plan {
	t.Helper()
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		if step == change.Accepted && address == e.addr(i) {
			e.links[i].Cut()
		}
		return nil
	})
	now := e.change(t, s, asked)
	sequence.Inside(s).OnPlanStep(nil)
	e.wantFrozen(t, i, "photos")
	meanwhile()
	e.links[i].Mend()
	if m := e.member(t, i); m.Plan >= now.Number {
		t.Fatalf("it obeys plan %d although it was away when plan %d was made", m.Plan, now.Number)
	}
	return now
}

// A process stops in the middle of bringing a member up to date, with its transaction's view of it,
// and meanwhile the member comes to a newer plan. Then the process goes on.
func TestAMemberIsNotTakenBackByAProcessThatSlept(t *testing.T) {
	e, h, s, older := newBehind(t)
	ctx := context.Background()
	v, err := sequence.Inside(s).Stranger(e.options(2))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	conn, err := v.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	slept, err := conn.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slept.Rollback() }()
	was, err := v.Plans.Membership(ctx, slept, "")
	if err != nil || was.Plan >= older.Number {
		t.Fatalf("got %+v, %v", was, err)
	}
	now := e.change(t, s, sequence.PlanChange{Remove: e.addr(3)})
	// As it does before it writes.
	is, err := v.Plans.Membership(ctx, slept, store.ForUpdate)
	if err != nil && !link.IsConflict(err) {
		// MariaDB from 11.6.2 on refuses to lock what has changed since.
		t.Error(err)
	}
	if err == nil && is.Plan != now.Number {
		t.Errorf("it finds plan %d, by which it would bring the member back to plan %d from plan %d", is.Plan, older.Number, now.Number)
	}
	if err := slept.Commit(); err != nil {
		t.Fatal(err)
	}
	e.everyoneGives(t, h, now, "photos")
}
