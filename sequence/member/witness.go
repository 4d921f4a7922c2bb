package member

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// One of several members gives the numbers of a sequence only up to a ceiling, which at least one
// other member, a witness, has recorded before under the plan in force. So if a member cannot be
// reached when it is removed, the others know above which number to continue, even if it lives on
// where nobody sees it. A witness that obeys the new plan records nothing under the old one.
//
// A witness has a row in the table of limits: `giver` is the member whose numbers these are, `term`
// the plan, and `wanted` the ceiling. The member itself has such a row too, and obeys its
// `granted`.
//
// A ceiling is far away, so that a member can be alone for long. At most that many numbers are
// skipped when it is removed.

// CeilingAhead is how far above the last number a member's ceiling is set, at most: weeks at 20,000
// numbers a second.
const CeilingAhead = 1 << 36

// RecordedCeiling is the ceiling of this member for a sequence under a plan, 0 if no witness has
// recorded one yet.
func (v *Server) RecordedCeiling(ctx context.Context, on link.Querier, name string, plan uint64) (ceiling uint64, err error) {
	if ceiling, ok := v.recorded.Get(plan, name); ok {
		return ceiling, nil
	}
	return v.readCeiling(ctx, on, name, plan)
}

// readCeiling is RecordedCeiling read anew: another process may have raised it.
func (v *Server) readCeiling(ctx context.Context, on link.Querier, name string, plan uint64) (ceiling uint64, err error) {
	err = on.QueryRowContext(ctx, "SELECT l.`granted` FROM "+v.Table.Limit+" AS l JOIN "+v.Table.Member+" AS m ON m.`one` = 1 AND m.`id` = l.`giver` AND m.`plan` = l.`term` "+
		"WHERE l.`name` = ? AND l.`term` = ?", name, plan).Scan(&ceiling)
	if err != nil && !errors.Is(err, sql.ErrNoRows) && !link.IsNoSuchText(err) {
		return 0, fmt.Errorf("read the ceiling of sequence %q from table %s: %w", name, v.Table.Limit, err)
	}
	if ceiling > 0 {
		v.recorded.Learn(plan, name, ceiling)
	}
	return ceiling, nil
}

// raiseByWitness raises the ceiling of v above n more numbers of a sequence. If no witness can
// record that, it returns how many that may be taken at once are below the present one.
func (v *Server) raiseByWitness(ctx context.Context, among *Among, name string, n uint64) (remaining uint64, err error) {
	h := v.Share()
	stored, err := v.Find(ctx, name)
	if err != nil {
		return 0, err
	}
	position := max(stored.Position(), v.Marks.Of(name))
	width, ok := v.Width(name, stored.Position(), n)
	if !ok {
		return 0, store.OutcomeNoRoom
	}
	before, _ := v.recorded.Get(h.Plan, name)
	known, err := v.readCeiling(ctx, v.Pool(), name, h.Plan)
	if err != nil {
		return 0, err
	}
	remaining = v.Remaining(name, &stored, min(known, stored.Max))
	if known > before && remaining >= n {
		return 0, nil // somebody else has raised it
	}
	ceiling := segment.CeilingAbove(max(position, stored.Position()+width), stored.Max, v.aheadOf(among, name))
	if err := v.RecordCeiling(ctx, among, h, name, ceiling); err != nil {
		return remaining, err
	}
	v.recorded.Learn(h.Plan, name, ceiling)
	return 0, nil
}

// coversAhead is how far a ceiling is set above the reserved ticks of a worker, in covers. So a
// member can be alone for at least half of them. If a member is removed that was away, its workers
// are free after all of them. The size of a reservation does not count: it may be for all the time
// that a worker was idle.
const coversAhead = 32

// aheadOf is how far a ceiling is set above a reservation, at most.
func (v *Server) aheadOf(among *Among, name string) uint64 {
	if define.IsWorker(name) {
		return v.CoverOf(name) * coversAhead
	}
	return among.Ahead
}

// witnessDue reports whether it is time to raise the ceiling, after numbers up to last were
// reserved.
func (v *Server) witnessDue(name string, h segment.Share, last, highest, ahead uint64) bool {
	ceiling, ok := v.recorded.Get(h.Plan, name)
	return ok && ceiling < highest && ceiling-min(last, ceiling) <= (segment.CeilingAbove(last, highest, ahead)-min(last, highest))/2
}

// raiseAhead raises the ceiling of v for n more numbers, unless that is in progress.
func (v *Server) raiseAhead(ctx context.Context, among *Among, name string, n uint64) {
	v.recorded.Once(name, func() {
		if _, err := v.raiseByWitness(ctx, among, name, n); err != nil {
			// who reaches it gets the error
			v.Log.Debug("ceiling not raised ahead", logfield.Sequence(define.ShownName(name)), logfield.Err(err))
		}
	})
}

// RecordCeiling makes other members record a ceiling of v, of which one is enough, and then v
// itself.
func (v *Server) RecordCeiling(ctx context.Context, among *Among, h segment.Share, name string, ceiling uint64) error {
	if among.Number != h.Plan {
		return store.OutcomeOldPlan
	}
	isThis := func(o *Server) bool { return o == v }
	others := slices.DeleteFunc(slices.Clone(among.Live()), isThis)
	if len(others) == 0 {
		others = slices.DeleteFunc(slices.Clone(among.Members), isThis)
	}
	failed := Each(ctx, others, func(ctx context.Context, _ int, o *Server) error {
		err := o.Record(ctx, h.Plan, limit.Limit{Name: name, Giver: h.ID, Wanted: ceiling})
		if err != nil && len(others) == 1 {
			return fmt.Errorf("%s: %w", o.Name(), err)
		}
		return err
	})
	if len(failed) == len(others) {
		all := errors.Join(failed...)
		if errors.Is(all, store.OutcomeOldPlan) || errors.Is(all, store.OutcomeFrozen) {
			return all
		}
		return fmt.Errorf("%w: have one of them answer, or take those that are gone for good out with SEQPROXY REMOVE SEQUENCE SERVER: %w", store.OutcomeUnwitnessed, all)
	}
	if err := v.Record(ctx, h.Plan, limit.Limit{Name: name, Giver: h.ID, Wanted: ceiling, Granted: ceiling}); err != nil {
		return err
	}
	v.Log.Info("ceiling recorded", logfield.Sequence(define.ShownName(name)), zap.Uint64("ceiling", ceiling), zap.Uint64("plan", h.Plan))
	return nil
}
