package sequence

import (
	"errors"
	"testing"
)

// A name that the server takes for the empty one would be that of the rows which are about all sequences, such as the one that holds the plan in force.
func TestANameThatTheServerTakesForTheEmptyOneIsRefused(t *testing.T) {
	for _, f := range []fleet{{newPlace(t).withTable(t, nil)}, newFleet(t, 2)} {
		s := f.open(t, steadySize(10))
		mustCreate(t, s, CreateOptions{Name: "photos", Max: 1000})
		last := mustTake(t, s, "photos", 1)
		refused := 0
		for _, name := range []string{" ", "   ", "\u00ad", "\u200b"} {
			empty := false
			if err := f[0].db.QueryRow("SELECT COUNT(*) FROM sequence_options WHERE name = ?", name).Scan(&empty); err != nil && !isNoSuchText(err) {
				t.Fatal(err)
			}
			_, err := s.Create(t.Context(), CreateOptions{Name: name})
			if empty {
				refused++
				if !errors.Is(err, ErrBadOption) {
					t.Errorf("CREATE of %q, which is the empty name to the server: got %v, want ErrBadOption", name, err)
				}
			}
		}
		if refused == 0 {
			t.Error("the server takes none of the names for the empty one")
		}
		if n := mustTake(t, f.open(t, steadySize(10)), "photos", 1); n <= last {
			t.Errorf("got %d after %d", n, last)
		}
		for _, p := range f {
			var found string
			if err := p.db.QueryRow("SELECT CONCAT('<', name, '>') FROM sequence_options WHERE name = ''").Scan(&found); err != nil || found != "<>" {
				t.Errorf("the row of all sequences is named %s, %v", found, err)
			}
		}
	}
}
