// Package params has the parameters of prepared statements: those that a client knows of, and those
// that the proxy puts where calls and keys stood and fills at each execution.
//
// Start at List, the parameters of one statement. It takes executions apart, of one row or many,
// and writes them for the server. Hide makes the hidden parameters. It knows bytes: nothing here
// waits or asks.
package params
