package sequence

import (
	"errors"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence/define"
)

// A name that the server takes for the empty one is refused, as the empty one is.
func TestANameThatTheServerTakesForTheEmptyOneIsRefused(t *testing.T) {
	for _, f := range []fleet{{newPlace(t).withTable(t, nil)}, newFleet(t, 2)} {
		s := f.open(t, steadySize(10))
		mustCreate(t, s, CreateOptions{Name: "photos", Max: 1000})
		last := mustTake(t, s, "photos", 1)
		f[0].exec(t, "CREATE TABLE nameless AS SELECT name FROM sequence LIMIT 0")
		f[0].exec(t, "INSERT INTO nameless VALUES ('')")
		refused := 0
		for _, name := range []string{" ", "   ", "\u00ad", "\u200b"} {
			empty := false
			if err := f[0].db.QueryRow("SELECT COUNT(*) FROM nameless WHERE name = ?", name).Scan(&empty); err != nil && !isNoSuchText(err) {
				t.Fatal(err)
			}
			_, err := s.Create(t.Context(), CreateOptions{Name: name})
			if empty {
				refused++
				if !errors.Is(err, define.ErrBadOption) {
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
	}
}

// Somebody has made such a row by hand in a group's table. The other sequences give numbers, and
// that one gives none.
func TestARowThatTheServerTakesForTheEmptyNameKeepsNoGroupFromServing(t *testing.T) {
	e := startEstate(t, 2, "photos")
	empty := ""
	for _, name := range []string{" ", "\u00ad"} {
		if _, err := e.pools[0].Exec("INSERT INTO sequence (name) VALUES (?)", name); err != nil {
			t.Fatal(err)
		}
		var found int
		if err := e.pools[0].QueryRow("SELECT COUNT(*) FROM sequence WHERE name = ''").Scan(&found); err != nil {
			t.Fatal(err)
		}
		if found > 0 {
			empty = name
			break
		}
	}
	if empty == "" {
		t.Fatal("the server takes none of the names for the empty one")
	}
	e.CatchUp(t, 1, 0)
	all := &given{}
	a := e.join(t, "a", all, patience(time.Minute))
	for _, to := range []int{1, 0} {
		a.take(t, "a", "photos", 25)
		eventually(t, "it is refused", func() bool { // what comes before is of the fail-over
			g, err := a.servers.reserveOn(t.Context(), a.servers.first(), empty, 1, 1)
			if err == nil {
				t.Fatalf("the row %q gives %d", empty, g.seg.Next())
			}
			return strings.Contains(err.Error(), "is empty to the server")
		})
		e.switchOver(t, 1-to, to)
	}
	a.take(t, "a", "photos", 25)
	eventually(t, "another sequence is made", func() bool {
		// the first attempt may be told what was seen of the nodes in the middle of the fail-over
		_, err := a.Create(t.Context(), CreateOptions{Name: "albums", IfNotExists: true})
		return err == nil
	})
	mustTake(t, a.Sequences, "albums", 1)
}
