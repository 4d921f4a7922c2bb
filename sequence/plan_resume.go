package sequence

import (
	"fmt"
	"slices"

	"go.uber.org/zap"
)

// end ends a change that another began: it finishes one that is decided, and undoes any other. The votes have it that all who do that come to the same.
func (r *planRun) end(open *Plan) (made bool, err error) {
	voted, err := r.adoptChange(open)
	if err != nil {
		return false, err
	}
	if voted == planDecided {
		return true, r.finishDecided()
	}
	return false, r.voteAgainst()
}

// finishDecided finishes a change that this coordinator has taken over and that was voted for: it adopts the vote.
func (r *planRun) finishDecided() error {
	defer r.detach(r.s.timing.change)()
	floors, err := r.decidedFloors()
	if err != nil {
		return err
	}
	var told []Member
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		knows, err := r.writeFloors(v, floors)
		switch {
		case err != nil && r.isOver(err):
			return err
		case err != nil:
			r.away[m.Address] = err
		case knows && slices.ContainsFunc(r.plan.Members, func(o Member) bool { return o.ID == m.ID }):
			told = append(told, m)
		}
	}
	if err := r.vote(planDecided); err != nil {
		return err
	}
	return r.begin(floors, told)
}

// adoptChange takes over a change that is open.
func (r *planRun) adoptChange(open *Plan) (voted string, err error) {
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
		err = v.pool().QueryRowContext(r.ctx, "SELECT `forced`, `above` FROM "+v.table.plan+" WHERE `number` = ? AND `uuid` = ?", r.plan.Number, r.plan.UUID).
			Scan(&r.forced, &r.above)
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

// endLeft ends a change that is open only on the server that is to be added: it failed while it was being added, so that the members have undone that without it, and
// nobody asks it any more who looks for a change that is open.
func (r *planRun) endLeft(now *Plan, add string) error {
	if add == "" {
		return nil
	}
	o, err := r.s.serverOptions(add)
	if err != nil {
		return err
	}
	v, away := r.server(o.Addr)
	if away != nil {
		return nil // which checkChange says
	}
	plans, err := v.plans(r.ctx, v.pool())
	if err != nil {
		return err
	}
	for i := range plans {
		p := &plans[i]
		if !p.open() || p.Number <= now.Number || !r.isOurs(p) {
			continue
		}
		for _, m := range p.Previous {
			if member, away := r.server(m.Address); away == nil {
				known, ok, err := member.plan(r.ctx, member.pool(), p.Number)
				if err != nil {
					return err
				}
				if ok && known.UUID == p.UUID && known.State != planAborted {
					return inProgress(&known) // they know a change before the server that is added does
				}
			}
		}
		if p.State == planProposed {
			r.lefts = append(r.lefts, left{o.Addr, p})
			if err := r.sweep(); err != nil {
				return err
			}
			continue
		}
		other := &planRun{s: r.s, ctx: r.ctx, opened: r.opened, away: r.away}
		voted, err := other.adoptChange(p)
		if err == nil && voted == planDecided {
			err = inProgress(p)
		}
		if err == nil {
			err = other.voteAgainst()
		}
		if err != nil {
			return fmt.Errorf("end change %s, which was left on %s: %w", p.UUID, o.Addr, err)
		}
	}
	return nil
}

// isOurs reports whether a change was made from members that are known here.
func (r *planRun) isOurs(p *Plan) bool {
	for _, m := range p.Previous {
		if !slices.ContainsFunc(r.s.servers.members(), func(v *server) bool { return v.opts.Addr == m.Address }) {
			continue
		}
		if v, away := r.server(m.Address); away == nil {
			if is, _, err := v.membership(r.ctx, v.pool()); err == nil && is.ID == m.ID {
				return true
			}
		}
	}
	return false
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
