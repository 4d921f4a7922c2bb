package sequence_test

import (
	"context"
	"errors"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
)

// cutAtDecision makes a change in which servers are lost when the last member has accepted.
func (e *planEstate) cutAtDecision(t *testing.T, asked sequence.PlanChange, last int, lost ...int) sequence.Plan {
	t.Helper()
	s := e.open(t)
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		if step == change.Accepted && address == e.addr(last) {
			for _, i := range lost {
				e.links[i].Cut()
			}
		}
		return nil
	})
	return e.change(t, s, asked)
}

// diesAfter begins a change whose coordinator ends after a step on a server, as if it had been
// killed.
func (e *planEstate) diesAfter(t *testing.T, asked sequence.PlanChange, step string, i int) {
	t.Helper()
	s := e.open(t)
	sequence.Inside(s).OnPlanStep(func(at, address string) error {
		if at == step && address == e.addr(i) {
			return errKilled
		}
		return nil
	})
	_, err := changeUntil(t.Context(), s, asked)
	if !errors.Is(err, errKilled) {
		t.Fatalf("got %v, want that the coordinator ends", err)
	}
}

// give has servers give numbers one after another, so many times. They must.
func (e *planEstate) give(t *testing.T, h *givenEver, times int, servers ...int) {
	t.Helper()
	for range times {
		for _, i := range servers {
			got, err := e.reserve(t, i, "photos", 10)
			if err != nil {
				t.Fatal(err)
			}
			h.add(t, "photos", got...)
		}
	}
}

// whoeverGives has the servers that give numbers do so one after another, so many times.
func (e *planEstate) whoeverGives(t *testing.T, h *givenEver, times int) {
	t.Helper()
	for range times {
		for i := range e.places {
			if got, err := e.reserve(t, i, "photos", 10); err == nil {
				h.add(t, "photos", got...)
			}
		}
	}
}

// A removed member is lost at the decision, and does not know that it has left. A change that would
// add it again is aborted: it stays frozen, as it would give the numbers of others.
func TestAMemberThatWasRemovedStaysFrozenWhereItIsNotAddedAgain(t *testing.T) {
	e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.everyoneGives(t, h, e.change(t, s, sequence.PlanChange{Add: e.addr(2)}), "photos")
	e.cutAtDecision(t, sequence.PlanChange{Remove: e.addr(2)}, 1, 2)
	e.wantFrozen(t, 2, "photos")
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(3)})
	e.links[2].Mend()
	e.wantFrozen(t, 2, "photos")

	e.diesAfter(t, sequence.PlanChange{Add: e.addr(2)}, change.Frozen, 2)
	p, err := e.endLeft(context.Background(), e.open(t))
	if err != nil || p.Number != now.Number {
		t.Fatalf("got %+v, %v", p, err)
	}
	e.wantFrozen(t, 2, "photos")
	e.whoeverGives(t, h, 3)
}

// A member was brought to a plan, and never saw the decision of an older change that it had
// accepted. That is no veto: a member that this change removed stays frozen.
func TestAMemberThatWasOvertakenVetoesNoOlderChange(t *testing.T) {
	e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	for i := 1; i < 4; i++ {
		e.change(t, s, sequence.PlanChange{Add: e.addr(i)})
	}
	now, err := planOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	e.everyoneGives(t, h, now, "photos")
	e.cutAtDecision(t, sequence.PlanChange{Remove: e.addr(3)}, 2, 1, 3)
	e.wantFrozen(t, 1, "photos")
	e.wantFrozen(t, 3, "photos")
	e.give(t, h, 4, 0, 2) // under the plan without server 3
	admin := e.open(t)
	e.change(t, admin, sequence.PlanChange{Remove: e.addr(1), Force: true})
	e.links[1].Mend()
	e.change(t, e.open(t), sequence.PlanChange{Add: e.addr(1)})
	e.wantFrozen(t, 3, "photos")
	e.links[3].Mend()
	other := e.open(t)
	e.met(t, other)
	e.wantFrozen(t, 3, "photos")
	e.whoeverGives(t, h, 6)
}

// The same, for a proxy that slept while it ended the older change.
func TestWhoSleptTakesNoMemberThatWasOvertakenForAVeto(t *testing.T) {
	e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	for i := 1; i < 4; i++ {
		e.change(t, s, sequence.PlanChange{Add: e.addr(i)})
	}
	now, err := planOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	e.everyoneGives(t, h, now, "photos")
	e.diesAfter(t, sequence.PlanChange{Remove: e.addr(3)}, change.Accepted, 2)
	sleeper := e.open(t)
	_, err = sequence.Inside(sleeper).Coordinate(t.Context(), func(c *change.Coordinator) error {
		_, open, err := c.Current()
		if err != nil || open == nil {
			t.Fatalf("got %v, %v", open, err)
		}
		finisher := e.open(t)
		sequence.Inside(finisher).OnPlanStep(func(step, address string) error {
			if step == sequence.PlanInForce && address == e.addr(0) {
				e.links[1].Cut()
				e.links[3].Cut()
			}
			return nil
		})
		if _, err := e.endLeft(t.Context(), finisher); err == nil {
			t.Log("the finisher reached all")
		}
		e.give(t, h, 4, 0, 2) // under the plan without server 3
		e.change(t, e.open(t), sequence.PlanChange{Remove: e.addr(1), Force: true})
		e.links[1].Mend()
		e.change(t, e.open(t), sequence.PlanChange{Add: e.addr(1)})
		e.links[0].Cut()
		e.links[2].Cut()
		e.links[3].Mend()
		if _, err := c.End(open); !errors.Is(err, change.ErrTakenOver) {
			t.Errorf("got %v, want change.ErrTakenOver", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e.wantFrozen(t, 3, "photos")
}

// A member that stays was restored, and does not know the change. The removed one, which may know
// that it is decided, cannot be asked: all stay frozen.
func TestTheRemovedOneMayTellThatAChangeIsDecided(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.everyoneGives(t, h, e.change(t, s, sequence.PlanChange{Add: e.addr(2)}), "photos")
	restore := e.backUp(t, 0)
	e.cutAtDecision(t, sequence.PlanChange{Remove: e.addr(2)}, 1, 1)
	e.give(t, h, 4, 0)
	restore()
	e.links[2].Cut() // the operator has switched it off
	e.links[1].Mend()
	for range 2 { // who asks leaves no trace that the next one takes for a veto
		_, err := e.endLeft(t.Context(), e.open(t))
		wantText(t, err, "may be decided", "say SEQPROXY REMOVE SEQUENCE SERVER")
		e.wantFrozen(t, 1, "photos")
	}
	e.links[2].Mend()
	p, err := e.endLeft(t.Context(), e.open(t))
	if err != nil || len(p.Members) != 2 {
		t.Fatalf("got %+v, %v; want that it is finished", p, err)
	}
}
