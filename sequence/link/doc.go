// Package link reaches a sequence server: it dials, sets the session, checks the server, and finds
// the writable node of a group.
//
// Start at [Link], the connections to one server, which is an address or a group of nodes. A [Node]
// is one of these, a [Choice] the node that numbers are reserved on, and a [Conn] a connection. A
// link has no sequences, segments or plans: an implementation of [Tables] checks the tables behind
// each new connection. [IsConflict], [IsUnknownOutcome] and [UnfitError] classify what a server
// answers.
package link
