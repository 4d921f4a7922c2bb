package sequence

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// change agrees on a sequence that there is, calls f, and writes what f made of its definition and,
// if at is above, its rows.
func (w *view) change(ctx context.Context, name string, f func(g *agreed, r *store.Row) (at uint64, write bool, err error)) (changed store.Row, err error) {
	err = w.amend(ctx, name, func(g *agreed) error {
		for i := range g.all {
			if of := &g.all[i]; g.deleted(of) {
				finding, err := of.v.RowDeleted(ctx, of.Tx, g.name, g.top)
				return errors.Join(finding, err)
			}
		}
		changed = g.merged()
		at, write, err := f(g, &changed)
		if err != nil {
			return err
		}
		if !write {
			return g.settle(ctx)
		}
		changed.Version = g.version
		for i := range g.all {
			of := &g.all[i]
			to := max(at, of.ID)
			if !of.hasRow {
				to = max(at, g.top)
			}
			if err := of.write(ctx, &changed.Entry, g.name, to); err != nil {
				return err
			}
			changed.ID = max(changed.ID, of.ID)
		}
		return nil
	})
	return changed, err
}

// keepAbove is that of each member.
func (a *servers) keepAbove(ctx context.Context, w *view, name string, n uint64) error {
	return errors.Join(member.Each(ctx, w.Members, func(ctx context.Context, _ int, v *server) error { return v.Ceilings.KeepAbove(ctx, name, n) })...)
}

// dividable refuses a definition whose numbers several members cannot divide.
func (w *view) dividable(d *define.Definition) error {
	switch {
	case !w.Several():
	case !w.Members[0].Share().Divides(d.Increment):
		return store.NotDivided(w.Members[0].Share(), d.Name, d.Increment)
	case d.Cycle:
		return define.NeedsOneServer("sequence %q: CYCLE", d.Name)
	case d.Kind.HasClock() && w.Plan.Interleave == InterleaveStep:
		return define.NeedsOneServer("sequence %q: SNOWFLAKE with interleave = \"step\"", d.Name)
	}
	return nil
}

// Create makes the rows and their options, on a majority of the members at least.
func (a *servers) Create(ctx context.Context, o CreateOptions, def define.Definition) (made Created, err error) {
	err = a.Under(ctx, func(w *view) error {
		if err := w.dividable(&def); err != nil {
			return err
		}
		found, err := a.findAll(ctx, w, o.Name)
		switch {
		case err == nil && define.IsPeriod(found.Name) && !o.period:
			return &define.KindError{
				Sequence: o.Name, Kind: found.Def.Kind, Refused: "another sequence",
				WayOut: fmt.Sprintf("it counts in a period of sequence %q; create a sequence of another name", define.ShownName(found.Name)),
			}
		case o.period && (err == nil || member.IsUnfitRow(err)): // what its row is may be lost, and is said again
		case err == nil && (o.IfNotExists || !o.OrReplace):
			made, err = o.existing(&found)
			return err
		case err == nil && found.Def.Kind != def.Kind:
			return &define.KindError{Sequence: o.Name, Kind: found.Def.Kind, Refused: "another kind of keys", WayOut: "create a sequence of another name"}
		case err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrExhausted):
			return err
		}
		if err := w.fits(&def); err != nil || o.DryRun {
			return err
		}
		stored := define.StoredName(o.Name, def.Kind)
		row := func(e *edit) error { return e.makeRow(ctx, stored) }
		need := majority(len(w.Members))
		if define.IsWorker(stored) {
			need = 1 // of which one alone gives ticks, and all say the same of it
		}
		err = w.edit(ctx, need, stored, row, func(g *agreed) (err error) {
			made, err = g.create(ctx, &o, def)
			return err
		})
		made, err = o.outcome(made, err)
		return err
	})
	return made, err
}

// create makes the rows and their options, unless there is the sequence.
func (g *agreed) create(ctx context.Context, o *CreateOptions, def define.Definition) (made Created, err error) {
	if o.period {
		if err := g.mayBegin(o); err != nil {
			return made, err
		}
	}
	if g.live && (o.IfNotExists || !o.OrReplace) && (g.best.hasEntry || !o.period) {
		r := g.merged()
		if made, err = o.existing(&r); err == nil {
			err = g.settle(ctx)
		}
		return made, err
	}
	if err := g.refuseOtherKind(ctx, o.Name, def.Kind); err != nil {
		return made, err
	}
	made.Replaced = g.live
	limit := g.highest()
	if err := def.Check(limit); err != nil {
		return made, err
	}
	used := max(g.top, o.Floor) // without what the definition before says of its start
	e := store.NoEntry()
	for i := range g.all {
		of := &g.all[i]
		used, e.Past, e.Epoch = max(used, of.Floor), max(e.Past, of.Past), max(e.Epoch, of.Epoch)
	}
	e.Def, e.Anchor, e.Version, e.Past = def, def.Start, g.version, max(e.Past, used)
	e.Def.Name = ""
	// Other proxies may still give numbers of the sequence before.
	made.unordered = def.Order && (g.best != nil || g.marks.Of(g.name) > 0)
	e.Def.Order = def.Order && !made.unordered
	if e.Def.Order {
		e.Home = g.newHome()
	}
	made.row, made.above, made.Raised = g.name, max(used, def.Start-1), used >= def.Start
	if made.Raised && used > o.Floor {
		made.Given = used
	}
	for i := range g.all {
		if err := g.all[i].write(ctx, &e, g.name, made.above); err != nil {
			return made, err
		}
	}
	if made.First = g.first(def.Limit(limit)); made.First == 0 {
		return made, &NameError{Name: define.ShownName(g.name), Err: ErrExhausted}
	}
	return made, nil
}

// first is the lowest number that any member gives next; 0 if none is left.
func (g *agreed) first(highest uint64) (first uint64) {
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
func (g *agreed) newHome() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(g.name))
	return g.all[h.Sum32()%uint32(len(g.all))].h.ID
}

// Drop deletes the rows and leaves their tombstone. It returns the name as it was stored.
func (a *servers) Drop(ctx context.Context, name string) (stored string, err error) {
	err = a.Under(ctx, func(w *view) error {
		// A row that was made again under another spelling has the mark of the old one from then
		// on.
		found, err := a.findAll(ctx, w, name)
		switch {
		case err != nil && !errors.Is(err, ErrExhausted):
			return err
		case define.IsHidden(found.Name): // it says which ticks were used, or which numbers of a period
			return &NameError{Name: name, Err: ErrUnknown}
		}
		err = w.amend(ctx, define.StoredName(name, found.Def.Kind), func(g *agreed) error {
			stored = g.name
			return g.bury(ctx, g.version)
		})
		if err != nil {
			return fmt.Errorf("drop sequence %q: %w", name, err)
		}
		return nil
	})
	return stored, err
}

// Alter changes the options of a sequence, and raises its rows if it is restarted. Where the
// outcome is unknown it returns the row as it may be, too.
func (a *servers) Alter(ctx context.Context, name string, change Alteration) (changed store.Row, err error) {
	err = a.Under(ctx, func(w *view) (err error) {
		changed, err = w.change(ctx, name, func(g *agreed, r *store.Row) (at uint64, write bool, err error) {
			if change.only != 0 && r.Version != change.only {
				return 0, false, nil
			}
			r.WasOrder = r.Def.Order
			repeated := r.Def.Cycle
			if err := g.redefine(w, r, &change); err != nil {
				return 0, false, err
			}
			if repeated && !r.Def.Cycle {
				// what was reserved in rounds before says nothing any more of where the row may
				// stand
				r.Epoch = g.version
			}
			switch {
			case !r.Def.Order:
				r.Home = ""
			case !r.WasOrder:
				// else others go on where its home is, chosen or not, until they hear of this
				r.Home = g.newHome()
			}
			if r.Def.Order && w.Several() {
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
				force := ""
				if !w.Several() {
					force = fmt.Sprintf(". ALTER SEQUENCE %s RESTART WITH %d FORCE does that, while no other proxy is registered", define.Quote(define.ShownName(g.name)), first)
				}
				return 0, false, define.BadOption("sequence %q: RESTART WITH %d is not above %d, the last number that was given or reserved: it would repeat numbers%s",
					define.ShownName(g.name), first, g.top, force)
			}
			r.Anchor, r.Past = first, max(r.Past, first-1)
			return first - 1, true, nil
		})
		if link.HasCode(err, gomysql.ER_DATA_TOO_LONG, gomysql.ER_TRUNCATED_WRONG_VALUE_FOR_FIELD) || link.IsNoSuchText(err) {
			changed = store.Row{}
			return define.BadOption("sequence %q: the comment or the owner is too long, or no text: %v", define.ShownName(name), err)
		}
		if err != nil {
			if !errors.Is(err, link.ErrOutcome) {
				changed = store.Row{}
			}
			return fmt.Errorf("alter sequence %q: %w", define.ShownName(name), err)
		}
		if change.Restart != nil {
			err = a.keepAbove(ctx, w, changed.Name, changed.Past)
		}
		return err
	})
	return changed, err
}

// redefine changes a row's definition and what follows from it.
func (g *agreed) redefine(w *view, r *store.Row, change *Alteration) error {
	change.apply(&r.Def)
	r.Def = r.Def.Filled()
	named := r.Def
	named.Name = define.ShownName(g.name)
	highest := g.highest()
	r.FillIn(highest)
	return errors.Join(w.dividable(&named), named.Check(highest))
}

// restartAt checks the number that a sequence shall continue at.
func restartAt(r *store.Row, first uint64) (uint64, error) {
	if first == 0 {
		first = r.Def.Start
	}
	if first < r.Def.Min || first > r.Max {
		return 0, define.BadOption("sequence %q values are conflicting: RESTART WITH %d is not between MINVALUE %d and the maximum %d", define.ShownName(r.Name), first, r.Def.Min, r.Max)
	}
	return first, nil
}

// SetValue raises the rows if need be, and says which numbers in memory are passed over. next is
// the next number in memory here, or 0.
func (a *servers) SetValue(ctx context.Context, name string, n uint64, used bool, next uint64) (changed store.Row, ok bool, err error) {
	err = a.Under(ctx, func(w *view) (err error) {
		changed, err = w.change(ctx, name, func(g *agreed, r *store.Row) (at uint64, write bool, err error) {
			past, after := min(lastBefore(n, used), g.highest()), n
			if used {
				after = n + min(r.Rule().Step, math.MaxUint64-n)
			}
			held := next
			if held == 0 {
				held = g.first(r.Max)
			}
			if ok = held != 0 && after >= held; !ok {
				return 0, false, nil // run out, or behind
			}
			if past > r.ID {
				r.Anchor = max(n, 1)
			}
			r.Past = max(r.Past, past)
			return past, true, nil
		})
		if err != nil {
			return fmt.Errorf("set the value of sequence %q: %w", name, err)
		}
		if ok {
			err = a.keepAbove(ctx, w, name, lastBefore(n, used))
		}
		return err
	})
	return changed, ok, err
}

// RaiseAbove raises the rows to floor, and has the numbers up to there that are in memory given up.
// It returns the row, unless floor is beyond its end: also where that was above already, as after
// an attempt that was not answered.
func (a *servers) RaiseAbove(ctx context.Context, name string, floor uint64) (changed store.Row, raised bool, err error) {
	err = a.Under(ctx, func(w *view) (err error) {
		beyond := false
		changed, err = w.change(ctx, name, func(g *agreed, r *store.Row) (at uint64, write bool, err error) {
			if beyond = floor > r.Max; beyond {
				return 0, false, nil
			}
			raised = slices.ContainsFunc(g.all, func(of lockedName) bool { return of.ID < floor })
			write = raised || r.Past < floor
			r.Past = max(r.Past, floor)
			return floor, write, nil
		})
		switch {
		case err != nil:
			return fmt.Errorf("raise sequence %q: %w", name, err)
		case beyond:
			changed = store.Row{}
			return nil
		}
		return a.keepAbove(ctx, w, name, floor)
	})
	return changed, raised, err
}
