package members

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/steps"
	"seqproxy/sequence/store"
)

// Reread asks the servers again which plan is in force. With old it is called because one of them
// obeys another plan, and does nothing if somebody has read since. Without old a server has
// answered again: it may be behind the plan, and others, too.
func (a *Members) Reread(ctx context.Context, old *View) error {
	if err := a.Changing.Acquire(ctx); err != nil {
		return fmt.Errorf("wait for the plan of the sequence servers: %w", err)
	}
	defer a.Changing.Release()
	if old != nil && a.Now() != old {
		return nil // somebody else did
	}
	err := a.readLocked(ctx)
	if errors.Is(err, store.OutcomeOldPlan) { // somebody else was faster with the first plan
		err = a.readLocked(ctx)
	}
	return err
}

// readLocked asks all known servers which plan is in force, and takes it over. It brings servers to
// the plan that are behind it, and thaws those that an undone change left frozen. It leaves out a
// server with which that fails. a.Changing is held.
func (a *Members) readLocked(ctx context.Context) error {
	if a.closed {
		return link.ErrClosed
	}
	met := a.meet(ctx)
	var failed []error
	plan, _ := change.Latest(met)
	number := plan.Number
	for i := range met {
		if met[i].Err != nil {
			failed = append(failed, met[i].Err)
		}
		number = max(number, met[i].Plan)
	}
	if len(failed) == len(met) {
		return errors.Join(failed...)
	}
	if err := a.refuseOlder(number, failed); err != nil {
		return err
	}
	if number == 0 {
		if len(a.opts.Servers) == 1 {
			return a.enterLocked(&change.Plan{})
		}
		plan, err := a.firstPlanLocked(ctx, met[:len(a.opts.Servers)])
		if err != nil {
			return err
		}
		return a.enterLocked(plan)
	}
	if plan.Number != number || len(plan.Members) == 0 {
		return a.all[0].Unfit(a.all[0].Table.Plan, fmt.Sprintf("plan %d is in force, but nobody knows it", number),
			"restore the table from another sequence server")
	}
	for i := range met {
		if met[i].ObeysAnother(&plan) {
			return errTwoPlans(a.all[i], &plan)
		}
	}
	for i := range met {
		m := &met[i]
		if m.Plan > 0 || len(plan.Previous) > 0 || !change.HasMember(plan.Members, m.ID) {
			continue
		}
		// The first plan was decided, and then its maker died.
		switch err := joinFirstPlan(ctx, a.all[i], a.Now().Members, &plan, plan.Of(m.ID)); {
		case errors.Is(err, store.OutcomeOldPlan): // it may have joined another one
			return err
		case err != nil:
			a.log.Warn("sequence server not made a member", zap.String("server", a.all[i].Name()), logfield.Err(err))
		}
	}
	for i, err := range change.Reconcile(ctx, met, &plan, nil, nil) {
		if err != nil {
			a.all[i].LeaveOut(err)
		}
	}
	return a.enterLocked(&plan)
}

// refuseOlder keeps this process from going back to an older plan than it knows of, by which a
// member would give the numbers of others: those that can be asked were restored from a backup.
// They take that plan over from one that knows it. If there is none any more, only a new process
// goes by the older one. failed is why some did not answer.
func (a *Members) refuseOlder(number uint64, failed []error) error {
	now := a.Now()
	if !now.Settled || number >= now.Number {
		return nil
	}
	return errors.Join(fmt.Errorf("plan %d of the sequence servers is in force, and those that can be reached know plan %d at most, as after a restore from a backup: "+
		"they give no numbers until one that knows it is back; if all were restored, stop all proxies first (docs: Backup and restore)", now.Number, number), errors.Join(failed...))
}

// meet asks all known servers for their plans.
func (a *Members) meet(ctx context.Context) []change.Met {
	met := make([]change.Met, len(a.all))
	member.Each(ctx, a.all, func(ctx context.Context, i int, v *member.Server) error {
		m := &met[i]
		m.Store = steps.On(v.Store)
		if m.Report, m.Err = m.Store.Report(ctx); m.Err != nil {
			m.Report, m.Err = change.Report{}, fmt.Errorf("sequence server %s: %w", v.Name(), m.Err)
		}
		return nil
	})
	return met
}

// enterLocked takes over a plan. Each member learns its place before anybody sees the plan.
// a.Changing is held.
func (a *Members) enterLocked(plan *change.Plan) error {
	if now := a.Now(); now.Settled && now.Number == plan.Number {
		return nil
	}
	w := &View{Settled: true, Plan: *plan, Among: member.Among{Number: plan.Number, Ahead: a.Ahead}}
	if plan.Number == 0 {
		w.Members = a.all[:1]
		a.Use(w)
		return nil
	}
	if err := fits(plan); err != nil {
		return err
	}
	var missing, more []string // members that the configuration lacks, and servers in it that are none
	for _, m := range plan.Members {
		v, err := a.serverLocked(m)
		if err != nil {
			return err
		}
		if len(plan.Members) > 1 && v.Grouped() {
			return &link.UnfitError{Server: v.Name(), Finding: "it is a group, and one of several that divide the numbers", Remedy: GroupWayOut}
		}
		if w.Members = append(w.Members, v); !slices.Contains(a.opts.Servers, v) {
			missing = append(missing, v.Name())
		}
	}
	a.Use(w)
	a.log.Info("plan in force", zap.Uint64("plan", plan.Number), zap.String("interleave", plan.Interleave),
		zap.String("servers", member.NamesOf(w.Members)))
	for _, v := range a.opts.Servers {
		if !slices.Contains(w.Members, v) {
			more = append(more, v.Name())
		}
	}
	if len(missing)+len(more) > 0 {
		a.log.Warn("configuration differs from the plan", zap.Uint64("plan", plan.Number), zap.Strings("only_in_plan", missing), zap.Strings("only_in_config", more))
	}
	return nil
}

// Use has members be in use, each of which learns its place before. Changing is held.
func (a *Members) Use(w *View) {
	for i, v := range w.Members {
		var place *segment.Share
		if w.Number > 0 {
			is := w.Plan.Of(w.Plan.Members[i].ID)
			place = &is
		}
		v.Place.Store(place)
	}
	a.view.Store(w)
}

// fits refuses a plan by which this version cannot count. A newer one may have made it.
func fits(p *change.Plan) error {
	inBlocks := p.Interleave == segment.InBlocks && p.Block > 0 && p.Block <= MaxBlock
	if !inBlocks && p.Interleave != segment.InSteps || len(p.Members) > change.MaxMembers {
		return define.BadOption("plan %d: %d members that divide the numbers by %q, %d in a block: want up to %d members, by %q with 1 to %d in a block, or by %q; a newer version may know it",
			p.Number, len(p.Members), p.Interleave, p.Block, change.MaxMembers, segment.InBlocks, uint64(MaxBlock), segment.InSteps)
	}
	return nil
}

// serverLocked is the server of a member, which is the one at its address in the plan, for all
// proxies. Another one that says it is that member is a copy. One that is not configured is reached
// with the account of the first.
func (a *Members) serverLocked(m change.Member) (*member.Server, error) {
	at := slices.IndexFunc(a.all, func(v *member.Server) bool {
		return slices.ContainsFunc(v.Nodes(), func(n *link.Node) bool { return n.Addr == m.Address })
	})
	if at >= 0 {
		return a.all[at], nil
	}
	v, err := a.opts.At(m.Address)
	if err != nil {
		return nil, err
	}
	a.Know(v)
	return v, nil
}

// errTwoPlans is the finding about a member of a plan that obeys another one of its number. By the
// two a number may be of two members.
func errTwoPlans(v *member.Server, plan *change.Plan) error {
	return v.Unfit(v.Table.Plan, fmt.Sprintf("its plan %d is another one than that of %s: proxies whose configurations name different sequence servers have each made one", plan.Number, change.Addresses(plan.Members)),
		"name the same sequence servers in all configurations, stop all proxies, raise all rows above what is in use (docs: Backup and restore), DELETE FROM "+v.Table.Plan+" and "+v.Table.Member+
			" on each server, and start the proxies")
}
