package agree

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"

	"seqproxy/sequence/floor"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// Agreed is what members have of a name, and what they should have.
type Agreed struct {
	all     []lockedName
	marks   *floor.Marks
	name    string      // as it is stored
	version uint64      // of the change
	best    *lockedName // of the highest version; nil: nobody has heard of the name
	live    bool        // there is a sequence of that name
	top     uint64      // the highest id, or number that is not given any more for another reason
	missing []error     // why members are not among all
}

// agree finds out what members should have.
func (g *Agreed) agree() {
	g.top = g.marks.Of(g.name)
	for i := range g.all {
		of := &g.all[i]
		if of.hasRow {
			g.name = of.Name
		}
		g.top = max(g.top, of.given())
		switch {
		case !of.hasRow && !of.hasEntry:
		case g.best == nil, of.Version > g.best.Version, of.Version == g.best.Version && of.live() && !g.best.live():
			g.best = of
		}
	}
	g.top = max(g.top, g.marks.Of(g.name))
	g.live = g.best != nil && g.best.live()
	if g.live && g.best.h.Shared() {
		g.top = max(g.top, g.best.Past)
	}
}

// deleted reports whether the row of a member went other than by DROP SEQUENCE.
func (g *Agreed) deleted(of *lockedName) bool {
	return g.live && !of.hasRow && of.hasEntry && of.Version == g.best.Version
}

// refuseDeleted refuses what needs to know all numbers, if the row of a member was deleted.
func (g *Agreed) refuseDeleted(ctx context.Context) error {
	for i := range g.all {
		if of := &g.all[i]; g.deleted(of) {
			return of.rowDeleted(ctx, g)
		}
	}
	return nil
}

// rowDeleted returns the finding about the deleted row of a member.
func (of *lockedName) rowDeleted(ctx context.Context, g *Agreed) error {
	finding, err := of.v.RowDeleted(ctx, of.Tx, g.name, g.top)
	return errors.Join(finding, err)
}

// settle brings all members in line with the newest of them. A single server is, also if its row
// was made by hand.
func (g *Agreed) settle(ctx context.Context) error {
	if !g.best.h.Shared() {
		return nil
	}
	switch {
	case !g.live && g.best.Dropped():
		return g.bury(ctx, g.best.Version)
	case !g.live:
		return g.best.rowDeleted(ctx, g)
	}
	to := g.best.Entry
	if to.Version == 0 {
		to.Version = g.version // it was made by hand
	}
	for i := range g.all {
		of := &g.all[i]
		if g.deleted(of) || of.hasRow && of.Version == to.Version {
			continue
		}
		at := of.ID
		if !of.hasRow {
			at = g.top
		}
		if err := of.write(ctx, &to, g.name, at); err != nil {
			return err
		}
	}
	return nil
}

// bury leaves a tombstone everywhere.
func (g *Agreed) bury(ctx context.Context, version uint64) error {
	tomb := store.Tombstone()
	for i := range g.all {
		of := &g.all[i]
		tomb.Floor, tomb.Past, tomb.Epoch = max(tomb.Floor, of.Floor), max(tomb.Past, of.Past), max(tomb.Epoch, of.Epoch)
	}
	tomb.Def.Kind = g.best.Def.Kind
	tomb.Floor, tomb.Version = max(tomb.Floor, g.used()), version
	for i := range g.all {
		of := &g.all[i]
		if !of.hasRow && of.hasEntry && of.Version == version && of.Floor >= tomb.Floor {
			continue
		}
		if of.hasRow {
			if _, err := of.ExecContext(ctx, "DELETE FROM "+of.v.Table.Sequence+" WHERE `name` = ?", of.Name); err != nil {
				return fmt.Errorf("delete the row on %s: %w", of.v.Name(), err)
			}
		}
		if err := of.writeEntry(ctx, &tomb, g.name); err != nil {
			return err
		}
	}
	return nil
}

// used is the last key that applications may have made of numbers so far. With INCREMENT BY n some
// make the keys between two numbers themselves, as Hibernate does.
func (g *Agreed) used() uint64 {
	if g.best == nil || g.top < max(g.best.Anchor, 1) {
		return g.top // no number was given
	}
	return g.top + min(max(g.best.Def.Increment, 1)-1, g.highest()-min(g.top, g.highest()))
}

// highest is the highest number that the columns of all members hold.
func (g *Agreed) highest() uint64 {
	highest := uint64(math.MaxUint64)
	for i := range g.all {
		highest = min(highest, g.all[i].v.Seen.Load().Max)
	}
	return highest
}

// merged is the row as it is for all members.
func (g *Agreed) merged() store.Row {
	r := g.best.Row
	for i := range g.all {
		of := &g.all[i]
		r.ID, r.Max = max(r.ID, of.ID), min(r.Max, of.Row.Max)
	}
	r.Name, r.Version = g.name, max(r.Version, g.best.Version)
	return r
}

// first is the lowest number that any member gives next; 0 if none is left.
func (g *Agreed) first(highest uint64) (first uint64) {
	for i := range g.all {
		of := &g.all[i]
		next, ok := of.Rule().Next(of.ID, highest)
		switch h := of.h; {
		case h.InSteps():
			next, ok = h.Rule(segment.Rule{}, of.ID).Next(of.ID, highest)
		case h.InBlocks():
			h = store.ShareIn(h, g.name, of.Rule())
			if next, ok = h.End(of.ID, 0, 1); ok && next <= highest {
				seg := h.Segment(next, 1)
				next = seg.Next()
			}
			ok = ok && next <= highest
		}
		if ok && (first == 0 || next < first) {
			first = next
		}
	}
	return first
}

// newHome chooses the home of a new ORDER sequence, among the members that are there.
func (g *Agreed) newHome() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(g.name))
	return g.all[h.Sum32()%uint32(len(g.all))].h.ID
}
