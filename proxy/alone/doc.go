// Package alone is what the proxy answers by itself, and how: the columns of a SELECT of keys, and,
// where there is no server, what drivers and command-line clients ask when they connect.
//
// Start at Facts, of which Select makes a table. It decides from data: nothing here waits or asks.
package alone
