// Package state is what a client has set, and what another connection must get when it takes over:
// schema, modes, variables, LAST_INSERT_ID(), the effects of the last statement, and the reasons
// that keep a session on its connection. It does no I/O. Connections are numbers here.
//
// Start at [State]. Its steps are Observe, the status of an answer; SetVariables, a SET that a
// server accepted; and Apply, a statement that was answered.
package state
