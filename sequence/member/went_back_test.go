package member

import "testing"

// Replication may have lost the last second of a row.
func TestWhatWasSeenOnAnotherNodeOfAGroupDoesNotCount(t *testing.T) {
	l := new(lowest)
	see := func(node, id, want uint64) {
		t.Helper()
		if before, ok := l.note(l.look(node), "photos", lowestID{id: id}, true); before != want || !ok {
			t.Errorf("node %d, %d: seen before at %d, %v, want %d", node, id, before, ok, want)
		}
	}
	see(0, 100, 0)
	see(0, 90, 100)
	see(1, 80, 0)
	see(1, 70, 80)
}
