package sequence_test

import (
	"errors"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
)

// A name of blanks is refused, like the empty one. Other names that the server takes for the empty
// one are ordinary.
func TestANameThatTheServerTakesForTheEmptyOneIsNoOtherOne(t *testing.T) {
	for _, f := range []fleet{{newPlace(t).withTable(t, nil)}, newFleet(t, 2)} {
		s := f.open(t, steadySize(10))
		mustCreate(t, s, sequence.CreateOptions{Name: "photos", Max: 1000})
		last := mustTake(t, s, "photos", 1)
		for _, name := range []string{"", " ", "   "} {
			if _, err := s.Create(t.Context(), sequence.CreateOptions{Name: name}); !errors.Is(err, define.ErrBadOption) {
				t.Errorf("CREATE of %q: got %v, want ErrBadOption", name, err)
			}
		}
		const name = "\u00ad"
		if _, err := s.Create(t.Context(), sequence.CreateOptions{Name: name}); err == nil {
			mustTake(t, s, name, 25)
		} else if !link.IsNoSuchText(err) {
			t.Errorf("CREATE of %q: %v", name, err)
		}
		if n := mustTake(t, f.open(t, steadySize(10)), "photos", 1); n <= last {
			t.Errorf("got %d after %d", n, last)
		}
	}
}

// A group's table has such a row, made by hand. It gives numbers, and so do the others.
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
	next := uint64(1)
	for _, to := range []int{1, 0} {
		a.take(t, "a", "photos", 25)
		first := mustTake(t, a.Sequences, empty, 25)
		if first < next {
			t.Errorf("the row %q gives %d, after %d", empty, first, next-1)
		}
		next = first + 25
		e.switchOver(t, 1-to, to)
	}
	a.take(t, "a", "photos", 25)
	eventually(t, "another sequence is made", func() bool {
		// The first attempt may meet the state of the nodes in the middle of the fail-over.
		_, err := a.Create(t.Context(), sequence.CreateOptions{Name: "albums", IfNotExists: true})
		return err == nil
	})
	mustTake(t, a.Sequences, "albums", 1)
}
