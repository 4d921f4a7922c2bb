// Package state is what a client has set, and what is to be known of it where another connection
// takes over: schema, modes, variables, LAST_INSERT_ID(), what the last statement left, and the
// reasons that keep a session on its connection. It does no I/O. Connections are numbers here.
//
// Start at State. Observe, SetVariables and Apply are its steps: the status of an answer, a SET
// that a server accepted, a statement that was answered.
package state
