package mysqltest

import "testing"

// MovesMegabytes skips a test that moves hundreds of megabytes with -short, and with the race
// detector, which takes minutes for them. CI runs it where it tries a server without the detector.
func MovesMegabytes(t testing.TB, what string) {
	t.Helper()
	if testing.Short() || Race {
		t.Skip("CI runs it without the race detector: " + what)
	}
}
