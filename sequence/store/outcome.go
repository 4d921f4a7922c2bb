package store

import (
	"errors"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/link"
)

// Outcome is how one attempt to reserve numbers on a server ended. It is an error, too.
type Outcome uint8

const (
	// OutcomeDone: the numbers are reserved, and it was made sure of that.
	OutcomeDone Outcome = iota
	// OutcomeConflict: another transaction was first.
	OutcomeConflict
	// OutcomeLocked: another transaction has the row, and the server has waited long enough.
	OutcomeLocked
	// OutcomeDoubtful: the row is not what it should be, or somebody changed it in the same moment.
	OutcomeDoubtful
	// OutcomeUnlisted: the server does not know this process, so others do not wait for it.
	OutcomeUnlisted
	// OutcomeNewRule: the numbers go by another increment or maximum than this process knew.
	OutcomeNewRule
	// OutcomeRestarted: the sequence has begun again since.
	OutcomeRestarted
	// OutcomeWentBack: the row, or the numbers of it, are lower than this process saw it.
	OutcomeWentBack
	// OutcomeNoRoom: so many numbers are not left.
	OutcomeNoRoom
	// OutcomeAtCeiling: the numbers would go above what other nodes of the group know of.
	OutcomeAtCeiling
	// OutcomeUnwitnessed: the numbers would go above what another member has recorded.
	OutcomeUnwitnessed
	// OutcomeNotHolder: the node of the group does not hold the sequences.
	OutcomeNotHolder
	// OutcomeMoved: the node of the group cannot be written to any more, or another one was chosen.
	OutcomeMoved
	// OutcomeOldPlan: the server obeys another plan than this process.
	OutcomeOldPlan
	// OutcomeFrozen: the row is frozen, as the set of servers is changed.
	OutcomeFrozen
	// OutcomeNotHome: another member gives the numbers of the ORDER sequence.
	OutcomeNotHome
	// OutcomeForeign: the row stands where another member's numbers follow.
	OutcomeForeign
	// OutcomeUnknown: the answer was lost. The numbers may be reserved, and nobody gives them.
	OutcomeUnknown
	// OutcomeRefused: for another reason, which the error says.
	OutcomeRefused

	Outcomes
)

var outcomeTexts = [Outcomes]string{
	OutcomeDone:        "numbers are reserved",
	OutcomeConflict:    "another transaction was first",
	OutcomeLocked:      "another transaction has locked the row",
	OutcomeDoubtful:    "the row was changed in the same moment",
	OutcomeUnlisted:    "the entry of this proxy in the list of proxies is gone",
	OutcomeNewRule:     "increment or maximum of the sequence were changed meanwhile",
	OutcomeRestarted:   "the sequence was restarted meanwhile",
	OutcomeWentBack:    "the row has gone back",
	OutcomeNoRoom:      "so many numbers are not left",
	OutcomeAtCeiling:   "the ceiling of the sequence is reached",
	OutcomeUnwitnessed: "the numbers would go above the ceiling that the other sequence servers have recorded",
	OutcomeNotHolder:   "this node of the sequence server was not adopted yet",
	OutcomeMoved:       "another node of the sequence server is to be found",
	OutcomeOldPlan:     "the plan of the sequence servers was changed meanwhile",
	OutcomeFrozen: "the set of sequence servers is being changed; if its proxy died, make the same change again on another one, which ends it: " +
		"SHOW SEQPROXY SEQUENCE SERVERS tells which",
	OutcomeNotHome: "another sequence server is the home of this ORDER sequence by now",
	OutcomeForeign: "the row is of another sequence server",
	OutcomeUnknown: "connection lost in a reservation, its numbers are never used",
	OutcomeRefused: "it was refused",
}

// Error says what the outcome is, where there is no other error for it.
func (o Outcome) Error() string { return outcomeTexts[o] }

// Attempt is one attempt to take numbers, as it ended.
type Attempt struct {
	Outcome Outcome
	Err     error // nil with OutcomeDone

	Taken  bool // the row has moved: whatever the outcome is, its numbers are used by nobody else
	Last   uint64
	Stored Row // as it was read after that

	Doubtful uint64 // numbers that may be taken, if the row has moved, and that nobody gives

	// with OutcomeWentBack: what the row, or the first of its numbers, is, and what it was; with
	// OutcomeForeign: the row
	Row, Mark uint64
	Asked     bool // how far the holder may go was read: up to ceiling
	Ceiling   uint64
}

// Ended is an attempt of which the outcome says all.
func Ended(o Outcome) Attempt { return Attempt{Outcome: o, Err: o} }

// FailedWith is an attempt that ended with an error.
func (st *Store) FailedWith(err error) Attempt { return Attempt{Outcome: st.OutcomeOf(err), Err: err} }

// OutcomeOf is the outcome of an attempt that ended with an error, or without one.
func (st *Store) OutcomeOf(err error) Outcome {
	var is Outcome
	switch {
	case err == nil:
		return OutcomeDone
	case errors.As(err, &is):
		return is
	case link.IsOutOfRange(err):
		return OutcomeNoRoom
	case link.HasCode(err, gomysql.ER_LOCK_WAIT_TIMEOUT):
		return OutcomeLocked
	case link.IsConflict(err):
		return OutcomeConflict
	case link.IsMomentary(err):
		return OutcomeDoubtful
	case st.IsMoved(err):
		return OutcomeMoved
	}
	return OutcomeRefused
}
