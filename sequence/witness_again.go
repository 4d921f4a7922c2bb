package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/member"
)

// A member that was restored from an old backup may have forgotten ceilings of the others, and be
// the only one that could be asked when another one is taken out. Each knows its own. So a process
// has it record them again when it meets the members first, when one is back that was away, as any
// is that was restored, and when one of its rows has gone back.

// recordBatch bounds the ceilings in one transaction. Should the time end, the next round does the
// rest.
const recordBatch = 100

// mustRecordAgain reports whether a member may lack ceilings of the others. f.work is held.
func (f *follower) mustRecordAgain(w *view) bool {
	for _, v := range w.members {
		if v.TakeForgot() {
			f.recorded = nil
		}
	}
	return f.recorded != w
}

// recordAgain has each member that can be reached record how far the others go, as these say.
func (a *servers) recordAgain(ctx context.Context, w *view) error {
	live, plan := w.live(), w.plan.Number
	known := make([][]limit.Limit, len(live))
	failed := member.Each(ctx, live, func(ctx context.Context, i int, v *server) (err error) {
		known[i], err = v.Limits.Of(ctx, v.Pool(), plan)
		return err
	})
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return errors.Join(member.Each(ctx, live, func(ctx context.Context, i int, v *server) error {
		type of struct{ name, giver string }
		has := make(map[of]uint64, len(known[i]))
		for _, l := range known[i] {
			has[of{l.Name, l.Giver}] = l.Wanted
		}
		var lacks []limit.Limit
		for j, o := range live {
			for _, l := range known[j] {
				if j != i && l.Giver == o.Share().ID && l.Granted > has[of{l.Name, l.Giver}] {
					lacks = append(lacks, limit.Limit{Name: l.Name, Giver: l.Giver, Wanted: l.Granted})
				}
			}
		}
		if len(lacks) == 0 {
			return nil
		}
		// In the order in which others lock them, too.
		slices.SortFunc(lacks, func(x, y limit.Limit) int {
			return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(x.Giver, y.Giver))
		})
		for some := range slices.Chunk(lacks, recordBatch) {
			if err := v.Record(ctx, plan, some...); err != nil {
				return fmt.Errorf("record the ceilings of others again: %w", err)
			}
		}
		v.Log.Warn("ceilings recorded again", logfield.Sequence(lacks[0].Name), zap.Int("ceilings", len(lacks)), zap.Uint64("plan", plan))
		return nil
	})...)
}
