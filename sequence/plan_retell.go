package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// A member that was restored from an old backup may have forgotten how far the others may go (see plan_bound.go), and be the only one that could be asked when another one is taken out. The
// others know it themselves. So a process tells it again when it meets the members first, when one is back that was away, as any is that was restored, and when
// one of its rows has gone back.

// retellBatch bounds the bounds in one transaction. Should the time end, the next round does the rest.
const retellBatch = 100

// isRetelling reports whether bounds have to be told again among the members. f.work is held.
func (f *follower) isRetelling(w *view) bool {
	for _, v := range w.members {
		if v.follow.forgot.Swap(false) {
			f.retold = nil
		}
	}
	return f.retold != w
}

// retell has each member that can be reached know again how far the others may go by their own word.
func (a *servers) retell(ctx context.Context, w *view) error {
	live, plan := w.live(), w.plan.Number
	known, own := make([]map[string]uint64, len(live)), make([]map[string]uint64, len(live))
	failed := a.each(ctx, live, func(ctx context.Context, i int, v *server) (err error) {
		if known[i], err = v.boundsBy(ctx, v.pool(), "bound", plan); err == nil {
			own[i], err = v.boundsBy(ctx, v.pool(), "own_bound", plan)
		}
		return err
	})
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return errors.Join(a.each(ctx, live, func(ctx context.Context, i int, v *server) error {
		lacks := make(map[string]uint64)
		for j := range live {
			for name, bound := range own[j] {
				if j != i && bound > max(known[i][name], lacks[name]) {
					lacks[name] = bound
				}
			}
		}
		if len(lacks) == 0 {
			return nil
		}
		names := slices.Sorted(maps.Keys(lacks)) // in the order in which others lock them, too
		for some := range slices.Chunk(names, retellBatch) {
			err := v.transact(ctx, func(tx *sql.Tx) error {
				if err := v.refuseWhileChanging(ctx, tx); err != nil {
					return err
				}
				for _, name := range some {
					if err := v.writeBound(ctx, tx, plan, name, lacks[name], 0); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("tell the bounds of others again: %w", err)
			}
		}
		v.log.Warn("bounds told again", logfield.Sequence(names[0]), zap.Int("sequences", len(names)), zap.Uint64("plan", plan))
		return nil
	})...)
}

// boundsBy reads a column of bounds, by name. Names without one are left out.
func (v *store) boundsBy(ctx context.Context, on querier, column string, plan uint64) (map[string]uint64, error) {
	all := make(map[string]uint64)
	text := "SELECT `name`, `" + column + "` FROM " + v.table.start + " WHERE `plan` = ? AND `" + column + "` > 0"
	if err := v.eachName(ctx, on, func(name string, bound uint64) { all[name] = bound }, text, plan); err != nil {
		return nil, fmt.Errorf("read the bounds of table %s: %w", v.table.start, err)
	}
	return all, nil
}
