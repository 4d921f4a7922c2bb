// Package planted takes out, one at a time, the checks that keep a number from being given
// twice. A check that no test misses proves nothing, so tests build the program with the tag
// seqproxy_faults and choose a fault by the environment variable SEQPROXY_FAULT. Without the
// tag no fault can be planted. Never build a proxy for use with it.
//
// Start from [Fault].
package planted

// Name says what is taken out.
type Name string

const (
	// Commit: a reservation that no answer came to is given all the same.
	Commit Name = "commit"
	// Session: connections that reserve keep the server's own settings.
	Session Name = "session"
	// Floor: numbers at or below what the process got before are taken.
	Floor Name = "floor"
	// Fsync: the mark of the state file is not on disk when the numbers leave, as after a loss
	// of power.
	Fsync Name = "fsync"
	// Plan: numbers are reserved on a member whatever plan it obeys.
	Plan Name = "plan"
	// CeilingMember: a member gives numbers above what another one knows of.
	CeilingMember Name = "ceiling-member"
	// CeilingReplica: a group gives numbers without being their holder, and above its ceiling.
	CeilingReplica Name = "ceiling-replica"
	// Verify: a reservation is not read back.
	Verify Name = "verify"
	// Ballot: a step of a change of members is taken although another coordinator has taken over.
	Ballot Name = "ballot"
	// Freeze: the ids of a member stay where they are while the set of members is changed.
	Freeze Name = "freeze"
)

// Variable names the environment variable that chooses the fault.
const Variable = "SEQPROXY_FAULT"

// Tag is the build tag without which no fault can be planted.
const Tag = "seqproxy_faults"
