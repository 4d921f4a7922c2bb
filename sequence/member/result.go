package member

import (
	"errors"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// ResultOf returns the kind of an attempt for the counters.
func ResultOf(o store.Outcome, err error) stats.Result {
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
	case store.OutcomeConflict:
		return stats.ReservedConflict
	case store.OutcomeNotHolder, store.OutcomeAtCeiling:
		return stats.ReservedNoCeiling
	}
	switch {
	case errors.Is(err, define.ErrExhausted):
		return stats.ReservedEnd
	case errors.Is(err, define.ErrUnknown):
		return stats.ReservedNoRow
	case errors.Is(err, link.ErrUnchosen):
		return stats.ReservedNoCeiling
	case errors.Is(err, link.ErrUnfit):
		return stats.ReservedUnfit
	}
	return stats.ReservedError
}

// lastResult returns that of an attempt without a next one, since err remains: so another proxy's
// change was not the cause, and the ceiling cannot be raised.
func lastResult(result stats.Result, o store.Outcome, err error) stats.Result {
	switch {
	case o == store.OutcomeDoubtful:
		return stats.ReservedUnfit
	case result == stats.ReservedNoCeiling:
		return ResultOf(o, err)
	}
	return result
}
