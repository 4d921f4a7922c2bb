package sequence

import (
	"context"

	"seqproxy/sequence/define"
	"seqproxy/sequence/store"
)

// Alteration says what to change; see package define. How Force lets Restart go down is told at
// [Sequences.Alter].
type Alteration = define.Alteration

// Altered says what Alter did.
type Altered struct {
	Next  uint64 // the number after the last that anybody reserved; 0 if none is left
	Cycle bool   // the sequence repeats its numbers
}

// Alter changes a sequence. The change holds for new numbers here when Alter returns, and at every
// other proxy within a second. Each proxy then gives up what it has in memory and the new options
// do not allow: those numbers are a gap.
//
// Order waits until every registered proxy has confirmed that it holds no numbers any more. If one
// does not confirm in time, the error is a *CachedError, and a sequence that was none with ORDER is
// none again, unless it was changed once more meanwhile.
//
// Restart with Force may go down. While another proxy is registered, also one that is silent, the
// sequence continues where it was and the error is a *RegisteredError that names the others. In a
// group that is not known before this proxy has known the primary for a while, for which it waits.
//
// Errors: ErrUnknown, ErrBadOption, *CachedError, *RegisteredError, ErrUnfit, ErrClosed, ctx's
// cause, *UnavailableError.
func (s *Sequences) Alter(ctx context.Context, name []byte, a Alteration) (Altered, error) {
	if !s.begin() {
		return Altered{}, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	q, err := s.find(r.ctx, name, s.patience(r.ctx))
	switch {
	case err == nil && q.periods != nil:
		return resetRequest{r, q}.alter(ctx, name, a)
	case a.Restart != nil && a.Force:
		row := string(name) // if the sequence is not found here, the members find it
		if err == nil {
			if err := q.mayAlter(&a); err != nil {
				return Altered{}, err
			}
			if !q.kind.IsPlain() {
				row = q.name // the row of its counter
			}
		}
		return s.restart(ctx, row, a, false)
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

// alter changes the options of a sequence, and this proxy obeys them when it returns. A row that
// comes with an error was written, or may have been: the outcome is unknown, or a restart is not
// confirmed.
func (s *Sequences) alter(r request, name []byte, a Alteration) (changed store.Row, err error) {
	q, err := s.find(r.ctx, name, s.patience(r.ctx))
	if err == nil {
		err = q.mayAlter(&a)
	}
	if err != nil {
		return store.Row{}, err
	}
	changed, err = s.alterHere(r.ctx, q, a)
	if err == nil && a.Raises() {
		err = s.passedForGood(r.ctx, &changed)
	}
	if err != nil {
		return changed, r.failed(string(name), err)
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
	if changed, err = s.members.Alter(ctx, q.name, a, 0); err == nil {
		s.obeyHere(ctx, &changed)
	}
	return changed, err
}
