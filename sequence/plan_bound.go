package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/change"
)

// Where there are several members, each gives the numbers of a sequence up to a bound only, which at least one other member knows: it is
// written there first, under the plan in force. So should a member not be reached any more when it is taken out, the others know above
// which number to go on, whether or not it lives on where nobody sees it: the plan that is written on them stops every further raise of its
// bound.
//
// What a member was told by others it knows of, but does not go by itself: they may have told nobody else.
//
// A bound is far away, so that a member goes on alone for long; what is skipped when it is removed is at most that.

const (
	// boundAhead is how far above the last number a bound is set, at most: weeks at 20,000 numbers a second.
	boundAhead = 1 << 36
)

// bounds is what is remembered of the bounds that a member wrote down, under one plan. They only rise.
type bounds struct {
	mu      sync.Mutex
	plan    uint64              // guarded by mu
	of      map[string]uint64   // guarded by mu; by the table's spelling
	raising map[string]struct{} // guarded by mu; those that are raised ahead of need
}

// under makes sure that what is remembered belongs to a plan. b.mu is held.
func (b *bounds) under(plan uint64) {
	if b.plan != plan || b.of == nil {
		b.plan, b.of, b.raising = plan, make(map[string]uint64), make(map[string]struct{})
	}
}

func (b *bounds) get(plan uint64, name string) (bound uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.under(plan)
	bound, ok = b.of[name]
	return bound, ok
}

func (b *bounds) learn(plan uint64, name string, bound uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.under(plan)
	b.of[name] = max(b.of[name], bound)
}

// bound is how far this member may go with a sequence under a plan. It is 0 if that was not written down yet.
func (v *server) bound(ctx context.Context, on execer, name string, plan uint64) (bound uint64, err error) {
	if bound, ok := v.bounds.get(plan, name); ok {
		return bound, nil
	}
	return v.readBound(ctx, on, name, plan)
}

// readBound is bound as it stands now: another process may have raised it. Before the member obeys the plan it may have to take back what it was told.
func (v *server) readBound(ctx context.Context, on execer, name string, plan uint64) (bound uint64, err error) {
	err = on.QueryRowContext(ctx, "SELECT f.`own_bound` FROM "+v.table.start+" AS f JOIN "+v.table.member+" AS m ON m.`one` = 1 AND m.`plan` = f.`plan` "+
		"WHERE f.`plan` = ? AND f.`name` = ?", plan, name).Scan(&bound)
	if err != nil && !errors.Is(err, sql.ErrNoRows) && !isNoSuchText(err) {
		return 0, fmt.Errorf("read the bound of sequence %q from table %s: %w", name, v.table.start, err)
	}
	if bound > 0 {
		v.bounds.learn(plan, name, bound)
	}
	return bound, nil
}

// raiseBound has n more numbers of a sequence be below the bound of v. It says how many of those
// that may be taken at once are below it as things stand, if it fails because no other member can
// be told.
func (a *servers) raiseBound(ctx context.Context, v *server, name string, n uint64) (left uint64, err error) {
	h := v.share()
	stored, err := v.find(ctx, name)
	if err != nil {
		return 0, err
	}
	position := max(stored.position(), v.marks.of(name))
	width, ok := v.width(name, stored.position(), n)
	if !ok {
		return 0, outcomeNoRoom
	}
	before, _ := v.bounds.get(h.plan, name)
	known, err := v.readBound(ctx, v.pool(), name, h.plan)
	if err != nil {
		return 0, err
	}
	left = v.left(name, &stored, min(known, stored.max))
	if known > before && left >= n {
		return 0, nil // somebody else has raised it
	}
	bound := change.BoundAbove(max(position, stored.position()+width), stored.max, a.ahead)
	if err := a.tellBound(ctx, v, h.plan, name, bound); err != nil {
		return left, err
	}
	v.bounds.learn(h.plan, name, bound)
	return 0, nil
}

// boundDue reports whether it is time to raise the bound, after numbers up to last were reserved.
func (v *server) boundDue(name string, h share, last, highest, ahead uint64) bool {
	bound, ok := v.bounds.get(h.plan, name)
	return ok && bound < highest && bound-min(last, bound) <= (change.BoundAbove(last, highest, ahead)-min(last, highest))/2
}

// raiseNext raises the bound of v for n numbers more, unless somebody does.
func (a *servers) raiseNext(ctx context.Context, v *server, name string, n uint64) {
	b := &v.bounds
	b.mu.Lock()
	b.under(v.share().plan)
	_, begun := b.raising[name]
	b.raising[name] = struct{}{}
	b.mu.Unlock()
	if begun {
		return
	}
	if _, err := a.raiseBound(ctx, v, name, n); err != nil {
		v.log.Debug("bound not raised ahead", logfield.Sequence(name), logfield.Err(err)) // who reaches it is told
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.raising, name)
}

// saveBound writes a bound of a sequence down on this member, if it obeys the plan and none is being made. own is how far this one itself may go with it:
// 0 if it is another's bound.
func (v *store) saveBound(ctx context.Context, plan uint64, name string, bound, own uint64) error {
	return v.transact(ctx, func(tx *sql.Tx) error {
		if err := v.refuseWhileChanging(ctx, tx); err != nil {
			return err
		}
		return v.writeBound(ctx, tx, plan, name, bound, own)
	})
}

// writeBound is the part of saveBound within a transaction that a change of plans waits for.
func (v *store) writeBound(ctx context.Context, tx *sql.Tx, plan uint64, name string, bound, own uint64) error {
	if err := v.mustObey(ctx, tx, plan); err != nil {
		return err
	}
	// The floor of a name that the plan did not know is that of all such names.
	_, err := tx.ExecContext(ctx, "INSERT INTO "+v.table.start+" (`plan`, `name`, `floor`, `bound`, `own_bound`) SELECT d.`plan`, d.`name`, IFNULL(f.`floor`, 0), d.`bound`, d.`own` FROM "+
		"(SELECT CAST(? AS UNSIGNED) AS `plan`, ? AS `name`, CAST(? AS UNSIGNED) AS `bound`, CAST(? AS UNSIGNED) AS `own`) AS d LEFT JOIN "+v.table.plan+" AS f ON f.`number` = d.`plan` "+
		"ON DUPLICATE KEY UPDATE `bound` = GREATEST("+v.table.start+".`bound`, VALUES(`bound`)), "+
		"`own_bound` = GREATEST("+v.table.start+".`own_bound`, VALUES(`own_bound`))", plan, name, bound, own)
	if err != nil {
		return fmt.Errorf("write a bound to table %s: %w", v.table.start, err)
	}
	return nil
}

// tellBound writes a bound of a member down on the others, of which one is enough, and then on itself.
func (a *servers) tellBound(ctx context.Context, v *server, plan uint64, name string, bound uint64) error {
	w := a.view.Load()
	if w.plan.Number != plan {
		return outcomeOldPlan
	}
	isThis := func(o *server) bool { return o == v }
	others := slices.DeleteFunc(slices.Clone(w.live()), isThis)
	if len(others) == 0 {
		others = slices.DeleteFunc(slices.Clone(w.members), isThis)
	}
	failed := a.each(ctx, others, func(ctx context.Context, _ int, o *server) error {
		err := o.saveBound(ctx, plan, name, bound, 0)
		if err != nil && len(others) == 1 {
			return fmt.Errorf("%s: %w", o.name(), err)
		}
		return err
	})
	if len(failed) == len(others) {
		all := errors.Join(failed...)
		if errors.Is(all, outcomeOldPlan) || errors.Is(all, outcomeFrozen) {
			return all
		}
		return fmt.Errorf("%w: have one of them answer, or take those that are gone for good out with SEQPROXY REMOVE SEQUENCE SERVER: %w", outcomeAtBound, all)
	}
	if err := v.saveBound(ctx, plan, name, bound, bound); err != nil {
		return err
	}
	v.log.Info("bound raised", logfield.Sequence(name), zap.Uint64("bound", bound), zap.Uint64("plan", plan))
	return nil
}
