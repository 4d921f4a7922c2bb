// Package params has the parameters of prepared statements: those of the client, and hidden ones
// that the proxy puts in place of calls and keys and fills at each execution. It knows bytes, and
// does no I/O.
//
// Start at [List], the parameters of one statement. It parses executions, of one row or many, and
// writes them for the server. [Hide] makes the hidden parameters.
package params
