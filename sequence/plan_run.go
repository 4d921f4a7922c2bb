package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// change makes a new plan and puts it in force. The same change that was begun before, by a coordinator that may have died, is ended first: then it is made already, or
// undone and made anew.
func (r *planRun) change(change PlanChange) error {
	if change.Add != "" {
		o, err := r.s.serverOptions(change.Add)
		if err != nil {
			return err
		}
		change.Add = o.Addr // with its port
	}
	r.asked = change
	now, open, err := r.current()
	if err != nil {
		return err
	}
	if open != nil {
		if !open.makes(change) {
			return inProgress(open)
		}
		if made, err := r.end(open); made || err != nil {
			return err
		}
		if now, open, err = r.again(); err != nil {
			return err
		}
		if open != nil {
			return inProgress(open)
		}
	}
	brought, err := r.reconcile(&now, change.Add)
	if err != nil {
		return err
	}
	if brought && now.makes(change) { // by a coordinator that died when it was decided
		r.plan = now
		return nil
	}
	if err := r.draft(&now); err != nil {
		return err
	}
	if err := r.checkChange(); err != nil {
		return err
	}
	if err := r.propose(); err != nil {
		return err
	}
	r.s.log.Info("change of sequence servers begun", zap.String("change", r.plan.UUID), zap.Uint64("plan", r.plan.Number),
		zap.String("from", addresses(r.plan.Previous)), zap.String("to", addresses(r.plan.Members)), zap.String("interleave", r.plan.Interleave))
	if err := r.decide(); err != nil {
		if r.isOver(err) {
			return err
		}
		return r.undo(err)
	}
	return r.begin()
}

// again has r begin anew, after it has ended what another began.
func (r *planRun) again() (now Plan, open *Plan, err error) {
	for address := range r.away {
		if v := r.opened[address]; v != nil {
			_ = v.close() // it may be reached by now
			delete(r.opened, address)
		}
	}
	clear(r.away)
	r.plan, r.base, r.ballot, r.byBound = Plan{}, 0, 0, false
	return r.current()
}

// end ends a change that another began: it finishes one that is decided, and undoes any other. All who do that come to the same.
func (r *planRun) end(open *Plan) (made bool, err error) {
	r.plan = *open
	r.plan.Coordinator = r.s.servers.first().registry.host
	decided, err := r.takeOver()
	if err != nil {
		return false, err
	}
	r.s.log.Warn("change of sequence servers taken over", zap.String("change", open.UUID), zap.String("from", open.Coordinator), zap.Uint64("plan", open.Number),
		zap.Bool("decided", decided))
	if decided {
		return true, r.begin()
	}
	return false, r.abort()
}

// makes reports whether p is the plan that a change leads to.
func (p *Plan) makes(change PlanChange) bool {
	has := func(members []Member, address string) bool {
		return slices.ContainsFunc(members, func(m Member) bool { return m.Address == address })
	}
	if change.Add != "" {
		return has(p.Members, change.Add) && !has(p.Previous, change.Add)
	}
	return has(p.Previous, change.Remove) && !has(p.Members, change.Remove)
}

// isOver reports whether an error means that this coordinator does no more, whatever is open.
func (r *planRun) isOver(err error) bool {
	var killed *hookError
	return errors.As(err, &killed) || errors.Is(err, errTakenOver)
}

// detach has what follows go on although the caller may leave, or his patience end: for so long, or until Close does not wait any more.
func (r *planRun) detach(patience time.Duration) (end func()) {
	was := r.ctx
	within, stop := r.s.requestWithin(context.WithoutCancel(was), patience)
	r.ctx = within.ctx
	return func() { stop(); r.ctx = was }
}

// decide does what comes before the decision, and it.
func (r *planRun) decide() error {
	r.letProxiesFill()
	if err := r.did(planFilled, r.plan.Previous[0]); err != nil {
		return err
	}
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
		if err := r.did(planFrozen, m); err != nil {
			return err
		}
	}
	if err := r.reachable(); err != nil {
		return err // one went in the middle
	}
	if err := r.floors(); err != nil {
		return err
	}
	return r.accept()
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
		gave, err := r.gave(v)
		if err != nil {
			return err
		}
		all = append(all, gave...)
		last, err := v.limits(r.ctx, limits)
		if err != nil {
			return err
		}
		end = min(end, last)
	}
	all = r.bounded(withoutDropped(all))
	setBounds(all, limits, end, r.s.servers.ahead)
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue // it is taken out
		}
		err = r.fenced(r.ctx, v, func(tx *sql.Tx, was promise) error {
			if was.state != planFrozen {
				return errTakenOver
			}
			return v.writeFloors(r.ctx, tx, r.plan.Number, all, true)
		})
		if err != nil {
			return err
		}
		if err := r.did("floors", m); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the plan, which is decided, on all members that can be reached.
func (r *planRun) begin() error {
	defer r.detach(r.s.timing.change)()
	from, err := r.decided()
	if err != nil {
		return r.undone(err)
	}
	started, away := 0, []string(nil)
	var failed error
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err == nil {
			_, err = v.obey(r.ctx, &r.plan, m.ID, from)
		}
		if err != nil { // it obeys the plan when it is met again, as long as another one knows it
			away, failed = append(away, m.Address), errors.Join(failed, err)
			continue
		}
		started++
		if err := r.did(PlanInForce, m); err != nil {
			return err
		}
	}
	if started == 0 {
		return r.undone(failed)
	}
	r.plan.State = PlanInForce
	r.s.log.Info("change of sequence servers done", zap.String("change", r.plan.UUID), zap.Uint64("plan", r.plan.Number),
		zap.String("servers", addresses(r.plan.Members)), zap.Strings("away", away), logfield.Err(failed))
	r.s.seeChanges(r.ctx)
	return nil
}

// decided reads what a member that is brought to the decided plan takes over from others.
func (r *planRun) decided() (from handover, err error) {
	for _, m := range r.plan.Previous {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		more, err := v.definitions(r.ctx, v.pool())
		if err != nil {
			r.away[m.Address] = err // what it knows others know, too
			continue
		}
		from.definitions = append(from.definitions, more...)
	}
	from.definitions = newest(from.definitions)
	if from.proxies, err = r.proxies(); err != nil {
		return handover{}, err
	}
	for _, m := range r.staying() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		floors, complete, err := v.readFloors(r.ctx, r.plan.Number)
		if err != nil {
			return handover{}, err
		}
		if complete {
			from.floors = floors
			return from, nil
		}
	}
	return handover{}, fmt.Errorf("no member that has the floors of plan %d can be reached", r.plan.Number)
}

// undone is the error after the decision.
func (r *planRun) undone(err error) error {
	return &PlanError{
		Finding: fmt.Sprintf("change %s is decided, but was not finished", r.plan.UUID), Remedy: "say " + r.plan.statement() + " again", Err: err,
	}
}

// undo aborts a change that failed before it was known to be decided, and returns why it failed. Should it find that the change is decided, it finishes it.
func (r *planRun) undo(why error) error {
	defer r.detach(r.s.timing.undo)()
	decided, err := r.takeOver()
	if err == nil && decided {
		r.s.log.Info("change of sequence servers decided all the same", zap.String("change", r.plan.UUID), logfield.Err(why))
		return r.begin()
	}
	if err == nil {
		err = r.abort()
	}
	if err == nil {
		return why
	}
	return errors.Join(why, &PlanError{
		Finding: fmt.Sprintf("change %s is neither done nor undone", r.plan.UUID), Remedy: "say " + r.plan.statement() + " again", Err: err,
	})
}

// letProxiesFill tells all proxies that rows are going to be frozen, and waits a little for them to fill their caches.
func (r *planRun) letProxiesFill() {
	ctx, stop := context.WithTimeoutCause(r.ctx, r.s.timing.fill, errPatience)
	defer stop()
	for _, m := range r.plan.Previous {
		if v, err := r.server(m.Address); err == nil {
			v.announce(ctx)
		}
	}
	r.waitFilled(ctx)
}

// planFilled is the step after which rows are frozen.
const planFilled = "caches filled"
