package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
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
	// boundShare is of what is left of the sequence: a bound is at most this part of it ahead.
	boundShare = 256
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

// boundAbove is the bound that is set for a sequence whose last number is position, and that ends at highest.
func boundAbove(position, highest, ahead uint64) uint64 {
	left := highest - min(position, highest)
	return min(position, highest) + min(ahead, left/boundShare)
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

// raiseBound has n more numbers of a sequence be below the bound of v. It says how many of those that may be taken at once are below it as things stand, if
// it fails because no other member can be told.
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
	bound := boundAbove(max(position, stored.position()+width), stored.max, a.ahead)
	if err := a.tellBound(ctx, v, h.plan, name, bound); err != nil {
		return left, err
	}
	v.bounds.learn(h.plan, name, bound)
	return 0, nil
}

// boundDue reports whether it is time to raise the bound, after numbers up to last were reserved.
func (v *server) boundDue(name string, h share, last, highest, ahead uint64) bool {
	bound, ok := v.bounds.get(h.plan, name)
	return ok && bound < highest && bound-min(last, bound) <= min(ahead, (highest-min(last, highest))/boundShare)/2
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
func (v *server) saveBound(ctx context.Context, plan uint64, name string, bound, own uint64) error {
	return v.transact(ctx, func(tx *sql.Tx) error {
		if err := v.refuseWhileChanging(ctx, tx); err != nil {
			return err
		}
		return v.writeBound(ctx, tx, plan, name, bound, own)
	})
}

// writeBound is the part of saveBound within a transaction that a change of plans waits for.
func (v *server) writeBound(ctx context.Context, tx *sql.Tx, plan uint64, name string, bound, own uint64) error {
	var now uint64
	if err := tx.QueryRowContext(ctx, "SELECT `plan` FROM "+v.table.member+" WHERE `one` = 1 LOCK IN SHARE MODE").Scan(&now); err != nil {
		return fmt.Errorf("read table %s: %w", v.table.member, err)
	}
	if now != plan {
		return outcomeOldPlan
	}
	// The floor of a name that the plan did not know is that of all such names.
	_, err := tx.ExecContext(ctx, "INSERT INTO "+v.table.start+" (`plan`, `name`, `floor`, `bound`, `own_bound`) SELECT d.`plan`, d.`name`, IFNULL(f.`floor`, 0), d.`bound`, d.`own` FROM "+
		"(SELECT CAST(? AS UNSIGNED) AS `plan`, ? AS `name`, CAST(? AS UNSIGNED) AS `bound`, CAST(? AS UNSIGNED) AS `own`) AS d LEFT JOIN "+v.table.start+" AS f ON f.`plan` = d.`plan` AND f.`name` = '' "+
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

// reachable makes sure that all members can be reached but for one that is removed, and that it is known how far that one went: from the operator's word, or from its
// bounds. Applications that count in the table itself know of no bound.
func (r *planRun) reachable() error {
	for _, m := range r.everyone() {
		_, err := r.server(m.Address)
		if err == nil {
			continue
		}
		if hasMember(r.plan.Members, m.ID) {
			return &PlanError{
				Finding: fmt.Sprintf("sequence server %s cannot be reached, and a change needs all but the one that is removed", m.Address),
				Remedy:  "bring it back, or remove it first", Err: err,
			}
		}
		if err := r.mayMiss(m, err); err != nil {
			return err
		}
	}
	return nil
}

// mayMiss makes sure that a member can be removed that cannot be reached.
func (r *planRun) mayMiss(m Member, why error) error {
	if r.asked.Force && r.asked.Above > 0 {
		return nil
	}
	blocks := r.plan.Interleave == InterleaveBlock
	if len(r.plan.Previous) == 1 || !blocks && !r.s.servers.tuning.Load().NoDirectWriters {
		return &PlanError{
			Finding: "nobody knows which numbers " + m.Address + " gave, and it cannot be reached",
			Remedy: "bring it back; or make sure that it stays off, and say FORCE ABOVE n, a number above all that it can have given" +
				"; or where no application counts in the tables itself: direct_writers = false under [sequence]", Err: why,
		}
	}
	if len(r.plan.Previous) == 2 && !r.asked.Force { // both would hold that the other one is gone
		return &PlanError{
			Finding: m.Address + " cannot be reached, and one member alone cannot tell whether the other was told to go on without it",
			Remedy:  "bring it back; or make sure that it stays off, and say FORCE", Err: why,
		}
	}
	r.byBound = true
	return r.ordersAway(m, why)
}

// ordersAway makes sure that a member that is away is the home of no ORDER sequence, unless the operator says that it is off. Numbers that
// it gives on are below those that its bound has others begin with: not the same, but in no order.
func (r *planRun) ordersAway(away Member, cause error) error {
	if r.asked.Force {
		return nil
	}
	for _, m := range r.plan.Previous {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		all, err := v.definitions(r.ctx, v.pool())
		if err != nil {
			return err
		}
		for i := range all {
			d := &all[i]
			if !d.live || !d.def.Order {
				continue
			}
			// As servers.home has it.
			home := r.plan.Previous[max(0, slices.IndexFunc(r.plan.Previous, func(m Member) bool { return m.ID == d.home }))]
			if home.ID == away.ID {
				return &PlanError{
					Finding: fmt.Sprintf("%s is the home of ORDER sequence %q, and cannot be reached: it may give lower numbers after others give higher ones", home.Address, d.name),
					Remedy:  "bring it back; or make sure that it stays off, and say FORCE", Err: cause,
				}
			}
		}
	}
	return nil
}

// boundsOf appends the bounds that a member knows of under the plan that it obeyed so far, as floors of the next one. It is frozen.
func (v *server) boundsOf(ctx context.Context, on querier, all []floorOf) ([]floorOf, error) {
	was, _, err := v.membership(ctx, on)
	if err != nil {
		return nil, err
	}
	if all, err = v.namesWith(ctx, on, all, "SELECT `name`, `bound` FROM "+v.table.start+" WHERE `plan` = ? AND `bound` > 0 AND `name` <> ''", was.Plan); err != nil {
		return nil, fmt.Errorf("read the bounds of plan %d: %w", was.Plan, err)
	}
	return all, nil
}

// setBounds sets the bounds of the new plan's floors. limits are where sequences end, as far as that is known.
func setBounds(all []floorOf, limits map[string]uint64, end, ahead uint64) {
	for i := range all {
		f := &all[i]
		if f.name == "" {
			continue // of a name that is not known now no number is given before its bound was written down
		}
		highest, ok := limits[folded(f.name)]
		if !ok {
			highest = end
		}
		f.bound = boundAbove(f.floor, highest, ahead)
	}
}

// limits reads where the sequences end that a member knows, and adds them where they are lower than what is known.
func (v *server) limits(ctx context.Context, into map[string]uint64) (end uint64, err error) {
	all, err := v.definitions(ctx, v.pool())
	if err != nil {
		return 0, err
	}
	end = v.seen.Load().max
	for i := range all {
		name, limit := folded(all[i].name), all[i].def.limit(end)
		if known, ok := into[name]; !ok || limit < known {
			into[name] = limit
		}
	}
	return end, nil
}

// folded is the same for most names that a server takes for one.
func folded(name string) string { return strings.ToLower(strings.TrimRight(name, " ")) }
