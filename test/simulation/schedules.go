package simulation

import (
	"os"
	"strconv"
	"testing"
)

// Schedules is how many random ones a test tries: usually, with -short, or as many as
// SEQPROXY_SCHEDULES says.
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
