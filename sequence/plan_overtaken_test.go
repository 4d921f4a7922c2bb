package sequence_test

import (
	"context"
	"testing"
	"time"

	"seqproxy/sequence"
)

// overtake makes a change and has another proxy bring all members to the plan as soon as one of
// them obeys it: the coordinator finds that they do. before is called in between.
func (e *planEstate) overtake(t *testing.T, s, other *sequence.Sequences, change sequence.PlanChange, before func(plan uint64)) sequence.Plan {
	t.Helper()
	begun := false
	sequence.Inside(s).OnPlanStep(func(step, _ string) error {
		if step != sequence.PlanInForce || begun {
			return nil
		}
		begun = true
		plan := e.member(t, 0).Plan
		before(plan)
		if err := sequence.Inside(other).ReadPlan(context.Background()); err != nil {
			t.Errorf("learn of plan %d: %v", plan, err)
		}
		for i := range e.places {
			if m := e.member(t, i); m.Plan != plan {
				t.Errorf("server %d obeys plan %d still, want %d", i, m.Plan, plan)
			}
		}
		return nil
	})
	defer func() { sequence.Inside(s).OnPlanStep(nil) }()
	now := e.change(t, s, change)
	if !begun {
		t.Fatal("the coordinator was not overtaken")
	}
	return now
}

// A proxy starts a member before the coordinator does. The others know how far the member may go,
// so one that is alone before its first reservation continues.
func TestAMemberThatIsStartedBeforeItsCoordinatorComesGoesOnAlone(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 0}), newGivenEver()
	patient := patience(30 * time.Second)
	s, other := e.open(t, steadySize(5), patient), e.open(t, patient)
	ceilingsAhead(s, 400)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.overtake(t, s, other, sequence.PlanChange{Add: e.addr(2)}, func(plan uint64) {
		v := sequence.Inside(other).Servers()[2]
		if ceiling, err := v.RecordedCeiling(t.Context(), "photos", plan); err != nil || ceiling != 0 {
			t.Errorf("the ceiling of a member that does not obey the plan yet is %d, %v, want none", ceiling, err)
		}
	})
	for _, alone := range []int{1, 2} {
		for i, l := range e.links {
			if i != alone {
				l.Cut()
			}
		}
		remaining := e.open(t, steadySize(5), patient, e.first(alone))
		ceilingsAhead(remaining, 400)
		got, err := toTheCeiling(t, remaining, h, "photos")
		wantText(t, err, "photos", "ceiling", "SEQPROXY REMOVE SEQUENCE SERVER")
		if got == 0 {
			t.Errorf("server %d alone gave no number, want some up to its ceiling", alone)
		}
		for i, l := range e.links {
			if i != alone {
				l.Mend()
			}
		}
	}

	// The others begin above what it gave.
	e.links[2].Cut()
	e.change(t, s, sequence.PlanChange{Remove: e.addr(2), Force: true})
	takeAll(t, s, h, "photos", 1500)
}

// Another proxy has raised the ceiling since this one read it. The raised one counts when no other
// member can record a higher one.
func TestACeilingThatAnotherProxyRaisedCounts(t *testing.T) {
	e, h := newPlanEstate(t, 2, map[string]uint64{"photos": 0}), newGivenEver()
	patient := patience(30 * time.Second)
	s, other := e.open(t, steadySize(5), patient), e.open(t, steadySize(5), patient)
	ceilingsAhead(s, 100)
	ceilingsAhead(other, 5000)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	takeAll(t, s, h, "photos", 40)
	settled(t, s, "photos")
	takeAll(t, other, h, "photos", 400)
	settled(t, other, "photos")
	e.links[1].Cut()
	takeAll(t, s, h, "photos", 300)
}

// first configures a proxy with all servers, one of them first.
func (e *planEstate) first(i int) func(*sequence.Options) {
	return func(o *sequence.Options) {
		o.Servers = []sequence.ServerOptions{e.options(i)}
		for k := range e.links {
			if k != i {
				o.Servers = append(o.Servers, e.options(k))
			}
		}
	}
}
