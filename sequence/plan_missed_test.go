package sequence_test

import (
	"context"
	"testing"

	"seqproxy/sequence"
)

// A member that comes back gets what was made meanwhile, even if the first server that obeys the
// plan has left.
func TestAMemberThatComesBackLearnsNothingFromAServerThatHasLeft(t *testing.T) {
	e := newPlanEstate(t, 4, map[string]uint64{"photos": 100})
	s := e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(3)})
	now := e.changeWithout(t, s, sequence.PlanChange{Remove: e.addr(0)}, 3, func() { mustCreate(t, s, sequence.CreateOptions{Name: "late"}) })
	if err := sequence.Inside(e.open(t)).ReadPlan(context.Background()); err != nil {
		t.Fatal(err)
	}
	if m := e.member(t, 3); m.Plan != now.Number {
		t.Errorf("it obeys plan %d, want %d", m.Plan, now.Number)
	}
	e.places[3].id(t, "late")
}
