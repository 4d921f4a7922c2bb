// Package matrix brings what tests have seen into docs/compatibility-tables.md: which commands
// are answered as by each server, and which clients get in by which login. No cell is
// written by hand.
//
// Where the environment variable SEQPROXY_MATRIX_OUT names a directory, the tests of
// the packages proxy and test/clients leave files there, on whichever server they
// run. `make test-matrix` has them do so on each server, and then compares; with
// MATRIX=update it makes the tables, by
//
//	SEQPROXY_MATRIX_OUT=DIR go test ./test/matrix -run TestThePage -update
//
// Every run of the proxy's tests compares the column of its server.
//
// The tests of this package also hold the checklist of what a proxy has to get right,
// and look for a test of each point.
package matrix
