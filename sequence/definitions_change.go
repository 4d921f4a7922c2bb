package sequence

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// change agrees on a sequence that there is, calls f, and writes what f made of its definition and, if at is above, its rows.
func (a *servers) change(ctx context.Context, w *view, name string, f func(g *agreed, r *row) (at uint64, write bool, err error)) (changed row, err error) {
	err = a.edit(ctx, w, wholly, func(edits []edit, version uint64) error {
		g, err := a.agree(ctx, edits, name)
		if err != nil {
			return err
		}
		if !g.live {
			return &NameError{Name: name, Err: ErrUnknown}
		}
		for i := range g.all {
			if of := &g.all[i]; g.deleted(of) {
				finding, err := of.v.rowDeleted(ctx, of.Tx, g.name, g.top)
				return errors.Join(finding, err)
			}
		}
		changed = g.merged()
		changed.id = g.top
		at, write, err := f(g, &changed)
		if err != nil {
			return err
		}
		if !write {
			return g.settle(ctx, version)
		}
		changed.version = version
		for i := range g.all {
			of := &g.all[i]
			to := max(at, of.id)
			if !of.hasRow {
				to = max(at, g.top)
			}
			if err := of.write(ctx, &changed.entry, g.name, to); err != nil {
				return err
			}
			changed.id = max(changed.id, of.id)
		}
		return nil
	})
	return changed, err
}

// keepAbove is that of each member.
func (a *servers) keepAbove(ctx context.Context, w *view, name string, n uint64) error {
	return errors.Join(a.each(ctx, w.members, func(ctx context.Context, _ int, v *server) error { return v.keepAbove(ctx, name, n) })...)
}

// dividable refuses a definition whose numbers several members cannot divide.
func (w *view) dividable(d *Definition) error {
	switch {
	case !w.several():
	case d.Increment > 1:
		return needsOneServer("sequence %q: INCREMENT BY %d", d.Name, d.Increment)
	case d.Cycle:
		return needsOneServer("sequence %q: CYCLE", d.Name)
	}
	return nil
}

// createAll is create for several members.
func (a *servers) createAll(ctx context.Context, w *view, o CreateOptions, def Definition) (made Created, err error) {
	if err := w.dividable(&def); err != nil {
		return made, err
	}
	err = a.edit(ctx, w, majority(len(w.members)), func(edits []edit, version uint64) error {
		made = Created{}
		g, err := a.agree(ctx, edits, o.Name)
		if err != nil {
			return err
		}
		switch {
		case g.live && o.IfNotExists:
			made = Created{Existed: true, First: g.first(g.merged().max)}
			return g.settle(ctx, version)
		case g.live && !o.OrReplace:
			return &NameError{Name: g.name, Err: ErrExists}
		}
		made.Replaced = g.live
		limit := uint64(math.MaxUint64)
		for i := range g.all {
			limit = min(limit, g.all[i].v.seen.Load().max)
		}
		if err := def.check(limit); err != nil {
			return err
		}
		used := g.top // without what the definition before says of its start
		used = max(used, o.Floor)
		e := noEntry()
		for i := range g.all {
			of := &g.all[i]
			e.past, e.epoch = max(e.past, of.past), max(e.epoch, of.epoch)
		}
		if g.best == nil && used == 0 {
			e.past = 0
		}
		e.def, e.anchor, e.version, e.past = def, def.Start, version, max(e.past, used)
		e.def.Name = ""
		// Other proxies may still give numbers of the sequence before.
		made.unordered = def.Order && (g.best != nil || a.marks.of(g.name) > 0)
		e.def.Order = def.Order && !made.unordered
		if e.def.Order {
			e.home = g.newHome()
		}
		for i := range g.all {
			if err := g.all[i].write(ctx, &e, g.name, max(used, def.Start-1)); err != nil {
				return err
			}
		}
		if made.First = g.first(def.limit(limit)); made.First == 0 {
			return &NameError{Name: g.name, Err: ErrExhausted}
		}
		made.above, made.Raised = max(used, def.Start-1), used >= def.Start
		return nil
	})
	return o.outcome(made, err)
}

// first is the lowest number that any member gives next; 0 if none is left.
func (g *agreed) first(highest uint64) (first uint64) {
	for i := range g.all {
		of := &g.all[i]
		next, ok := uint64(0), false
		if h := of.h; h.inSteps() {
			next, ok = h.rule(rule{}, of.id).next(of.id, highest)
		} else if end, fits := h.end(of.id, 0, 1); fits {
			next, ok = end, end <= highest
		}
		if ok && (first == 0 || next < first) {
			first = next
		}
	}
	return first
}

// newHome chooses the home of a new ORDER sequence, among the members that are there.
func (g *agreed) newHome() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(g.name))
	return g.all[h.Sum32()%uint32(len(g.all))].h.id
}

// dropAll is drop for several members.
func (a *servers) dropAll(ctx context.Context, w *view, name string) (stored string, err error) {
	err = a.edit(ctx, w, wholly, func(edits []edit, version uint64) error {
		g, err := a.agree(ctx, edits, name)
		if err != nil {
			return err
		}
		if !g.live {
			return &NameError{Name: name, Err: ErrUnknown}
		}
		stored = g.name
		return g.bury(ctx, version)
	})
	if err != nil {
		return "", fmt.Errorf("drop sequence %q: %w", name, err)
	}
	return stored, nil
}

// alterAll is alter for several members.
func (a *servers) alterAll(ctx context.Context, w *view, name string, change Alteration) (row, error) {
	changed, err := a.change(ctx, w, name, func(g *agreed, r *row) (at uint64, write bool, err error) {
		limit := r.max
		for i := range g.all {
			limit = min(limit, g.all[i].v.seen.Load().max)
		}
		if change.only != 0 && r.version != change.only {
			return 0, false, nil
		}
		r.wasOrder = r.def.Order
		change.apply(&r.def)
		r.def = r.def.filled()
		named := r.def
		named.Name = g.name
		if err := errors.Join(w.dividable(&named), named.check(limit)); err != nil {
			return 0, false, err
		}
		r.max = r.def.limit(limit)
		switch {
		case !r.def.Order:
			r.home = ""
		case !r.wasOrder: // else others go on where its home is, chosen or not, until they hear of this
			r.home = g.newHome()
		}
		if r.def.Order {
			at = g.top // its home goes on above all others
		}
		if change.Restart == nil {
			return at, true, nil
		}
		first, err := restartAt(r, *change.Restart)
		if err != nil {
			return 0, false, err
		}
		if first <= g.top {
			return 0, false, badOption("sequence %q: RESTART WITH %d is not above %d, the last number that was given or reserved anywhere: it would repeat numbers",
				g.name, first, g.top)
		}
		r.anchor, r.past = first, max(r.past, first-1)
		return first - 1, true, nil
	})
	if hasCode(err, gomysql.ER_DATA_TOO_LONG, gomysql.ER_TRUNCATED_WRONG_VALUE_FOR_FIELD) || isNoSuchText(err) {
		return row{}, badOption("sequence %q: the comment or the owner is too long, or no text: %v", name, err)
	}
	if err != nil {
		if !errors.Is(err, errOutcome) {
			changed = row{}
		}
		return changed, fmt.Errorf("alter sequence %q: %w", name, err)
	}
	if change.Restart != nil {
		err = a.keepAbove(ctx, w, changed.name, changed.past)
	}
	return changed, err
}

// setValueAll is setValue for several members.
func (a *servers) setValueAll(ctx context.Context, w *view, name string, n uint64, used bool, next uint64) (changed row, ok bool, err error) {
	changed, err = a.change(ctx, w, name, func(g *agreed, r *row) (at uint64, write bool, err error) {
		past, after := n, n
		if used {
			after = n + min(1, math.MaxUint64-n)
		} else if n > 0 {
			past--
		}
		held := next
		if held == 0 {
			held = g.first(r.max)
		}
		if ok = held != 0 && after >= held; !ok {
			return 0, false, nil
		}
		for i := range g.all {
			past = min(past, g.all[i].v.seen.Load().max)
		}
		r.past = max(r.past, past)
		return past, true, nil
	})
	if err != nil {
		return row{}, false, fmt.Errorf("set the value of sequence %q: %w", name, err)
	}
	if ok {
		err = a.keepAbove(ctx, w, name, lastBefore(n, used))
	}
	return changed, ok, err
}

// raiseAll is raiseAbove for several members.
func (a *servers) raiseAll(ctx context.Context, w *view, name string, floor uint64) (changed row, raised bool, err error) {
	beyond := false
	changed, err = a.change(ctx, w, name, func(g *agreed, r *row) (at uint64, write bool, err error) {
		if beyond = floor > r.max; beyond {
			return 0, false, nil
		}
		raised = slices.ContainsFunc(g.all, func(of held) bool { return of.id < floor })
		if !raised && r.past >= floor {
			return 0, false, nil
		}
		r.past = max(r.past, floor)
		return floor, true, nil
	})
	if err != nil {
		return row{}, false, fmt.Errorf("raise sequence %q: %w", name, err)
	}
	if beyond {
		return row{}, false, nil
	}
	return changed, raised, a.keepAbove(ctx, w, name, floor)
}
