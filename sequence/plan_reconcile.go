package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// This file is how a member comes to what was decided, whoever brings it there: the coordinator of a change, one that ends a change that was left, or a proxy
// that meets a member that is behind.

// obey brings a member to a plan that is decided, before it gives a number under it: as the others have it, whatever it was told before. It reports whether the member obeyed
// another one so far.
func (v *server) obey(ctx context.Context, p *Plan, id string, from handover) (brought bool, err error) {
	var was Membership
	err = v.transact(ctx, func(tx *sql.Tx) (err error) {
		state, err := v.lockState(ctx, tx, p)
		if err != nil {
			return err
		}
		if was, err = v.lockMembership(ctx, tx); err != nil || was.Plan >= p.Number {
			brought = false
			return err
		}
		if state != planFrozen && state != planAccepted { // it was away, or has forgotten. Nobody was told how far it may go
			if err := v.writeFloors(ctx, tx, p.Number, from.floors, false); err != nil {
				return err
			}
		}
		if brought, err = v.bring(ctx, tx, p, id, from); err != nil || !brought {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE "+v.table.plan+" SET `state` = ? WHERE `number` < ? AND `state` IN ("+openStates+")", planOvertaken, p.Number)
		if err != nil {
			return fmt.Errorf("end older changes: %w", err)
		}
		if state != "" { // a coordinator may be at work there, and goes by what was promised
			return v.setState(ctx, tx, p.Number, PlanInForce)
		}
		now := *p
		now.State = PlanInForce
		return v.savePlan(ctx, tx, &now)
	})
	if err != nil {
		return false, fmt.Errorf("bring sequence server %s to plan %d: %w", v.name(), p.Number, err)
	}
	if brought {
		v.log.Info("plan obeyed", zap.Uint64("plan", p.Number), zap.Uint64("plan_before", was.Plan))
		v.announce(ctx)
	}
	return brought, nil
}

// lockState reads how far a change is on a member, and locks that; "" if the member does not know it.
func (v *server) lockState(ctx context.Context, tx *sql.Tx, p *Plan) (state string, err error) {
	err = tx.QueryRowContext(ctx, "SELECT `state` FROM "+v.table.plan+" WHERE `number` = ? AND `uuid` = ? FOR UPDATE", p.Number, p.UUID).Scan(&state)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read plan %d of table %s: %w", p.Number, v.table.plan, err)
	}
	return state, nil
}

// catchUp brings a member that is behind to the plan in force. from is a member that obeys it.
func (v *server) catchUp(ctx context.Context, from *server, p *Plan) (brought bool, err error) {
	var theirs handover
	var complete bool
	if theirs.floors, complete, err = from.readFloors(ctx, p.Number); err != nil {
		return false, err
	}
	if !complete {
		theirs.floors = append(theirs.floors, floorOf{}) // the first plan of a new table has none
	}
	if theirs.definitions, err = from.definitions(ctx, from.pool()); err != nil {
		return false, err
	}
	if theirs.proxies, err = from.proxies(ctx); err != nil {
		return false, err
	}
	id, err := v.memberID(ctx, v.pool())
	if err != nil {
		return false, err
	}
	return v.obey(ctx, p, id, theirs)
}

// letGo has a member go on as before a change that came to nothing, of which it was not told.
func (v *server) letGo(ctx context.Context, p *Plan) error {
	err := v.transact(ctx, func(tx *sql.Tx) error {
		state, err := v.lockState(ctx, tx, p)
		now := Plan{State: state}
		if err != nil || state == "" || !now.open() {
			return err
		}
		return v.thaw(ctx, tx, p)
	})
	if err != nil {
		return fmt.Errorf("let %s go on after change %s, which was aborted: %w", v.name(), p.UUID, err)
	}
	v.log.Warn("change of sequence servers aborted", zap.String("change", p.UUID), zap.Uint64("plan", p.Number))
	v.announce(ctx)
	return nil
}

// vetoed reports whether a change was aborted by a member that stays, so that it is never decided. all is what servers know.
func (p *Plan) vetoed(all []report) bool {
	return slices.ContainsFunc(all, func(t report) bool {
		known := t.change(p.UUID)
		return known != nil && known.State == planAborted && hasMember(p.Previous, t.ID) && hasMember(p.Members, t.ID)
	})
}

// forgotten reports whether a member that stays does not know a change: it was taken back there.
func (p *Plan) forgotten(all []report) bool {
	return slices.ContainsFunc(all, func(t report) bool {
		return t.change(p.UUID) == nil && hasMember(p.Previous, t.ID) && hasMember(p.Members, t.ID)
	})
}

// follows reports whether p was made from now.
func (p *Plan) follows(now *Plan) bool {
	same := func(m, o Member) bool { return m.ID == o.ID }
	return now.Number == 0 || p.Number > now.Number && slices.EqualFunc(p.Previous, now.Members, same)
}

// reconcile brings the members that can be reached to the plan in force, and lets those go on that a change left which came to nothing. add is the address of a server
// that may have seen one of these, or "". brought tells that one of them was behind.
func (r *planRun) reconcile(now *Plan, add string) (brought bool, err error) {
	var ask []string
	for _, m := range slices.Concat(now.Members, now.Previous) {
		ask = append(ask, m.Address)
	}
	if now.Number == 0 {
		ask = append(ask, r.s.servers.first().opts.Addr)
	}
	if add != "" {
		ask = append(ask, add)
	}
	slices.Sort(ask)
	all, _, err := r.plansOf(slices.Compact(ask))
	if err != nil {
		return false, err
	}
	from := slices.IndexFunc(all, func(t report) bool { return now.Number > 0 && t.Plan == now.Number && t.Count > 0 })
	for _, t := range all {
		v := r.opened[t.address]
		if from >= 0 && t.Plan < now.Number && (hasMember(now.Members, t.ID) || hasMember(now.Previous, t.ID)) {
			caught, err := v.catchUp(r.ctx, r.opened[all[from].address], now)
			if err != nil {
				return false, err
			}
			brought = brought || caught
		}
		for i := range t.plans {
			p := &t.plans[i]
			if !p.open() || p.UUID == now.UUID {
				continue
			}
			if p.vetoed(all) || p.forgotten(all) && !hasMember(p.Previous, t.ID) || p.State == planProposed && !p.follows(now) {
				if err := v.letGo(r.ctx, p); err != nil {
					return false, err
				}
			}
		}
	}
	return brought, nil
}

// settle lets members go on that are back, and that a change left frozen which came to nothing meanwhile.
func (a *servers) settle(ctx context.Context) error {
	if err := a.changing.take(ctx); err != nil {
		return err
	}
	defer a.changing.end()
	a.letGo(ctx, a.probe(ctx, a.known))
	return nil
}

// letGo lets members go on that a change left frozen which came to nothing, as those that were asked tell. a.changing is held.
func (a *servers) letGo(ctx context.Context, probes []probe) {
	all := make([]report, len(probes))
	for i, p := range probes {
		all[i] = report{Membership: p.Membership, plans: p.plans}
	}
	for i, t := range all {
		for j := range t.plans {
			if p := &t.plans[j]; p.open() && p.vetoed(all) {
				if err := a.known[i].letGo(ctx, p); err != nil {
					a.log.Warn("sequence server left frozen", zap.String("server", a.known[i].name()), logfield.Err(err))
				}
			}
		}
	}
}
