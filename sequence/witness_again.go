package sequence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// A member that was restored from an old backup may have forgotten ceilings of the others, and be
// the only one that could be asked when another one is taken out. Each knows its own. So a process
// has it record them again when it meets the members first, when one is back that was away, as any
// is that was restored, and when one of its rows has gone back.

// recordBatch bounds the ceilings in one transaction. Should the time end, the next round does the rest.
const recordBatch = 100

// mustRecordAgain reports whether a member may lack ceilings of the others. f.work is held.
func (f *follower) mustRecordAgain(w *view) bool {
	for _, v := range w.members {
		if v.follow.forgot.Swap(false) {
			f.recorded = nil
		}
	}
	return f.recorded != w
}

// recordAgain has each member that can be reached record how far the others go, as these say.
func (a *servers) recordAgain(ctx context.Context, w *view) error {
	live, plan := w.live(), w.plan.Number
	known := make([]map[limitOf]limited, len(live))
	failed := a.each(ctx, live, func(ctx context.Context, i int, v *server) (err error) {
		known[i], err = v.limits(ctx, v.pool(), plan)
		return err
	})
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return errors.Join(a.each(ctx, live, func(ctx context.Context, i int, v *server) error {
		var lacks []goal
		for j, o := range live {
			for of, l := range known[j] {
				if j != i && of.giver == o.share().id && l.granted > known[i][of].wanted {
					lacks = append(lacks, goal{giver: of.giver, name: of.name, ceiling: l.granted})
				}
			}
		}
		if len(lacks) == 0 {
			return nil
		}
		// In the order in which others lock them, too.
		slices.SortFunc(lacks, func(x, y goal) int { return strings.Compare(x.name+"\x00"+x.giver, y.name+"\x00"+y.giver) })
		for some := range slices.Chunk(lacks, recordBatch) {
			if err := v.record(ctx, plan, some...); err != nil {
				return fmt.Errorf("record the ceilings of others again: %w", err)
			}
		}
		v.log.Warn("ceilings recorded again", logfield.Sequence(lacks[0].name), zap.Int("ceilings", len(lacks)), zap.Uint64("plan", plan))
		return nil
	})...)
}

// limitOf names how far a member, of an id, may go with a sequence; limited is how far.
type (
	limitOf struct{ name, giver string }
	limited struct{ wanted, granted uint64 }
)

// limits are those that this server has recorded under a plan.
func (v *store) limits(ctx context.Context, on querier, plan uint64) (map[limitOf]limited, error) {
	all := make(map[limitOf]limited)
	rows, err := on.QueryContext(ctx, "SELECT `name`, `giver`, `wanted`, `granted` FROM "+v.table.limit+" WHERE `term` = ?", plan)
	if err != nil {
		return nil, fmt.Errorf("read the ceilings of table %s: %w", v.table.limit, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var of limitOf
		var l limited
		if err := rows.Scan(&of.name, &of.giver, &l.wanted, &l.granted); err != nil {
			return nil, fmt.Errorf("read the ceilings of table %s: %w", v.table.limit, err)
		}
		all[of] = l
	}
	return all, rows.Err()
}
