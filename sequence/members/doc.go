// Package members has several sequence servers be one: those of the plan in force. It learns which
// plan that is, reserves on the member that comes next, and has all of them agree on definitions.
//
// Start at [Members]. A [View] is the members in use at one time; whoever finds that one of them
// obeys another plan reads that, and begins again ([Members.Under]). plan.go is how a process learns
// which plan is in force, first_plan.go how the first one is made, ask.go what is asked of any or of
// all members, and definitions.go has package agree read and change what is defined. Which member is
// asked for numbers next is chosen by member.Several. A single server is one member without a plan.
package members
