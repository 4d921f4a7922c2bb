package member

import "seqproxy/sequence/store"

// remedy is what follows an attempt.
type remedy uint8

const (
	remedyGive    remedy = iota // the numbers are given
	remedyStop                  // the callers get an error with the reason
	remedyRepeat                // the next attempt needs no preparation
	remedyAwait                 // the follower has to make the entry again
	remedyPutBack               // numbers taken by the old rule are returned
	remedyLift                  // the row is raised to where it was
	remedyFit                   // fewer numbers are wanted
	remedyWitness               // other members record a higher ceiling
	remedyCeiling               // other nodes record a higher ceiling
	remedyHold                  // the node becomes the holder
	remedyMove                  // the writable node is looked for
)

// remedies has the remedy of each outcome. All but the first two lead to another attempt.
var remedies = [store.Outcomes]remedy{
	store.OutcomeDone:     remedyGive,
	store.OutcomeConflict: remedyRepeat,
	// that took long already, and the caller should read why
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
	store.OutcomeOldPlan:     remedyStop, // the caller asks which plan is in force
	store.OutcomeFrozen:      remedyStop, // it ends with the change
	store.OutcomeNotHome:     remedyStop, // the caller asks which member is
	store.OutcomeForeign:     remedyStop,
	store.OutcomeUnknown:     remedyStop, // the server may be gone
	store.OutcomeRefused:     remedyStop,
}
