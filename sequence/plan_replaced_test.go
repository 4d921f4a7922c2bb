package sequence_test

import (
	"context"
	"errors"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
)

// A coordinator hangs before it decides. Another one takes over, and before it aborts the change
// the first one wakes. It comes too late for any step: one member would obey the new plan while
// another follows the old one.
func TestACoordinatorThatWasReplacedTakesNoStep(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	e.everyoneGives(t, h, e.change(t, s, sequence.PlanChange{Add: e.addr(1)}), "photos")

	elder := e.open(t)
	stands, goOn := make(chan bool), make(chan bool)
	defer close(goOn)
	sequence.Inside(elder).OnPlanStep(func(step, address string) error {
		if step == change.Frozen && address == e.addr(2) || step == sequence.PlanInForce && address == e.addr(0) {
			select {
			case stands <- true:
				<-goOn
			case <-goOn: // the test has failed
			}
		}
		return nil
	})
	var ended error
	go func() {
		_, ended = elder.ChangePlan(context.Background(), sequence.PlanChange{Add: e.addr(2)})
		close(stands)
	}()
	<-stands
	started, other := false, e.open(t)
	sequence.Inside(other).OnPlanStep(func(step, _ string) error {
		if step == sequence.StepTakenOver {
			goOn <- true // from here on it cannot be decided
			started = <-stands
		}
		return nil
	})
	_, err := e.endLeft(t.Context(), other)
	if err != nil {
		t.Error(err)
	}
	if started {
		t.Error("a member obeys a plan that was aborted")
	}
	for range 10 {
		for i := range e.places {
			if got, err := e.reserve(t, i, "photos", 3); err == nil {
				h.add(t, "photos", got...)
			}
		}
	}
	if started {
		goOn <- true
		<-stands
	}
	if !errors.Is(ended, change.ErrTakenOver) {
		t.Errorf("the coordinator that was replaced ended with %v, want %v", ended, change.ErrTakenOver)
	}
}
