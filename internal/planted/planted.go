// Package planted removes, one at a time, the checks that keep a number from being given twice. A
// check whose absence no test notices proves nothing. So tests build the program with the tag
// seqproxy_faults and choose a fault by the environment variable SEQPROXY_FAULT. Such a build has a
// clock, too, that tests can set. Without the tag there are no faults, and the clock is the
// machine's. Never use a proxy built with it.
//
// Start at [Fault].
package planted

// Name is the name of a fault.
type Name string

const (
	// Commit: a reservation without an answer is given all the same.
	Commit Name = "commit"
	// Session: connections that reserve keep the server's own settings.
	Session Name = "session"
	// Floor: numbers are given that are not above all numbers given before.
	Floor Name = "floor"
	// Fsync: numbers leave before the mark in the state file is on disk, as after a loss of power.
	Fsync Name = "fsync"
	// Plan: numbers are reserved on a member without a check of its plan.
	Plan Name = "plan"
	// CeilingMember: a member gives numbers above those that another member has recorded.
	CeilingMember Name = "ceiling-member"
	// CeilingReplica: a node of a group gives numbers although it is not the holder, and above the
	// ceiling.
	CeilingReplica Name = "ceiling-replica"
	// Verify: a reservation is not read back.
	Verify Name = "verify"
	// Ballot: a step of a change of members is made although another coordinator has taken over.
	Ballot Name = "ballot"
	// Clock: keys that have a time follow the clock of the machine, also back.
	Clock Name = "clock"
	// Date: the date in a key is that of the moment when it is made, and not that of its counter.
	Date Name = "date"
	// Freeze: the ids of a member are not frozen during a change of members.
	Freeze Name = "freeze"
)

// All are the faults. A test looks for each.
var All = []Name{Commit, Session, Floor, Fsync, Plan, CeilingMember, CeilingReplica, Verify, Ballot, Clock, Date, Freeze}

// Variable is the environment variable that chooses the fault.
const Variable = "SEQPROXY_FAULT"

// ClockVariable is the environment variable that names a file with the lead of the time of day over
// the machine's, as "-1h".
const ClockVariable = "SEQPROXY_FAULT_CLOCK"

// Tag is the build tag that makes faults possible.
const Tag = "seqproxy_faults"
