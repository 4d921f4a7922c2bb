package sequence

import "testing"

// Numbers of the sequence before, which a proxy holds, do not come after those of the ORDER sequence that takes its name.
func TestAnOrderSequenceOfSeveralServersIsMadeInPlaceOfOneWhoseNumbersAreHeld(t *testing.T) {
	f := newFleet(t, 2)
	a, b := f.open(t, blocks(50), steadySize(20)), f.open(t, blocks(50), steadySize(20))
	for _, name := range []string{"replaced", "dropped"} {
		createOn(t, a, name)
		mustTake(t, b, name, 1)
		settled(t, b, name)
		if name == "dropped" {
			if _, err := a.Drop(t.Context(), []byte(name), false); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Create(t.Context(), CreateOptions{Name: name, OrReplace: true, Order: true}); err != nil {
			t.Fatal(err)
		}
		last := uint64(0)
		for range 20 {
			for who, s := range map[string]*Sequences{"a": a, "b": b} {
				if n := mustTake(t, s, name, 1); n <= last {
					t.Errorf("%s: %s got %d after %d", name, who, n, last)
				} else {
					last = n
				}
			}
		}
	}
}
