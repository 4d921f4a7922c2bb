package store

import (
	"errors"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/link"
)

// Outcome is how one attempt to reserve numbers ended. It is an error, too.
type Outcome uint8

const (
	// OutcomeDone: the numbers are reserved, and that was verified.
	OutcomeDone Outcome = iota
	// OutcomeConflict: another transaction was first.
	OutcomeConflict
	// OutcomeLocked: another transaction has the row, and the server has waited long enough.
	OutcomeLocked
	// OutcomeDoubtful: the row is not what it should be, or was changed in the same moment.
	OutcomeDoubtful
	// OutcomeUnlisted: this process is not in the table of proxies, so others do not wait for it.
	OutcomeUnlisted
	// OutcomeNewRule: the numbers have another increment or maximum than this process believed.
	OutcomeNewRule
	// OutcomeRestarted: the sequence was restarted since.
	OutcomeRestarted
	// OutcomeWentBack: the row, or its numbers, are lower than this process has seen.
	OutcomeWentBack
	// OutcomeNoRoom: fewer numbers remain.
	OutcomeNoRoom
	// OutcomeAtCeiling: the numbers would go above what other nodes of the group have recorded.
	OutcomeAtCeiling
	// OutcomeUnwitnessed: the numbers would go above what another member has recorded.
	OutcomeUnwitnessed
	// OutcomeNotHolder: the node of the group does not hold the sequences.
	OutcomeNotHolder
	// OutcomeMoved: the node of the group cannot be written to any more, or another one was chosen.
	OutcomeMoved
	// OutcomeOldPlan: the server obeys another plan than this process.
	OutcomeOldPlan
	// OutcomeFrozen: the row is frozen by a change of members.
	OutcomeFrozen
	// OutcomeNotHome: another member gives the numbers of the ORDER sequence.
	OutcomeNotHome
	// OutcomeForeign: the row stands where another member's numbers follow.
	OutcomeForeign
	// OutcomeUnknown: the answer was lost. The numbers may be reserved, and are never given.
	OutcomeUnknown
	// OutcomeRefused: another reason, which the error names.
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
	OutcomeNotHolder:   "this node of the sequence server does not hold the sequences yet",
	OutcomeMoved:       "another node of the sequence server is to be found",
	OutcomeOldPlan:     "the plan of the sequence servers was changed meanwhile",
	OutcomeFrozen: "the set of sequence servers is being changed; if its proxy died, make the same change again on another one, which ends it: " +
		"SHOW SEQPROXY SEQUENCE SERVERS tells which",
	OutcomeNotHome: "another sequence server is the home of this ORDER sequence by now",
	OutcomeForeign: "the row is of another sequence server",
	OutcomeUnknown: "connection lost in a reservation, its numbers are never used",
	OutcomeRefused: "it was refused",
}

// Error describes the outcome, for want of a better error.
func (o Outcome) Error() string { return outcomeTexts[o] }

// Attempt is one attempt to take numbers, after its end.
type Attempt struct {
	Outcome Outcome
	Err     error // nil with OutcomeDone

	Taken  bool // the row has moved: no other process uses its numbers, whatever the outcome
	Last   uint64
	Stored Row // the row as it was read after that

	Doubtful uint64 // numbers that may be taken, if the row has moved, and are never given

	// With OutcomeWentBack: where the row or its first number stands, and where it was seen. With
	// OutcomeForeign: the row.
	Row, Mark uint64
	Asked     bool // the limit of the holder was read: up to ceiling
	Ceiling   uint64
}

// Ended is an attempt that its outcome explains.
func Ended(o Outcome) Attempt { return Attempt{Outcome: o, Err: o} }

// FailedWith is an attempt that an error ended.
func (st *Store) FailedWith(err error) Attempt { return Attempt{Outcome: st.OutcomeOf(err), Err: err} }

// OutcomeOf classifies the error of an attempt; nil is OutcomeDone.
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
