package sequence

import (
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
)

// resume finishes what another began.
func (r *planRun) resume() error {
	voted, err := r.adopt()
	if err != nil {
		return err
	}
	switch voted {
	case planAborting:
		if err := r.voteAgainst(r.ctx); err != nil {
			return err
		}
		return &PlanError{Finding: fmt.Sprintf("change %s was being aborted, and is now", r.plan.UUID), Remedy: "the sequence servers are those that they were"}
	case planDecided:
		floors, err := r.decidedFloors()
		if err != nil {
			return err
		}
		for _, m := range r.everyone() {
			if v, err := r.server(m.Address); err == nil {
				if err := r.writeFloors(v, floors); err != nil {
					return err
				}
			}
		}
		if err := r.vote(r.ctx, planDecided); err != nil {
			return err
		}
		return r.begin(floors)
	}
	return r.finish()
}

// abort undoes what another began.
func (r *planRun) abort() error {
	voted, err := r.adopt()
	if err != nil {
		return err
	}
	if voted == planDecided {
		return &PlanError{Finding: fmt.Sprintf("change %s is decided, and cannot be aborted any more", r.plan.UUID), Remedy: "SEQPROXY RESUME PLAN finishes it"}
	}
	if err := r.voteAgainst(r.ctx); err != nil {
		return err
	}
	now, _, err := r.current()
	if err == nil {
		r.plan = now
	}
	return err
}

// adopt takes over the change that is open, and returns what was voted for.
func (r *planRun) adopt() (voted string, err error) {
	_, open, err := r.current()
	if err != nil {
		return "", err
	}
	if open == nil {
		return "", &PlanError{Finding: "no change of the set of sequence servers is in progress"}
	}
	r.plan = *open
	from := r.plan.Coordinator
	r.plan.Coordinator = r.s.servers.first().registry.host
	if err := r.readTerms(); err != nil {
		return "", err
	}
	if voted, err = r.takeOver(); err != nil {
		return "", err
	}
	r.s.log.Info("change of sequence servers taken over", zap.String("change", r.plan.UUID), zap.String("from", from), zap.String("voted", voted))
	return voted, nil
}

// readTerms reads what the operator said when the change was begun.
func (r *planRun) readTerms() error {
	for _, m := range slices.Concat(r.plan.Previous, r.plan.Members) {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		err = v.pool().QueryRowContext(r.ctx, "SELECT `forced`, `above`, `margin` FROM "+v.table.plan+" WHERE `number` = ? AND `uuid` = ?", r.plan.Number, r.plan.UUID).
			Scan(&r.forced, &r.above, &r.margin)
		if err == nil {
			return nil
		}
	}
	return &PlanError{Finding: fmt.Sprintf("change %s cannot be read any more", r.plan.UUID), Remedy: "try again"}
}

// decidedFloors reads the floors from a member that voted for the change.
func (r *planRun) decidedFloors() ([]floorOf, error) {
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		var state string
		err = v.pool().QueryRowContext(r.ctx, "SELECT `state` FROM "+v.table.plan+" WHERE `number` = ? AND `uuid` = ?", r.plan.Number, r.plan.UUID).Scan(&state)
		if err != nil || state != planDecided && state != PlanInForce {
			continue
		}
		if floors, ok, err := v.readFloors(r.ctx, r.plan.Number); err != nil || ok {
			return floors, err
		}
	}
	return nil, &PlanError{Finding: fmt.Sprintf("change %s is decided, but no member that has its floors can be reached", r.plan.UUID), Remedy: "try again when they can"}
}

// current reads the plan in force, and the change that is open if there is one, from all servers that are known here.
func (r *planRun) current() (now Plan, open *Plan, err error) {
	asked := make(map[string]bool)
	var why error
	reached := 0
	ask := func(address string) error {
		if asked[address] {
			return nil
		}
		asked[address] = true
		v, err := r.server(address)
		if err != nil {
			why = errors.Join(why, err)
			return nil
		}
		reached++
		plans, err := v.plans(r.ctx, v.pool())
		if err != nil {
			return err
		}
		for i := range plans {
			p := &plans[i]
			switch {
			case p.State == PlanInForce && p.Number > now.Number:
				now = *p
			case p.open() && (open == nil || p.Number > open.Number):
				open = p
			}
		}
		return nil
	}
	for _, v := range r.s.servers.members() {
		if err := ask(v.opts.Addr); err != nil {
			return now, nil, err
		}
	}
	for again := true; again; {
		again = false
		known := slices.Concat(now.Members, now.Previous)
		if open != nil {
			known = slices.Concat(known, open.Members, open.Previous)
		}
		for _, m := range known {
			if !asked[m.Address] {
				again = true
				if err := ask(m.Address); err != nil {
					return now, nil, err
				}
			}
		}
	}
	if reached == 0 {
		return now, nil, &PlanError{Finding: "no sequence server can be reached", Err: why, unreached: true}
	}
	if open != nil && open.Number < now.Number {
		open = nil // left over on a member that was away
	}
	if open == nil && now.Number > 0 {
		// Finished on some, but not on all that can be reached: that is a change in progress, too.
		return now, r.unfinished(&now), nil
	}
	return now, open, nil
}

// unfinished returns the plan in force itself if members that can be reached do not obey it yet.
func (r *planRun) unfinished(now *Plan) *Plan {
	for _, m := range slices.Concat(now.Members, now.Previous) {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		p, ok, err := v.plan(r.ctx, v.pool(), now.Number)
		if err == nil && ok && p.UUID == now.UUID && p.open() {
			return &p
		}
	}
	return nil
}
