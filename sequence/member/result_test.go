package member

import (
	"errors"
	"testing"

	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// TestWhatKeepsNumbersAwayCountsAsAnError: alarms look at errors, not at what other proxies cause.
func TestWhatKeepsNumbersAwayCountsAsAnError(t *testing.T) {
	for o, want := range map[store.Outcome]stats.Result{
		store.OutcomeDone:     stats.ReservedOK,
		store.OutcomeConflict: stats.ReservedConflict,
		store.OutcomeLocked:   stats.ReservedError,
		store.OutcomeFrozen:   stats.ReservedChanged,
		store.OutcomeUnknown:  stats.ReservedUnknown,
		store.OutcomeRefused:  stats.ReservedError,
	} {
		if got := ResultOf(o, errors.New("it failed")); got != want {
			t.Errorf("%v: got %v, want %v", o, got, want)
		}
	}
}
