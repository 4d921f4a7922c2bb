package agree

import (
	"testing"

	"seqproxy/sequence/floor"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// has is what one of two members has of a name.
type has struct {
	id      uint64 // of its row; 0: it has none
	version uint64 // of its entry; 0: it has none
	floor   uint64 // of a tombstone
	past    uint64
	plan    uint64 // where its plan begins
}

func TestTheEntryWithTheHigherVersionCounts(t *testing.T) {
	for name, c := range map[string]struct {
		members []has
		mark    uint64
		best    int // -1: nobody has heard of the name
		live    bool
		top     uint64
		deleted int // the member whose row somebody has deleted by hand; -1: none
	}{
		"nobody has heard of it":                       {[]has{{}, {}}, 0, -1, false, 0, -1},
		"both have it":                                 {[]has{{id: 30, version: 5}, {id: 40, version: 5}}, 0, 0, true, 40, -1},
		"one is behind":                                {[]has{{id: 30, version: 5}, {id: 40, version: 6}}, 0, 1, true, 40, -1},
		"one has not heard that it was dropped":        {[]has{{id: 30, version: 5}, {version: 6, floor: 40}}, 0, 1, false, 40, -1},
		"one has not heard that it was made again":     {[]has{{version: 6, floor: 40}, {id: 41, version: 7, floor: 40}}, 0, 1, true, 41, -1},
		"one has heard of nothing":                     {[]has{{}, {id: 41, version: 7}}, 0, 1, true, 41, -1},
		"a row was made by hand":                       {[]has{{id: 7}, {}}, 0, 0, true, 7, -1},
		"a row that was made by hand was dropped once": {[]has{{id: 7}, {version: 6, floor: 40}}, 0, 1, false, 40, -1},
		"the row of one was deleted by hand":           {[]has{{id: 30, version: 5}, {version: 5}}, 0, 0, true, 30, 1},
		"that of the first was":                        {[]has{{version: 5}, {id: 30, version: 5}}, 0, 1, true, 30, 0},
		"this process has had higher numbers":          {[]has{{id: 30, version: 5}, {id: 40, version: 5}}, 50, 0, true, 50, -1},
		"a plan begins above":                          {[]has{{id: 30, version: 5, plan: 60}, {id: 40, version: 5}}, 0, 0, true, 60, -1},
		"numbers above were passed over":               {[]has{{id: 30, version: 5, past: 70}, {id: 40, version: 5}}, 0, 0, true, 70, -1},
		"that is not known of one that was dropped":    {[]has{{version: 5, floor: 40, past: 70}, {version: 5, floor: 40}}, 0, 0, false, 40, -1},
		"a single server may have gone below its floor": {
			[]has{{id: 3, version: 5, floor: 40, past: 70}}, 0, 0, true, 3, -1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &Agreed{name: "photos", marks: floor.NewMarks()}
			if c.mark > 0 {
				g.marks.Raise("photos", c.mark)
			}
			for _, m := range c.members {
				entry := store.NoEntry()
				entry.Version, entry.Floor, entry.Past = m.version, m.floor, m.past
				of := lockedName{
					edit: &edit{h: segment.Share{Count: uint64(len(c.members))}},
					Row:  store.Row{Name: "photos", ID: m.id, Entry: entry}, hasRow: m.id > 0, hasEntry: m.version > 0, planFloor: m.plan,
				}
				g.all = append(g.all, of)
			}
			g.agree()
			best, deleted := -1, -1
			for i := range g.all {
				if g.best == &g.all[i] {
					best = i
				}
				if g.deleted(&g.all[i]) {
					deleted = i
				}
			}
			if best != c.best || g.live != c.live || g.top != c.top || deleted != c.deleted {
				t.Errorf("got member %d, live %v, top %d, deleted at %d; want %d, %v, %d, %d", best, g.live, g.top, deleted, c.best, c.live, c.top, c.deleted)
			}
		})
	}
}
