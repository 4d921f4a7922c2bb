package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"seqproxy/internal/await"
	"seqproxy/sequence/link"
)

// RaiseTo moves a counter below n to floor, and any other on by one number, or by one step, unless
// it stands at end. at is a position that the counter has at least; no numbers are put back from
// there. RaiseTo waits while the row is frozen.
func (st *Store) RaiseTo(ctx context.Context, name string, n, floor, end uint64) (at uint64, err error) {
	var frozen error
	for {
		at, low, err := st.TryRaise(ctx, name, n, floor, end)
		switch {
		case err != nil && ctx.Err() != nil:
			// an interrupted attempt says less than the one before
			return 0, cmp.Or(frozen, err)
		case err != nil || low == nil:
			return at, err
		}
		wait := st.Config.Link.Timing.Conflict
		if frozen = nil; low.Frozen { // else it thawed in this moment
			frozen, wait = OutcomeFrozen, st.Config.FrozenBackoff
		}
		if !await.Pause(ctx, await.Jitter(wait)) {
			return 0, fmt.Errorf("raise the counter of %q to %d: %w", name, floor, cmp.Or(frozen, context.Cause(ctx)))
		}
	}
}

// TryRaise is RaiseTo without waiting. low is the row if it is frozen, or below floor all the same.
func (st *Store) TryRaise(ctx context.Context, name string, n, floor, end uint64) (at uint64, low *Row, err error) {
	h := st.Share()
	seen, err := st.checked(ctx)
	if err != nil {
		return 0, nil, err
	}
	highest := seen.Max
	floor, ok := h.Rest(floor)
	if !ok || floor > highest {
		floor = highest // none of the numbers that remain belongs to this member
	}
	more := uint64(1)
	if h.InSteps() {
		more = h.Count // the row keeps its residue
	}
	// Under another plan the row may not stand there.
	text, args := st.Table.raise()+st.Table.underPlan(h.Plan), []any{n, floor, more, name, max(floor, min(end, highest))}
	at, moved, err := st.move(ctx, name, text, args)
	if err != nil {
		return 0, nil, fmt.Errorf("raise the counter of %q to %d: %w", name, floor, err)
	}
	if moved {
		return at, nil, nil
	}
	// It stood above, or is frozen at the end of its column and may go on below.
	stored, err := st.Find(ctx, name)
	switch {
	case err != nil:
		return 0, nil, err
	case stored.Plan != h.Plan:
		return 0, nil, OutcomeOldPlan
	case stored.Frozen || stored.ID < floor:
		return 0, &stored, nil
	}
	return floor, nil, nil
}

// move runs an UPDATE that moves a row, and returns where the row stands then.
func (st *Store) move(ctx context.Context, name, text string, args []any) (at uint64, moved bool, err error) {
	run := func(on link.Querier) error {
		result, err := on.ExecContext(ctx, text, args...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil || n == 0 {
			moved = false
			return err
		}
		id, err := result.LastInsertId() // the packet's 64 bits in an int64
		at, moved = uint64(id), true
		return err
	}
	if st.Grouped() {
		err = st.Transact(ctx, func(tx *sql.Tx) error {
			if err := run(tx); err != nil || !moved {
				return err
			}
			return st.Limits.Want(ctx, tx, name, at)
		})
		return at, moved, err
	}
	for attempt := 1; ; attempt++ {
		if err = run(st.Pool()); !link.IsConflict(err) || !st.MayRetry(ctx, attempt) {
			return at, moved, err
		}
	}
}
