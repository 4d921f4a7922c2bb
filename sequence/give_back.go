package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// takeBack undoes a reservation that cannot be remembered, so that nobody may have its numbers. If
// it cannot be undone they are a gap.
func (v *server) takeBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) {
	was := v.marks.Lower(name, seg)
	done, err := v.giveBack(ctx, name, epoch, seg)
	if !done && !errors.Is(err, link.ErrOutcome) {
		// else the row may stand there, which is no row gone back
		v.marks.Restore(name, was)
	}
	v.counters.lose(name, returnedOr(UnusedRefused, done), seg.Remaining())
}

// giveBack lowers the row to just below seg if nobody has reserved since, and reports whether it
// did. It does not while another proxy is registered: for that one a row that is lower than it was
// has gone back, unless the row counts the ticks of a worker.
func (v *server) giveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (done bool, err error) {
	h := v.shareOf(name, segment.Simple)
	if seg.Plan != h.Plan || h.Shared() && !h.Owns(seg.Last()) {
		return false, nil
	}
	lowered := seg.Next() - 1
	if h.InSteps() {
		lowered = seg.Next() - h.Count // the row keeps its residue
	}
	// Refused in the transaction, too. To ask before spares it, and the lock on the list, where
	// several proxies are the rule.
	if !define.IsWorker(name) {
		others, err := v.others(ctx, v.Pool(), "")
		switch {
		case v.IsMoved(err): // on the next node they are a gap
			return false, nil
		case err != nil || len(others) > 0:
			return false, err
		}
	}
	v.lowest.lower(name)
	defer v.lowest.lower(name)
	done, hit, err := v.putBack(ctx, h, name, epoch, seg, lowered)
	if (done || hit && errors.Is(err, link.ErrOutcome)) && v.lowest.of(name, epoch, h.Plan) == seg.Last() {
		// the row may stand there
		v.lowest.set(name, epoch, h.Plan, lowered)
	}
	return done, err
}

// putBack is the transaction of giveBack: it has the row stand at lowered. hit: the row stood at
// the end of seg, under the plan of seg.
func (st *store) putBack(ctx context.Context, h segment.Share, name string, epoch uint64, seg segment.Segment, lowered uint64) (done, hit bool, err error) {
	args := []any{lowered, name, seg.Last()}
	if h.Plan != 0 {
		args = append([]any{h.Plan, h.ID}, args...)
	}
	err = st.TransactOnce(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, st.table.giveBack(h.Plan != 0), args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return err
		}
		hit = true
		// The row is locked now. It may be another sequence's, made above the tombstone of the one
		// that seg is of. Or the sequence was restarted, or goes on above them because they are
		// somebody's.
		e := noEntry()
		err = tx.QueryRowContext(ctx, "SELECT "+entryOf+" FROM "+st.table.options+" AS o WHERE o.`name` = ? FOR UPDATE", name).Scan(e.fields()...)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read tombstone: %w", err)
		}
		// The home of an ORDER sequence goes on above all that was taken from the other members.
		if e.floor >= seg.Next() || e.past >= seg.Next() || e.epoch > epoch || e.def.Order && h.Shared() {
			return errTombstone
		}
		if !define.IsWorker(name) {
			if err := st.refuseOthers(ctx, tx, name); err != nil {
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
		// nothing was done, and on the next node they are a gap
		return false, hit, nil
	}
	return done && err == nil, hit, err
}

// errTombstone undoes a giving back: the sequence was dropped since, or goes on above the numbers.
var errTombstone = errors.New("a tombstone reaches the numbers")
