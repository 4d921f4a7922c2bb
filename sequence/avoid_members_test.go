package sequence

import (
	"fmt"
	"testing"
)

// A number that somebody chose is given by no server, also where this proxy has numbers of another one that are higher.
func TestANumberThatSomebodyChoseIsGivenByNoneOfSeveralServers(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
	}{
		{"blocks", blocks(50)},
		{"steps", inSteps},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, 2)
			a := f.open(t, c.change, steadySize(20))
			createOn(t, a, "photos")
			var book ledger
			top := uint64(0)
			for i := range 40 {
				for range 15 {
					n := mustTake(t, a, "photos", 1)
					book.add(t, "a", n, 1)
					top = max(top, n)
				}
				settled(t, a, "photos")
				for _, n := range []uint64{top + 31, top + 34, top + 52} {
					if _, given := book.given[n]; given {
						continue // by a proxy that came later
					}
					if err := a.Avoid(t.Context(), []byte("photos"), []uint64{n}); err != nil {
						t.Fatal(err)
					}
					book.add(t, fmt.Sprint("chosen ", i), n, 1)
				}
				if i%4 == 3 {
					fresh := f.open(t, c.change, steadySize(20))
					for range 30 {
						book.add(t, "fresh", mustTake(t, fresh, "photos", 1), 1)
					}
				}
			}
		})
	}
}
