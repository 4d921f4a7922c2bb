package member

import (
	"testing"

	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

func TestEachOutcomeOfAReservationHasARemedy(t *testing.T) {
	for o, want := range map[store.Outcome]struct {
		do    remedy
		again bool
	}{
		store.OutcomeDone:        {remedyGive, false},
		store.OutcomeConflict:    {remedyRepeat, true},
		store.OutcomeLocked:      {remedyStop, false},
		store.OutcomeDoubtful:    {remedyRepeat, true},
		store.OutcomeUnlisted:    {remedyAwait, true},
		store.OutcomeNewRule:     {remedyPutBack, true},
		store.OutcomeRestarted:   {remedyRepeat, true},
		store.OutcomeWentBack:    {remedyLift, true},
		store.OutcomeNoRoom:      {remedyFit, true},
		store.OutcomeAtCeiling:   {remedyCeiling, true},
		store.OutcomeUnwitnessed: {remedyWitness, true},
		store.OutcomeNotHolder:   {remedyHold, true},
		store.OutcomeMoved:       {remedyMove, true},
		store.OutcomeOldPlan:     {remedyStop, false},
		store.OutcomeFrozen:      {remedyStop, false},
		store.OutcomeNotHome:     {remedyStop, false},
		store.OutcomeForeign:     {remedyStop, false},
		store.OutcomeUnknown:     {remedyStop, false},
		store.OutcomeRefused:     {remedyStop, false},
	} {
		if do, again := next(o, 1); do != want.do || again != want.again {
			t.Errorf("%v: got remedy %d, and another attempt: %v; want %d, %v", o, do, again, want.do, want.again)
		}
		// The last attempt does what helps the next caller, and ends.
		if do, again := next(o, link.MaxAttempts); do != want.do || again {
			t.Errorf("%v at the last attempt: got remedy %d, and another attempt: %v", o, do, again)
		}
		if o.Error() == "" {
			t.Errorf("outcome %d has no text", o)
		}
	}
}
