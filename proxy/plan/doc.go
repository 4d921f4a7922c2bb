// Package plan decides what becomes of a statement, from what is known of its text, the session's
// state and the server it goes to. It does no I/O and changes nothing: the session carries out what
// it says.
//
// Start at Traits, what is known of a text once it is prepared, and at Bring, which says what a
// server has to be told before it runs such a statement.
package plan
