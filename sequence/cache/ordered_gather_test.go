package cache

import (
	"testing"
	"time"
)

func TestABatchWaitsWhereAnUpdateIsDear(t *testing.T) {
	const ms = time.Millisecond
	for took, want := range map[time.Duration]time.Duration{
		0: 0, ms: 0, 2*ms - 1: 0, 2 * ms: ms, 4 * ms: ms, 8 * ms: 2 * ms, 80 * ms: 20 * ms, time.Second: 20 * ms,
	} {
		if got := gatherTime(took); got != want {
			t.Errorf("after an UPDATE of %v: got %v, want %v", took, got, want)
		}
	}
}
