// Package admin answers the statements by which people look after the proxy:
// CREATE SEQUENCE, DROP SEQUENCE and SHOW SEQUENCES.
//
// It knows what may be asked and by whom, and turns what the engine tells into
// results; it touches no connection. Start at Sequences.Execute.
package admin
