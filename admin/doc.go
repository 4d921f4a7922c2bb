// Package admin answers the statements by which people look after the proxy:
// CREATE SEQUENCE, SHOW SEQUENCES and their like, SHOW SEQPROXY ... and SEQPROXY ...
//
// It knows what may be asked and by whom, and turns what the engine tells into
// results; it touches no connection. Start at Sequences.Execute.
package admin
