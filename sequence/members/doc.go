// Package members has several sequence servers be one: those of the plan in force. It learns which
// plan that is, reserves on the member that comes next, and has all of them agree on definitions.
//
// Start at [Members]. A [View] is the members in use at one time. Whoever finds that one of them
// obeys another plan reads which one that is, and begins again ([Members.Under]). plan.go is how a
// process learns which plan is in force, and first_plan.go how the first one is made. Numbers are
// reserved in reserve.go; member.Several chooses the member, and agreement.go is what it asks of
// this package. ask.go is what else is asked of any member or of all, and definitions.go has
// package agree read and change what is defined. A single server is one member without a plan.
package members
