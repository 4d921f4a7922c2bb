package member

import "seqproxy/sequence/store"

// remedy is what comes after an attempt.
type remedy uint8

const (
	remedyGive    remedy = iota // the numbers are given
	remedyStop                  // whoever wants some is told why there are none
	remedyRepeat                // nothing has to be done before the next attempt
	remedyAwait                 // the follower has to make the entry again
	remedyPutBack               // what was taken by the old rule is put back
	remedyLift                  // the row is raised to where it was
	remedyFit                   // fewer numbers are asked for
	remedyWitness               // other members record a higher ceiling
	remedyCeiling               // other nodes are told of a higher ceiling
	remedyHold                  // the node is made the holder
	remedyMove                  // the node that can be written to is looked for
)

// remedies say what comes after an attempt. All but the first two are followed by another attempt.
var remedies = [store.Outcomes]remedy{
	store.OutcomeDone:     remedyGive,
	store.OutcomeConflict: remedyRepeat,
	// that was long already, and whoever waits for the number should read why
	store.OutcomeLocked:      remedyStop,
	store.OutcomeDoubtful:    remedyRepeat,
	store.OutcomeUnlisted:    remedyAwait,
	store.OutcomeNewRule:     remedyPutBack,
	store.OutcomeRestarted:   remedyRepeat,
	store.OutcomeWentBack:    remedyLift,
	store.OutcomeNoRoom:      remedyFit,
	store.OutcomeAtCeiling:   remedyCeiling,
	store.OutcomeUnwitnessed: remedyWitness,
	store.OutcomeNotHolder:   remedyHold,
	store.OutcomeMoved:       remedyMove,
	store.OutcomeOldPlan:     remedyStop, // the type above asks which plan is in force
	store.OutcomeFrozen:      remedyStop, // it ends with the change
	store.OutcomeNotHome:     remedyStop, // the type above asks which member is
	store.OutcomeForeign:     remedyStop,
	store.OutcomeUnknown:     remedyStop, // the server may be gone
	store.OutcomeRefused:     remedyStop,
}
