// Package link reaches a sequence server: it dials, sets the session, checks what it is connected
// to, and knows which node of a group is written to.
//
// Start from [Link], which has the connections of one server. It is an address, or a group of
// nodes: [Node] is the way to one of them, and [Choice] the one that numbers are reserved on. A
// [Conn] is a connection. What a link does not know of is sequences, segments and plans. Their
// tables are looked at behind each new connection by whoever implements [Tables]. What a server may
// answer is told apart here: [IsConflict], [IsUnknownOutcome], and an [UnfitError] where it could
// repeat numbers.
package link
