// Package keys takes the numbers of sequences that statements need, for one session, and knows how
// they get into a statement: before it is sent, into each row of its result, or counted off by the
// server.
//
// Start at Numbers, the numbers of one statement, and at Taker, whose All takes them before the
// statement is sent, and which has the values of LASTVAL(). Rows get numbers as they come. A server
// counts within a Block. Patience is the context of the waits. The session sends the statements.
package keys
