package change

import (
	"strings"

	"seqproxy/sequence/segment"
)

// word is what the operator says of the member that is missing.
type word struct {
	above uint64 // a number above all that it can have given; 0: nothing
	// recorded: nobody counted there but proxies, so it kept to the ceilings that others recorded
	recorded bool
}

// floorsOf returns where a plan begins, by what frozen members gave, and by the operator's word. A
// word is about counters. Ticks of a worker go by the recorded ceilings alone, and so does a
// sequence that ends below that number, if it can.
func floorsOf(all []Given, said word, ahead uint64) Floors {
	var floors []Floor
	rows := make(map[string]bool)
	ends := make(map[string]uint64) // by folded name
	ticks := make(map[string]bool)
	end := uint64(1<<64 - 1)
	for _, given := range all {
		end = min(end, given.End)
		for _, g := range given.Names {
			name := Folded(g.Name)
			rows[name] = rows[name] || g.Row
			ticks[name] = ticks[name] || g.Ticks
		}
		for _, one := range given.Sequences {
			name := Folded(one.Name)
			if known, ok := ends[name]; !ok || one.End < known {
				ends[name] = one.End
			}
		}
	}
	endOf := func(name string) uint64 {
		if last, ok := ends[Folded(name)]; ok {
			return last
		}
		return end
	}
	at := make(map[string]int)
	for _, given := range all {
		for _, g := range given.Names {
			if g.Missing && !rows[Folded(g.Name)] {
				// of a name that no member has a row of, as after DROP SEQUENCE, its tombstones tell
				// what was given
				continue
			}
			i, ok := at[g.Name]
			if !ok {
				i = len(floors)
				at[g.Name] = i
				floors = append(floors, Floor{Name: g.Name})
			}
			switch {
			case ticks[Folded(g.Name)], said.recorded && endOf(g.Name) <= said.above:
				floors[i].Floor = max(floors[i].Floor, g.UpTo)
			case g.Recorded && said.above > 0: // the ceiling is far above
				floors[i].Floor = max(floors[i].Floor, said.above)
			default:
				floors[i].Floor = max(floors[i].Floor, g.UpTo, said.above)
			}
		}
	}
	for i := range floors {
		f := &floors[i]
		far := ahead
		if ticks[Folded(f.Name)] {
			far = 0
		}
		f.Ceiling = segment.CeilingAbove(f.Floor, endOf(f.Name), far)
	}
	if said.recorded {
		// Of a name that is not known now no number was given, as nobody has recorded a ceiling.
		return Floors{Named: floors}
	}
	return Floors{Named: floors, Others: said.above}
}

// Folded is the same for most names that a server takes for one.
func Folded(name string) string { return strings.ToLower(strings.TrimRight(name, " ")) }
