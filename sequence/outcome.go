package sequence

import (
	"errors"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/link"
)

// outcome is how one attempt to reserve numbers on a server ended. It is an error, too.
type outcome uint8

const (
	// outcomeDone: the numbers are reserved, and it was made sure of that.
	outcomeDone outcome = iota
	// outcomeConflict: another transaction was first.
	outcomeConflict
	// outcomeLocked: another transaction has the row, and the server has waited long enough.
	outcomeLocked
	// outcomeDoubtful: the row is not what it should be, or somebody changed it in the same moment.
	outcomeDoubtful
	// outcomeUnlisted: the server does not know this process, so others do not wait for it.
	outcomeUnlisted
	// outcomeNewRule: the numbers go by another increment or maximum than this process knew.
	outcomeNewRule
	// outcomeRestarted: the sequence has begun again since.
	outcomeRestarted
	// outcomeWentBack: the row, or the numbers of it, are lower than this process saw it.
	outcomeWentBack
	// outcomeNoRoom: so many numbers are not left.
	outcomeNoRoom
	// outcomeAtCeiling: the numbers would go above what other nodes of the group know of.
	outcomeAtCeiling
	// outcomeUnwitnessed: the numbers would go above what another member has recorded.
	outcomeUnwitnessed
	// outcomeNotHolder: the node of the group does not hold the sequences.
	outcomeNotHolder
	// outcomeMoved: the node of the group cannot be written to any more, or another one was chosen.
	outcomeMoved
	// outcomeOldPlan: the server obeys another plan than this process.
	outcomeOldPlan
	// outcomeFrozen: the row is frozen, as the set of servers is changed.
	outcomeFrozen
	// outcomeNotHome: another member gives the numbers of the ORDER sequence.
	outcomeNotHome
	// outcomeForeign: the row stands where another member's numbers follow.
	outcomeForeign
	// outcomeUnknown: the answer was lost. The numbers may be reserved, and nobody gives them.
	outcomeUnknown
	// outcomeRefused: for another reason, which the error says.
	outcomeRefused

	outcomes
)

var outcomeTexts = [outcomes]string{
	outcomeDone:        "numbers are reserved",
	outcomeConflict:    "another transaction was first",
	outcomeLocked:      "another transaction has locked the row",
	outcomeDoubtful:    "the row was changed in the same moment",
	outcomeUnlisted:    "the entry of this proxy in the list of proxies is gone",
	outcomeNewRule:     "increment or maximum of the sequence were changed meanwhile",
	outcomeRestarted:   "the sequence was restarted meanwhile",
	outcomeWentBack:    "the row has gone back",
	outcomeNoRoom:      "so many numbers are not left",
	outcomeAtCeiling:   "the ceiling of the sequence is reached",
	outcomeUnwitnessed: "the numbers would go above the ceiling that the other sequence servers have recorded",
	outcomeNotHolder:   "this node of the sequence server was not adopted yet",
	outcomeMoved:       "another node of the sequence server is to be found",
	outcomeOldPlan:     "the plan of the sequence servers was changed meanwhile",
	outcomeFrozen: "the set of sequence servers is being changed; if its proxy died, make the same change again on another one, which ends it: " +
		"SHOW SEQPROXY SEQUENCE SERVERS tells which",
	outcomeNotHome: "another sequence server is the home of this ORDER sequence by now",
	outcomeForeign: "the row is of another sequence server",
	outcomeUnknown: "connection lost in a reservation, its numbers are never used",
	outcomeRefused: "it was refused",
}

// Error says what the outcome is, where there is no other error for it.
func (o outcome) Error() string { return outcomeTexts[o] }

// attempt is one attempt to reserve numbers, as it ended.
type attempt struct {
	outcome outcome
	err     error // for whoever gets no number; nil with outcomeDone

	// grant has the numbers with outcomeDone. With outcomeNewRule it may have numbers that went by
	// the old one.
	grant grant
	upTo  upTo // what kept them from going on

	taken  bool // the row has moved: whatever the outcome is, its numbers are used by nobody else
	last   uint64
	stored row // as it was read after that

	lost uint64 // numbers that are taken, or may be, and that nobody gives
	why  Unused // nobody does

	// with outcomeWentBack: what the row, or the first of its numbers, is, and what it was; with
	// outcomeForeign: the row
	row, mark uint64
	asked     bool // how far the holder may go was read: up to ceiling
	ceiling   uint64
}

// ended is an attempt of which the outcome says all.
func ended(o outcome) attempt { return attempt{outcome: o, err: o} }

// failedWith is an attempt that ended with an error.
func (st *store) failedWith(err error) attempt { return attempt{outcome: st.outcomeOf(err), err: err} }

// outcomeOf is the outcome of an attempt that ended with an error, or without one.
func (st *store) outcomeOf(err error) outcome {
	var is outcome
	switch {
	case err == nil:
		return outcomeDone
	case errors.As(err, &is):
		return is
	case link.IsOutOfRange(err):
		return outcomeNoRoom
	case link.HasCode(err, gomysql.ER_LOCK_WAIT_TIMEOUT):
		return outcomeLocked
	case link.IsConflict(err):
		return outcomeConflict
	case link.IsMomentary(err):
		return outcomeDoubtful
	case st.IsMoved(err):
		return outcomeMoved
	}
	return outcomeRefused
}

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
var remedies = [outcomes]remedy{
	outcomeDone:     remedyGive,
	outcomeConflict: remedyRepeat,
	// that was long already, and whoever waits for the number should read why
	outcomeLocked:      remedyStop,
	outcomeDoubtful:    remedyRepeat,
	outcomeUnlisted:    remedyAwait,
	outcomeNewRule:     remedyPutBack,
	outcomeRestarted:   remedyRepeat,
	outcomeWentBack:    remedyLift,
	outcomeNoRoom:      remedyFit,
	outcomeAtCeiling:   remedyCeiling,
	outcomeUnwitnessed: remedyWitness,
	outcomeNotHolder:   remedyHold,
	outcomeMoved:       remedyMove,
	outcomeOldPlan:     remedyStop, // the type above asks which plan is in force
	outcomeFrozen:      remedyStop, // it ends with the change
	outcomeNotHome:     remedyStop, // the type above asks which member is
	outcomeForeign:     remedyStop,
	outcomeUnknown:     remedyStop, // the server may be gone
	outcomeRefused:     remedyStop,
}
