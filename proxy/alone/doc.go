// Package alone answers what needs no server: a SELECT of keys, and, if no server is configured,
// the questions of drivers and command-line clients that connect. It decides from data, and does no
// I/O.
//
// Start at [Facts], from which Select makes a table.
package alone
