// Package admin answers the statements by which people manage the proxy: CREATE SEQUENCE, SHOW
// SEQUENCES and the like, SHOW SEQPROXY ... and SEQPROXY ...
//
// It knows the statements and who may use them. It makes results of what the engine returns, and
// uses no connection itself. Start at Sequences.Execute.
package admin
