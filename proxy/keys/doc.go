// Package keys takes the numbers of sequences that statements need, for one session, and knows how
// they get into a statement: before it is sent, into each row of its result, or counted off by the
// server.
//
// Start at Numbers, which is what a plan says of one statement, and at Taker, whose All takes them
// before it is sent, and which remembers what LASTVAL() gives. Rows get numbers as they come, and a
// Block is counted off by the server. Patience is the context of the waits. How a statement is sent
// is the session's.
package keys
