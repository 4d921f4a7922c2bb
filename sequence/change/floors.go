package change

import (
	"strings"

	"seqproxy/sequence/segment"
)

// floorsOf returns where a plan begins, by what frozen members gave. above is the operator's word,
// or 0: no member gives that number, nor one below.
func floorsOf(all []Given, above, ahead uint64) Floors {
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
			floors[i].Floor = max(floors[i].Floor, g.UpTo, above)
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
	return Floors{Named: floors, Others: above}
}

// Folded is the same for most names that a server takes for one.
func Folded(name string) string { return strings.ToLower(strings.TrimRight(name, " ")) }
