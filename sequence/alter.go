package sequence

import (
	"context"
	"fmt"

	"seqproxy/sequence/define"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// Alteration says what to change; nil leaves an option as it is.
type Alteration struct {
	Increment *uint64
	Min       *uint64
	Max       *uint64 // 0: NO MAXVALUE
	Start     *uint64
	Cache     *uint64 // 0: adaptive
	Cycle     *bool
	Comment   *string
	OwnedBy   *define.Column // the zero Column: OWNED BY NONE
	OwnerMax  *uint64
	JSONSafe  *bool
	Cover     *uint64 // 0: as configured
	Order     *bool

	// Restart makes this the next number; 0 is the sequence's START. Without Force it only raises:
	// a number that may have been given is refused.
	Restart *uint64
	// Force lets Restart go down, see [Sequences.Alter].
	Force bool

	period bool // it is known to be of the counter of a period

	only uint64 // nothing is changed unless this is the version of the row; 0: whichever it is
}

// apply changes d.
func (a *Alteration) apply(d *define.Definition) {
	set(&d.Increment, a.Increment)
	set(&d.Min, a.Min)
	set(&d.Max, a.Max)
	set(&d.Start, a.Start)
	set(&d.Cache, a.Cache)
	set(&d.Cycle, a.Cycle)
	set(&d.Comment, a.Comment)
	set(&d.OwnedBy, a.OwnedBy)
	set(&d.OwnerMax, a.OwnerMax)
	set(&d.JSONSafe, a.JSONSafe)
	set(&d.Cover, a.Cover)
	set(&d.Order, a.Order)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Altered says what Alter did.
type Altered struct {
	Next  uint64 // the number after the last that anybody reserved; 0 if none is left
	Cycle bool   // the sequence repeats its numbers
}

// Alter changes a sequence. It holds for new numbers here when it returns, and at every other proxy
// within a second, which then gives up what it has in memory against the new options: those numbers
// are a gap.
//
// Order waits until every registered proxy has confirmed that it holds no numbers any more. If one
// does not confirm in time, the error is a *HeldError, and a sequence that was none with ORDER is
// none again, unless it was changed once more meanwhile.
//
// Restart with Force may go down. While another proxy is registered, also one that is silent, the
// sequence continues where it was and the error is a *RegisteredError that names the others. In a
// group that is not known before this proxy has known the primary for a while, for which it waits.
//
// Errors: ErrUnknown, ErrBadOption, *HeldError, *RegisteredError, ErrUnfit, ErrClosed, ctx's cause,
// *UnavailableError.
func (s *Sequences) Alter(ctx context.Context, name []byte, a Alteration) (Altered, error) {
	if !s.begin() {
		return Altered{}, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	if q, err := s.find(r.ctx, name, s.patience(r.ctx)); err == nil && q.periods != nil {
		return q.periods.alter(ctx, r, name, a)
	}
	switch {
	case a.Restart != nil && a.Force:
		q, err := s.find(r.ctx, name, s.patience(r.ctx))
		if err == nil {
			if err := q.mayAlter(&a); err != nil {
				return Altered{}, err
			}
		}
		if err == nil && !q.kind.IsPlain() {
			return s.restart(ctx, q.name, a)
		}
		return s.restart(ctx, string(name), a)
	case a.Order != nil && *a.Order:
		return s.makeOrdered(ctx, name, a)
	}
	changed, err := s.alter(r, name, a)
	if err != nil {
		return Altered{}, err
	}
	return alteredTo(&changed), nil
}

func alteredTo(r *store.Row) Altered {
	next, _ := r.Rule().Next(r.ID, r.Max)
	return Altered{Next: next, Cycle: r.Def.Cycle}
}

// alter changes the options of a sequence, and has this proxy obey them. If it returns the row with
// an error, they are changed, and a restart beside them is not confirmed; or they may be, as the
// outcome is unknown.
func (s *Sequences) alter(r request, name []byte, a Alteration) (changed store.Row, err error) {
	q, err := s.find(r.ctx, name, s.patience(r.ctx))
	if err == nil {
		err = q.mayAlter(&a)
	}
	if err != nil {
		return store.Row{}, err
	}
	changed, err = s.alterHere(r.ctx, q, a)
	if err == nil && a.Restart != nil {
		err = s.passedForGood(r.ctx, &changed)
	}
	if err != nil {
		return changed, r.failed(string(name), err)
	}
	if a.Cycle != nil && *a.Cycle {
		s.warnOfCycle(changed.Name)
	}
	return changed, nil
}

func (s *Sequences) alterHere(ctx context.Context, q *sequence, a Alteration) (changed store.Row, err error) {
	// What is reserved here before the change is seen would be of no use, and leave a gap behind a
	// restart.
	if err := q.numbers.Reserving.Acquire(ctx); err != nil {
		return store.Row{}, err
	}
	defer q.numbers.Reserving.Release()
	if changed, err = s.servers.Alter(ctx, q.name, a); err == nil {
		s.obeyHere(ctx, &changed)
	}
	return changed, err
}

// lower sets the row of a single server, which gives numbers again then.
func (of *lockedName) lower(ctx context.Context, r *store.Row) error {
	if _, err := of.ExecContext(ctx, "UPDATE "+of.v.Table.Sequence+" SET `id` = ? WHERE `name` = ?", r.ID, r.Name); err != nil {
		return fmt.Errorf("write the row: %w", err)
	}
	if err := of.v.Limits.Want(ctx, of.Tx, r.Name, r.ID); err != nil { // FORCE may raise it, too
		return err
	}
	if err := of.v.Limits.Lower(ctx, of.Tx, r.Name, r.ID); err != nil {
		return err
	}
	return of.writeEntry(ctx, &r.Entry, r.Name)
}

// cycle lets a sequence that has come to its end begin again at its minimum, and says how many
// numbers are left then.
func cycle(ctx context.Context, v *server, name string, need uint64) (left uint64, err error) {
	var found segment.Rule
	w := &view{Among: member.Among{Plan: Plan{Number: v.Share().Plan}, Members: []*server{v}}}
	err = w.amend(ctx, name, func(g *agreed) error {
		r := g.merged()
		found = r.Rule()
		if left = found.Remaining(r.ID, r.Max); left >= need || !r.Def.Cycle {
			return nil // somebody else was faster
		}
		r.ID, r.Anchor, r.Version = r.Def.Min-1, r.Def.Min, g.version
		found = r.Rule()
		if left = found.Remaining(r.ID, r.Max); left < need {
			return nil // it never has so many: nothing is saved
		}
		return g.best.lower(ctx, &r)
	})
	if err != nil {
		return 0, fmt.Errorf("begin sequence %q again: %w", name, err)
	}
	v.Rules.Set(name, found)
	return left, nil
}
