package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// GiveBack sets the row to lowered, in one transaction with the checks that allow it. hit: the row
// stood at the end of seg, under the plan of seg.
func (st *Store) GiveBack(ctx context.Context, h segment.Share, name string, epoch uint64, seg segment.Segment, lowered uint64) (done, hit bool, err error) {
	args := []any{lowered, name, seg.Last()}
	if h.Plan != 0 {
		args = append([]any{h.Plan, h.ID}, args...)
	}
	err = st.TransactOnce(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, st.Table.giveBack(h.Plan != 0), args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return err
		}
		hit = true
		// The row is locked now. It may belong to another sequence, made above the tombstone of
		// seg's. Or the sequence was restarted, or must not give the numbers again.
		e := NoEntry()
		err = tx.QueryRowContext(ctx, "SELECT "+EntryOf+" FROM "+st.Table.Options+" AS o WHERE o.`name` = ? FOR UPDATE", name).Scan(e.Fields()...)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read tombstone: %w", err)
		}
		// The home of an ORDER sequence counts above all that was taken from the other members.
		if e.Floor >= seg.Next() || e.Past >= seg.Next() || e.Epoch > epoch || e.Def.Order && h.Shared() {
			return errTombstone
		}
		if !define.IsWorker(name) {
			if err := st.RefuseOthers(ctx, tx, name); err != nil {
				return err
			}
		}
		done = true
		return nil
	})
	switch {
	case errors.Is(err, errTombstone), errors.As(err, new(*RegisteredError)):
		return false, hit, nil
	case st.IsMoved(err) && !errors.Is(err, link.ErrOutcome):
		// nothing was done; on the next node the numbers are a gap
		return false, hit, nil
	}
	return done && err == nil, hit, err
}

// errTombstone rolls back: the sequence was dropped since, or counts above the numbers.
var errTombstone = errors.New("a tombstone reaches the numbers")
