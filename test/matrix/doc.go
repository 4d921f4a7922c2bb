// Package matrix makes docs/compatibility-tables.md from the results of tests: which commands are
// answered as by each server, and which clients can use which login. No cell is written by hand.
//
// If the environment variable SEQPROXY_MATRIX_OUT names a directory, the tests of the packages
// proxy and test/clients write files there, on whichever server they run. `make test-matrix` does
// that on each server and compares the page. With MATRIX=update it writes the tables, by
//
//	SEQPROXY_MATRIX_OUT=DIR go test ./test/matrix -run TestThePage -update
//
// Every run of the proxy's tests compares its server's column.
//
// The tests of this package also have the checklist of what a proxy has to do right, and look for a
// test of each point.
//
// Start at [Runs], the results of all runs.
package matrix
