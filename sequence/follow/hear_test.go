package follow

import (
	"testing"

	"seqproxy/sequence/store"
)

// TestOldNewsIsNone has several members tell of changes, each when it comes to it.
func TestOldNewsIsNone(t *testing.T) {
	f := new(Follower)
	for i, said := range []struct {
		what    string
		version uint64
		gone    bool
		counts  bool
	}{
		{"the first word of a sequence", 3, false, true},
		{"the same of another member", 3, false, true},
		{"one that lacks its row", 3, true, false},
		{"one that was away during a change", 2, false, false},
		{"a later change", 4, false, true},
		{"it was dropped", 5, true, true},
		{"another member says so, too", 5, true, false},
		{"one that has not heard of that", 4, false, false},
		{"it was made again", 6, false, true},
	} {
		c := store.Changed{Option: "photos", Gone: said.gone}
		c.Version = said.version
		other := store.Changed{Option: "other"}
		other.Version = uint64(i)
		got := f.news([]store.Changed{c, other})
		if counts := len(got) == 2; counts != said.counts || got[len(got)-1].Option != "other" {
			t.Errorf("%s: got %v, want that it counts: %v, and the news of the other sequence", said.what, got, said.counts)
		}
	}
}
