// Package keys takes the numbers of sequences that statements need, for one session.
//
// Start at Taker, which takes what the slots of a plan ask for, and remembers what LASTVAL() gives.
// Patience is the context of its waits. What is put where in a statement, and how it is sent, is
// the session's.
package keys
