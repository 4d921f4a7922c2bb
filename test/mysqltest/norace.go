//go:build !race

package mysqltest

// Race says whether the tests run with the race detector.
const Race = false
