package sequence

import (
	"errors"

	"seqproxy/sequence/link"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// resultOf is what is counted of an attempt.
func resultOf(o store.Outcome, err error) stats.Result {
	switch o {
	case store.OutcomeDone:
		return stats.ReservedOK
	case store.OutcomeWentBack:
		return stats.ReservedRewind
	case store.OutcomeUnknown:
		return stats.ReservedUnknown
	case store.OutcomeNewRule, store.OutcomeRestarted, store.OutcomeOldPlan, store.OutcomeFrozen, store.OutcomeNotHome, store.OutcomeDoubtful:
		return stats.ReservedChanged
	case store.OutcomeNoRoom:
		return stats.ReservedEnd
	case store.OutcomeConflict, store.OutcomeLocked:
		return stats.ReservedConflict
	case store.OutcomeNotHolder, store.OutcomeAtCeiling:
		return stats.ReservedNoCeiling
	}
	switch {
	case errors.Is(err, ErrExhausted):
		return stats.ReservedEnd
	case errors.Is(err, ErrUnknown):
		return stats.ReservedNoRow
	case errors.Is(err, link.ErrUnchosen):
		return stats.ReservedNoCeiling
	case errors.Is(err, ErrUnfit):
		return stats.ReservedUnfit
	}
	return stats.ReservedError
}

// lastResult is that of an attempt which no other follows by itself, as err is still there: then it
// was not somebody's change in that moment, and the ceiling is not to be had.
func lastResult(result stats.Result, o store.Outcome, err error) stats.Result {
	switch {
	case o == store.OutcomeDoubtful:
		return stats.ReservedUnfit
	case result == stats.ReservedNoCeiling:
		return resultOf(o, err)
	}
	return result
}

// endOf is what is counted of a wait for numbers.
func endOf(err error) stats.End {
	switch {
	case errors.As(err, new(*snowflake.ClockError)):
		return stats.ByClock
	case unserved(err):
		return stats.Unserved
	}
	return stats.Served
}

// unserved says whether a wait ended without a number, and not by its caller or because there is no
// such sequence.
func unserved(err error) bool {
	for _, known := range []any{
		new(*UnavailableError), new(*snowflake.ClockError), new(*snowflake.WorkersError), new(*snowflake.WorkerError), new(*snowflake.FullError),
	} {
		if errors.As(err, known) {
			return true
		}
	}
	return errors.Is(err, ErrExhausted) || errors.Is(err, ErrUnfit)
}
