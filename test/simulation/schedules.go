package simulation

import (
	"os"
	"strconv"
	"testing"
)

// Schedules returns how many random schedules a test tries: usual, short with -short, or the value
// of SEQPROXY_SCHEDULES.
func Schedules(t testing.TB, usual, short uint64) uint64 {
	t.Helper()
	text := os.Getenv("SEQPROXY_SCHEDULES")
	switch {
	case text != "":
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatalf("SEQPROXY_SCHEDULES=%s: %v", text, err)
		}
		return n
	case testing.Short():
		return short
	}
	return usual
}
