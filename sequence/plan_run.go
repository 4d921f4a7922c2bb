package sequence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.uber.org/zap"
)

// change makes a new plan and puts it in force.
func (r *planRun) change(change PlanChange) error {
	now, open, err := r.current()
	if err != nil {
		return err
	}
	if open != nil {
		return inProgress(open)
	}
	if err := r.sweep(); err != nil {
		return err
	}
	if err := r.draft(&now, change); err != nil {
		return err
	}
	if err := r.checkChange(change); err != nil {
		return err
	}
	if err := r.propose(); err != nil {
		return err
	}
	r.s.log.Info("change of sequence servers begun", zap.String("change", r.plan.UUID), zap.Uint64("plan", r.plan.Number),
		zap.String("from", addresses(r.plan.Previous)), zap.String("to", addresses(r.plan.Members)), zap.String("interleave", r.plan.Interleave))
	return r.finish()
}

// finish freezes, decides and starts.
func (r *planRun) finish() error {
	err := r.decide()
	var killed *hookError
	if err != nil && !errors.As(err, &killed) && !errors.Is(err, errTakenOver) {
		return errors.Join(err, r.undo())
	}
	if err != nil {
		return err
	}
	return r.begin(nil)
}

// decide does what comes before the decision, and it.
func (r *planRun) decide() error {
	r.letProxiesFill()
	if err := r.reachable(); err != nil {
		return err
	}
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		if err := r.freezeMember(v); err != nil {
			return err
		}
		if err := r.hook(planFrozen, m); err != nil {
			return err
		}
	}
	if err := r.reachable(); err != nil {
		return err // one went in the middle
	}
	if err := r.floors(); err != nil {
		return err
	}
	return r.vote(r.ctx, planDecided)
}

// floors reads what all members gave and writes it down on all.
func (r *planRun) floors() error {
	var all []floorOf
	limits, end := make(map[string]uint64), uint64(math.MaxUint64)
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		gave, err := v.gave(r.ctx, r.plan.Number)
		if err != nil {
			return err
		}
		all = append(all, gave...)
		if r.byBound {
			if gave, err = v.boundsOf(r.ctx); err != nil {
				return err
			}
			all = append(all, gave...)
		}
		last, err := v.limits(r.ctx, limits)
		if err != nil {
			return err
		}
		end = min(end, last)
	}
	all = r.bounded(all)
	setBounds(all, limits, end, r.s.servers.ahead)
	for _, m := range r.everyone() {
		if v, err := r.server(m.Address); err == nil {
			if err := r.writeFloors(v, all); err != nil {
				return err
			}
			if err := r.hook("floors", m); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin starts the plan, which is decided, on all members that can be reached. floors are those that were decided, nil if all have them.
func (r *planRun) begin(floors []floorOf) error {
	var theirs []defined
	for _, m := range r.plan.Previous {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		has, err := v.lookForOptions(r.ctx, v.pool())
		if err != nil {
			return r.undone(err)
		}
		more, err := v.definitions(r.ctx, v.pool(), has)
		if err != nil {
			return r.undone(err)
		}
		theirs = append(theirs, more...)
	}
	theirs = newest(theirs)
	started, away := 0, []string(nil)
	for _, m := range slices.Concat(r.plan.Members, r.plan.Previous) {
		v, err := r.server(m.Address)
		if err != nil {
			if !slices.Contains(away, m.Address) {
				away = append(away, m.Address)
			}
			continue
		}
		if floors != nil {
			if err := r.writeFloors(v, floors); err != nil {
				return r.undone(err)
			}
		}
		if err := r.startMember(v, m, theirs); err != nil {
			return r.undone(err)
		}
		started++
		if err := r.hook(PlanInForce, m); err != nil {
			return err
		}
	}
	if started == 0 {
		return r.undone(errors.New("no member can be reached"))
	}
	r.plan.State = PlanInForce
	r.s.log.Info("change of sequence servers done", zap.String("change", r.plan.UUID), zap.Uint64("plan", r.plan.Number),
		zap.String("servers", addresses(r.plan.Members)), zap.Strings("away", away))
	r.s.seeChanges(r.ctx)
	return nil
}

// undone is the error after the decision.
func (r *planRun) undone(err error) error {
	return &PlanError{
		Finding: fmt.Sprintf("change %s is decided, but was not finished", r.plan.UUID), Remedy: "SEQPROXY RESUME PLAN finishes it", Err: err,
	}
}

// undo aborts a change that failed before it was decided. The caller's patience may be over.
func (r *planRun) undo() error {
	ctx, stop := context.WithTimeoutCause(context.WithoutCancel(r.ctx), planUndo, errPatience)
	defer stop()
	if err := r.voteAgainst(ctx); err != nil {
		return &PlanError{
			Finding: fmt.Sprintf("change %s is neither done nor undone", r.plan.UUID), Remedy: "SEQPROXY RESUME PLAN or SEQPROXY ABORT PLAN ends it", Err: err,
		}
	}
	return nil
}

// voteAgainst has a majority vote against the change, and only then lets the members go on as before: one of them could otherwise give numbers, while a majority that
// knows nothing of that decides.
func (r *planRun) voteAgainst(ctx context.Context) error {
	if err := r.vote(ctx, planAborting); err != nil {
		return err
	}
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		if err := r.thawMember(ctx, v); err != nil {
			return err
		}
		if err := r.hook(planAborted, m); err != nil {
			return err
		}
	}
	r.s.log.Warn("change of sequence servers aborted", zap.String("change", r.plan.UUID), zap.Uint64("plan", r.plan.Number))
	return nil
}

// letProxiesFill tells all proxies that rows are going to be frozen, and waits a little for them to fill their caches.
func (r *planRun) letProxiesFill() {
	ctx, stop := context.WithTimeoutCause(r.ctx, planFill, errPatience)
	defer stop()
	for _, m := range r.plan.Previous {
		if v, err := r.server(m.Address); err == nil {
			v.announce(ctx)
		}
	}
	r.waitFilled(ctx)
}

// planFill bounds the wait for proxies that fill their caches.
const planFill = 2 * time.Second
