package sequence

import (
	"context"
	"testing"
)

// newBehind is an estate of three, and a fourth that was added, of which the third was away when the plan in force was made, and is back: it obeys the one before.
func newBehind(t *testing.T) (e *planEstate, h *givenEver, s *Sequences, now Plan) {
	t.Helper()
	e, h = newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
	s = e.open(t)
	e.change(t, s, PlanChange{Add: e.addr(1)})
	now = e.change(t, s, PlanChange{Add: e.addr(2)})
	e.everyoneGives(t, h, now, "photos")
	e.links[2].Cut()
	now = e.change(t, s, PlanChange{Add: e.addr(3), Force: true, Above: h.high["photos"] + 30})
	e.links[2].Mend()
	if m := e.member(t, 2); m.Plan >= now.Number {
		t.Fatalf("it obeys plan %d although it was away when plan %d was made", m.Plan, now.Number)
	}
	return e, h, s, now
}

// A member is behind the plan in force when a change freezes it, and then a proxy meets it that would have it catch up: its rows stay frozen, since the change goes by what they held.
func TestAMemberThatIsFrozenIsNotBroughtToAnOlderPlan(t *testing.T) {
	for _, step := range []string{planFrozen, "floors", planDecided} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			e, h, s, older := newBehind(t)
			met := false
			s.planHook = func(at, address string) error {
				if at != step || address != e.addr(2) {
					return nil
				}
				met = true
				other := e.open(t)
				known, err := other.Known(context.Background(), []byte("photos"))
				t.Log(known, err) // there may be nobody who can tell
				if got := other.servers.view.Load().plan.Number; got != older.Number {
					t.Errorf("it met the members under plan %d, want %d", got, older.Number)
				}
				for range 4 {
					got, err := e.reserve(t, 2, "photos", 15)
					if err == nil {
						t.Errorf("it gives %d while it is frozen", got)
						h.add(t, "photos", got...)
					}
				}
				return nil
			}
			now := e.change(t, s, PlanChange{Remove: e.addr(3)})
			if !met {
				t.Fatal("the step never came")
			}
			for range 10 {
				e.everyoneGives(t, h, now, "photos")
			}
			e.nothingIsLeft(t, h, "photos")
		})
	}
}

// A process stops in the middle of having a member catch up, with what its transaction has seen of it, and meanwhile the member comes to a newer plan. Then it goes on.
func TestAMemberIsNotTakenBackByAProcessThatSlept(t *testing.T) {
	e, h, s, older := newBehind(t)
	ctx := context.Background()
	o := e.options(2)
	if err := o.setDefaults(); err != nil {
		t.Fatal(err)
	}
	v, err := newServer(s.opts, o, &counters{scores: newScores()}, newMarks())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.close() }()
	conn, err := v.conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	slept, err := conn.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slept.Rollback() }()
	was, _, err := v.membership(ctx, slept)
	if err != nil || was.Plan >= older.Number {
		t.Fatalf("got %+v, %v", was, err)
	}
	now := e.change(t, s, PlanChange{Remove: e.addr(3)})
	if err := v.savePlanFloor(ctx, slept, older.Number, "", 0); err != nil { // as it does next
		t.Fatal(err)
	}
	brought, err := v.bring(ctx, slept, &older, was.ID, known{})
	if err != nil && !isConflict(err) { // MariaDB from 11.6.2 on refuses to lock what has changed since
		t.Error(err)
	}
	if brought {
		t.Errorf("it brought the member from plan %d back to plan %d", now.Number, older.Number)
	}
	if err := slept.Commit(); err != nil {
		t.Fatal(err)
	}
	e.everyoneGives(t, h, now, "photos")
}
