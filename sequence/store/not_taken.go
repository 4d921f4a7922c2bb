package store

import (
	"context"
	"database/sql"
	"fmt"

	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
)

// notOneRow explains why a statement that takes numbers changed no row, or several.
func (st *Store) notOneRow(ctx context.Context, conn *sql.Conn, affected int64, t *Taking) Attempt {
	name, h := t.Name, t.Share
	if affected > 1 {
		return st.FailedWith(st.Unfit(st.Table.Sequence, fmt.Sprintf("%d rows are named %q", affected, name), "ALTER TABLE "+st.Table.Sequence+" ADD PRIMARY KEY (`name`)"))
	}
	stored, err := st.ReadRow(ctx, conn, name)
	if err != nil {
		return st.FailedWith(err) // ErrUnknown: no such row
	}
	st.LearnAs(name, &stored)
	if h.Plan != 0 {
		if err := st.obeys(ctx, conn, h); err != nil {
			return st.FailedWith(err)
		}
	}
	switch {
	case stored.Plan != h.Plan:
		return Ended(OutcomeOldPlan)
	case stored.Frozen:
		return Ended(OutcomeFrozen)
	case stored.ID < t.Low && stored.Epoch <= t.Epoch:
		return Attempt{Outcome: OutcomeWentBack, Row: stored.ID, Mark: t.Low, Err: fmt.Errorf("%w from %d to %d", OutcomeWentBack, t.Low, stored.ID)}
	case h.InSteps() && !h.Has(stored.ID) && stored.ID < st.Seen.Load().Max:
		a := Ended(OutcomeForeign)
		a.Row = stored.ID
		return a
	case !t.Used.Same(stored.Rule()):
		return Ended(OutcomeNewRule)
	case t.full == OutcomeUnwitnessed && stored.ID >= t.below:
		return Ended(OutcomeUnwitnessed)
	case t.UpTo.Grouped:
		return st.refused(ctx, conn, name, &stored)
	case t.below != 0 && stored.ID >= t.below:
		return Ended(OutcomeNoRoom)
	}
	return st.FailedWith(st.Momentary(fmt.Sprintf("sequence %q: its id stays at %d although it was raised", name, stored.ID),
		"look for triggers on the table, and for rows whose id is NULL"))
}

// refused explains why the condition of a reservation matched no row: OutcomeNotHolder or
// OutcomeAtCeiling.
func (st *Store) refused(ctx context.Context, conn *sql.Conn, name string, stored *Row) Attempt {
	now := st.Current()
	if now == nil {
		return st.FailedWith(link.ErrUnchosen)
	}
	record, err := st.Limits.Read(ctx, conn, limit.Scope{Name: name})
	if err != nil {
		return st.FailedWith(err)
	}
	l, err := st.Limits.Admitted(record, now, stored.Position())
	if err == nil {
		err = OutcomeAtCeiling
	}
	did := st.FailedWith(err)
	did.Asked, did.Ceiling = true, l.Granted
	return did
}
