package agree

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// Change agrees on a sequence that there is, calls f, and writes what f made of its definition and,
// if at is above, its rows.
func (a Definitions) Change(ctx context.Context, name string, f func(g *Agreed, r *store.Row) (at uint64, write bool, err error)) (changed store.Row, err error) {
	err = a.amend(ctx, name, func(g *Agreed) error {
		if err := g.refuseDeleted(ctx); err != nil {
			return err
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

// Drop deletes the rows and leaves their tombstone. It returns the row that it found, with the name
// as it was stored.
func (a Definitions) Drop(ctx context.Context, name string) (dropped store.Row, err error) {
	// A row that was made again under another spelling has the mark of the old one from then on.
	found, err := a.Find(ctx, name)
	switch {
	case err != nil && !errors.Is(err, define.ErrExhausted):
		return store.Row{}, err
	case define.IsHidden(found.Name): // it says which ticks were used, or which numbers of a period
		return store.Row{}, &define.NameError{Name: name, Err: define.ErrUnknown}
	}
	err = a.amend(ctx, define.StoredName(name, found.Def.Kind), func(g *Agreed) error {
		if err := g.refuseDeleted(ctx); err != nil {
			return err // the tombstone would be too low
		}
		found.Name = g.name
		return g.bury(ctx, g.version)
	})
	if err != nil {
		return store.Row{}, fmt.Errorf("drop sequence %q: %w", name, err)
	}
	return found, nil
}

// Alter changes the options of a sequence, and raises its rows if it is restarted: unless only, if
// it is not 0, is another version than that of the row. Where the outcome is unknown it returns the
// row as it may be, too.
func (a Definitions) Alter(ctx context.Context, name string, asked define.Alteration, only uint64) (changed store.Row, err error) {
	changed, err = a.Change(ctx, name, func(g *Agreed, r *store.Row) (at uint64, write bool, err error) {
		if only != 0 && r.Version != only {
			return 0, false, nil
		}
		r.WasOrder = r.Def.Order
		repeated := r.Def.Cycle
		if err := a.redefine(ctx, g, r, &asked); err != nil {
			return 0, false, err
		}
		if repeated && !r.Def.Cycle {
			// what was reserved in rounds before says nothing any more of where the row may stand
			r.Epoch = g.version
		}
		switch {
		case !r.Def.Order:
			r.Home = ""
		case !r.WasOrder:
			// else others go on where its home is, chosen or not, until they hear of this
			r.Home = g.newHome()
		}
		if r.Def.Order && a.Several() {
			at = g.top // its home goes on above all others
		}
		top := g.top
		if r.Def.Increment != g.best.Def.Increment {
			top = g.used()
			at = max(at, top)
		}
		if asked.Floor <= r.Max {
			at, top, r.Past = max(at, asked.Floor), max(top, asked.Floor), max(r.Past, asked.Floor)
		}
		if asked.Restart == nil {
			return at, true, nil
		}
		first, err := RestartAt(r, *asked.Restart)
		if err != nil {
			return 0, false, err
		}
		if first <= top {
			force := ""
			if !a.Several() {
				force = fmt.Sprintf(". ALTER SEQUENCE %s RESTART WITH %d FORCE does that, while no other proxy is registered", define.Quote(define.ShownName(g.name)), first)
			}
			return 0, false, define.BadOption("sequence %q: RESTART WITH %d is not above %d, the last number that was given or reserved: it would repeat numbers%s",
				define.ShownName(g.name), first, top, force)
		}
		r.Anchor, r.Past = first, max(r.Past, first-1)
		return max(at, first-1), true, nil
	})
	if link.HasCode(err, gomysql.ER_DATA_TOO_LONG, gomysql.ER_TRUNCATED_WRONG_VALUE_FOR_FIELD) || link.IsNoSuchText(err) {
		return store.Row{}, define.BadOption("sequence %q: the comment or the owner is too long, or no text: %v", define.ShownName(name), err)
	}
	if err != nil {
		if !errors.Is(err, link.ErrOutcome) {
			changed = store.Row{}
		}
		return changed, fmt.Errorf("alter sequence %q: %w", define.ShownName(name), err)
	}
	if asked.Raises() {
		err = a.Members[0].Ceilings.KeepAbove(ctx, changed.Name, changed.Past)
	}
	return changed, err
}

// redefine changes a row's definition and what follows from it.
func (a Definitions) redefine(ctx context.Context, g *Agreed, r *store.Row, asked *define.Alteration) error {
	if err := g.refuseSecond(ctx, asked.OwnedBy); err != nil {
		return err
	}
	asked.Apply(&r.Def)
	r.Def = r.Def.Filled()
	named := r.Def
	named.Name = define.ShownName(g.name)
	highest := g.highest()
	r.FillIn(highest)
	return errors.Join(a.dividable(&named), named.Check(highest))
}

// RestartAt checks the number that a sequence shall continue at.
func RestartAt(r *store.Row, first uint64) (uint64, error) {
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
func (a Definitions) SetValue(ctx context.Context, name string, n uint64, used bool, next uint64) (changed store.Row, ok bool, err error) {
	changed, err = a.Change(ctx, name, func(g *Agreed, r *store.Row) (at uint64, write bool, err error) {
		past, after := min(lastBefore(n, used), g.highest()), n
		if used {
			after = n + min(r.Rule().Step, math.MaxUint64-n)
		}
		upcoming := next
		if upcoming == 0 {
			upcoming = g.first(r.Max)
		}
		if ok = upcoming != 0 && after >= upcoming; !ok {
			return 0, false, nil // run out, or behind
		}
		if past > r.ID {
			r.Anchor = max(n, 1)
		}
		r.Past = max(r.Past, past)
		return past, true, nil
	})
	if err != nil {
		return changed, ok, fmt.Errorf("set the value of sequence %q: %w", name, err)
	}
	if ok {
		err = a.Members[0].Ceilings.KeepAbove(ctx, name, lastBefore(n, used))
	}
	return changed, ok, err
}

// RaiseAbove raises the rows to floor, and has the numbers up to there that are in memory given up.
// It returns the row, unless floor is beyond its end: also where that was above already, as after
// an attempt that was not answered.
func (a Definitions) RaiseAbove(ctx context.Context, name string, floor uint64) (changed store.Row, raised bool, err error) {
	beyond := false
	changed, err = a.Change(ctx, name, func(g *Agreed, r *store.Row) (at uint64, write bool, err error) {
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
		return changed, raised, fmt.Errorf("raise sequence %q: %w", name, err)
	case beyond:
		return store.Row{}, raised, nil
	}
	return changed, raised, a.Members[0].Ceilings.KeepAbove(ctx, name, floor)
}

// BeginAgain lets a sequence that has come to its end begin again at its minimum, and says how many
// numbers are left then.
func BeginAgain(ctx context.Context, v *member.Server, name string, need uint64) (remaining uint64, err error) {
	var found segment.Rule
	began := false
	alone := Of(&member.Among{Number: v.Share().Plan, Members: []*member.Server{v}}, nil)
	err = alone.amend(ctx, name, func(g *Agreed) error {
		began = false
		r := g.merged()
		found = r.Rule()
		if remaining = found.Remaining(r.ID, r.Max); remaining >= need || !r.Def.Cycle {
			return nil // somebody else was faster
		}
		r.ID, r.Anchor, r.Version = r.Def.Min-1, r.Def.Min, g.version
		found = r.Rule()
		if remaining = found.Remaining(r.ID, r.Max); remaining < need {
			return nil // it never has so many: nothing is saved
		}
		began = true
		return g.best.lower(ctx, &r)
	})
	if err != nil {
		return 0, fmt.Errorf("begin sequence %q again: %w", name, err)
	}
	if began {
		v.Log.Warn("sequence with CYCLE begins again", logfield.Sequence(define.ShownName(name)))
	}
	v.Rules.Set(name, found)
	return remaining, nil
}

// lastBefore is the last number that a sequence does not give after SetValue.
func lastBefore(n uint64, used bool) uint64 {
	if !used && n > 0 {
		n--
	}
	return n
}

// Restart lowers the row of a single server in one transaction, in which no other proxy is
// registered. The row comes first: who reserves waits for it, or has reserved before, and so was
// registered before. enlisted fails unless all proxies have had the time to register with the node
// in use. ofPeriod: it is known to be the counter of a period. Where the outcome is unknown it
// returns the row as it may be, too.
func (a Definitions) Restart(ctx context.Context, name string, asked define.Alteration, ofPeriod bool, enlisted func() error) (done store.Row, was uint64, err error) {
	if a.Several() {
		return done, 0, define.NeedsOneServer("sequence %q: RESTART ... FORCE", name)
	}
	if err := a.Members[0].Proxies.RemoveDead(ctx); err != nil {
		return done, 0, err
	}
	err = a.amend(ctx, name, func(g *Agreed) error {
		done = store.Row{}
		if define.IsHidden(g.name) && !ofPeriod || g.merged().Def.Kind.HasClock() { // by the name of its row
			return &define.NameError{Name: name, Err: define.ErrUnknown}
		}
		if err := g.best.v.RefuseOthers(ctx, g.best.Tx, g.name); err != nil {
			return err
		}
		if err := enlisted(); err != nil { // another node has taken over meanwhile
			return err
		}
		g.best.Floor, g.best.Past = 0, 0 // those who held numbers are gone
		r := g.merged()
		if err := a.redefine(ctx, g, &r, &asked); err != nil {
			return err
		}
		first, err := RestartAt(&r, *asked.Restart)
		if err != nil {
			return err
		}
		was = r.ID
		r.ID, r.Anchor = first-1, first
		r.Version, r.Epoch = g.version, g.version // a new epoch begins
		if err := g.best.lower(ctx, &r); err != nil {
			return err
		}
		done = r
		return nil
	})
	if err != nil {
		return done, was, fmt.Errorf("restart sequence %q: %w", name, err)
	}
	return done, was, nil
}
