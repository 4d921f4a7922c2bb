package change

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"seqproxy/sequence/segment"
)

// floorsOf returns where a plan begins, by what frozen members gave. above is the operator's word,
// or 0: no member gives that number, nor one below.
func floorsOf(all []Given, above, ahead uint64) Floors {
	rows, ticks, ends := make(map[string]bool), make(map[string]bool), make(map[string]uint64) // by folded name
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
			ends[name] = min(one.End, cmp.Or(ends[name], one.End))
		}
	}
	highest := make(map[string]uint64)
	for _, given := range all {
		for _, g := range given.Names {
			if g.Missing && !rows[Folded(g.Name)] {
				// of a name that no member has a row of, as after DROP SEQUENCE, its tombstones tell
				// what was given
				continue
			}
			highest[g.Name] = max(highest[g.Name], g.UpTo, above)
		}
	}
	var floors []Floor
	for _, name := range slices.Sorted(maps.Keys(highest)) {
		far := ahead
		if ticks[Folded(name)] {
			far = 0
		}
		f := Floor{Name: name, Floor: highest[name]}
		f.Ceiling = segment.CeilingAbove(f.Floor, cmp.Or(ends[Folded(name)], end), far)
		floors = append(floors, f)
	}
	return Floors{Named: floors, Others: above}
}

// Folded is the same for most names that a server takes for one.
func Folded(name string) string { return strings.ToLower(strings.TrimRight(name, " ")) }
