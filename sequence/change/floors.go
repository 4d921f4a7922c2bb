package change

import (
	"slices"
	"strings"

	"seqproxy/sequence/segment"
)

// floorsOf is where a plan begins, by what frozen members gave. above is the operator's word
// about members that cannot be asked, or 0.
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
	at := make(map[string]int)
	for _, g := range slices.Concat(names(all)...) {
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
	for i := range floors {
		f := &floors[i]
		last, ok := ends[Folded(f.Name)]
		if !ok {
			last = end
		}
		far := ahead
		if ticks[Folded(f.Name)] {
			far = 0
		}
		f.Ceiling = segment.CeilingAbove(f.Floor, last, far)
	}
	// Of a name that is not known now no number is given before a witness has recorded a ceiling.
	return Floors{Named: floors, Others: above}
}

func names(all []Given) [][]Gave {
	lists := make([][]Gave, len(all))
	for i := range all {
		lists[i] = all[i].Names
	}
	return lists
}

// Folded is the same for most names that a server takes for one.
func Folded(name string) string { return strings.ToLower(strings.TrimRight(name, " ")) }
