package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// This file is how a process learns which plan is in force, and how the first one is made.

// Ready returns the members in use. It asks which they are before the first use, if several are
// configured.
func (a *servers) Ready(ctx context.Context) (*view, error) {
	if w := a.Now(); w.Settled {
		return w, nil
	} else if err := a.Reread(ctx, w); err != nil {
		return nil, err
	}
	return a.Now(), nil
}

// Reread asks the servers again which plan is in force, after one of them obeyed another plan than
// old.
func (a *servers) Reread(ctx context.Context, old *view) error {
	if err := a.Changing.Acquire(ctx); err != nil {
		return fmt.Errorf("wait for the plan of the sequence servers: %w", err)
	}
	defer a.Changing.Release()
	if a.Now() != old {
		return nil // somebody else did
	}
	return a.readLocked(ctx, true)
}

// readLocked asks all known servers which plan is in force, and takes it over. a.Changing is held.
func (a *servers) readLocked(ctx context.Context, again bool) error {
	if a.closed {
		return ErrClosed
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
	if err := a.refuseOlder(number, met); err != nil {
		return err
	}
	if number == 0 {
		if len(a.opts.Servers) == 1 {
			return a.enterLocked(&Plan{}, nil)
		}
		plan, err := a.firstPlanLocked(ctx, met[:len(a.opts.Servers)])
		if errors.Is(err, store.OutcomeOldPlan) && again {
			return a.readLocked(ctx, false) // somebody else was faster
		}
		if err != nil {
			return err
		}
		return a.enterLocked(plan, met)
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
		if m := &met[i]; m.Plan == 0 && len(plan.Previous) == 0 && m.ID != "" {
			// The first plan was decided, and then its maker died.
			if position := slices.IndexFunc(plan.Members, func(o Member) bool { return o.ID == m.ID }); position >= 0 {
				switch err := joinFirstPlan(ctx, a.all[i], a.Now().Members, &plan, position); {
				case errors.Is(err, store.OutcomeOldPlan) && again:
					return a.readLocked(ctx, false) // it may have joined another one
				case errors.Is(err, store.OutcomeOldPlan):
					return err
				case err != nil:
					a.log.Warn("sequence server not made a member", zap.String("server", a.all[i].Name()), logfield.Err(err))
				}
			}
		}
	}
	a.reconcile(ctx, met, &plan)
	return a.enterLocked(&plan, met)
}

// reconcile brings servers to a plan that are behind it, and lets those go on that a change left
// frozen which came to nothing, as those that were asked tell. One with which that fails is left
// out. a.Changing is held.
func (a *servers) reconcile(ctx context.Context, met []change.Met, plan *Plan) {
	_, failed := change.Reconcile(ctx, met, plan, nil, nil)
	for i, err := range failed {
		if err != nil {
			a.all[i].LeaveOut(err)
		}
	}
}

// Settle is reconcile after servers have answered again. They may know a newer plan.
func (a *servers) Settle(ctx context.Context) error {
	if err := a.Changing.Acquire(ctx); err != nil {
		return err
	}
	defer a.Changing.Release()
	met, plan := a.meet(ctx), &a.Now().Plan
	if now, _ := change.Latest(met); now.Number > plan.Number {
		return a.readLocked(ctx, true)
	}
	a.reconcile(ctx, met, plan)
	return nil
}

// refuseOlder keeps this process from going back to an older plan than it knows of, by which a
// member would give the numbers of others, while some members of the newer one cannot be asked:
// those that can were restored from a backup, and take that plan over from one of the others. Where
// all say so all were restored, and there is no newer one any more.
func (a *servers) refuseOlder(number uint64, met []change.Met) error {
	now := a.Now()
	if !now.Settled || number >= now.Number {
		return nil
	}
	var away []error
	for i := range met {
		if met[i].Err != nil && slices.Contains(now.Members, a.all[i]) {
			away = append(away, met[i].Err)
		}
	}
	if len(away) == 0 {
		return nil
	}
	return fmt.Errorf("plan %d of the sequence servers is in force, and those that can be reached know plan %d at most, as after a restore from a backup: "+
		"they give no numbers until one that knows it is back: %w", now.Number, number, errors.Join(away...))
}

// meet asks all known servers for their plans.
func (a *servers) meet(ctx context.Context) []change.Met {
	met := make([]change.Met, len(a.all))
	member.Each(ctx, a.all, func(ctx context.Context, i int, v *server) error {
		met[i].Store = steps.On(v.Store)
		var said change.Report
		conn, err := v.Conn(ctx)
		if err == nil {
			defer func() { _ = conn.Close() }()
			said, err = v.Plans.Report(ctx, conn)
		}
		if err != nil {
			met[i].Err = fmt.Errorf("sequence server %s: %w", v.Name(), err)
			return nil
		}
		met[i].Report = said
		return nil
	})
	return met
}

// amongOf is what members know of a plan.
func amongOf(plan *Plan) (w member.Among) {
	w.Number = plan.Number
	if plan.Interleave == InterleaveBlock {
		w.Block = plan.Block
	}
	for _, m := range plan.Members {
		w.IDs = append(w.IDs, m.ID)
	}
	return w
}

// enterLocked takes over a plan. Each member learns its place before anybody sees the plan.
// a.Changing is held.
func (a *servers) enterLocked(plan *Plan, met []change.Met) error {
	now := a.Now()
	w := &view{Settled: true, Plan: *plan, Among: amongOf(plan)}
	w.Ahead = a.Ahead
	if now.Settled && now.Number == plan.Number {
		return nil
	}
	if plan.Number == 0 {
		w.Members = a.all[:1]
		a.all[0].Place.Store(nil)
		a.view.Store(w)
		return nil
	}
	places := make([]segment.Share, len(plan.Members))
	for i, m := range plan.Members {
		v, err := a.serverLocked(m, met)
		if err != nil {
			return err
		}
		if len(plan.Members) > 1 && v.Grouped() {
			return &UnfitError{Server: v.Name(), Finding: "it is a group, and one of several that divide the numbers", Remedy: groupWayOut}
		}
		is := plan.Of(m.ID)
		places[i] = steps.ShareOf(&is)
		if err := checkShare(&places[i]); err != nil {
			return err
		}
		w.Members = append(w.Members, v)
	}
	for i, v := range w.Members {
		v.Place.Store(&places[i])
	}
	a.view.Store(w)
	a.warnLocked(w)
	a.log.Info("plan in force", zap.Uint64("plan", plan.Number), zap.String("interleave", plan.Interleave),
		zap.String("servers", member.NamesOf(w.Members)))
	return nil
}

// checkShare refuses what nobody can count by.
func checkShare(h *segment.Share) error {
	switch {
	case h.Interleave != InterleaveBlock && h.Interleave != InterleaveStep:
		return define.BadOption("plan %d: interleave %q: want %q or %q; a newer version may know it", h.Plan, h.Interleave, InterleaveBlock, InterleaveStep)
	case h.Interleave == InterleaveBlock && (h.Block == 0 || h.Block > maxBlock), h.Count > maxMembers:
		return define.BadOption("plan %d: %d members with blocks of %d numbers: want up to %d, and 1 to %d", h.Plan, h.Count, h.Block, maxMembers, uint64(maxBlock))
	}
	return nil
}

// serverLocked is the server of a member: the one that says so, the one of the configuration at one
// of its addresses, or one that is reached with the account of the first.
func (a *servers) serverLocked(m Member, met []change.Met) (*server, error) {
	if i := slices.IndexFunc(met, func(o change.Met) bool { return o.ID == m.ID }); i >= 0 {
		return a.all[i], nil
	}
	for _, v := range a.all {
		if slices.ContainsFunc(v.Nodes(), func(n *link.Node) bool { return n.Addr == m.Address }) {
			return v, nil
		}
	}
	o, err := a.opts.serverAt(m.Address)
	if err != nil {
		return nil, err
	}
	return a.addLocked(o)
}

// serverAt is the way to a server: as it is configured, or like the first one that is.
func (all *Options) serverAt(address string) (ServerOptions, error) {
	for _, o := range all.Servers {
		if slices.ContainsFunc(o.nodes(), func(n Node) bool { return n.Addr == address }) || o.Addr == address {
			return o, nil
		}
	}
	o := all.Servers[0]
	o.Network, o.Addr, o.Nodes = "tcp", address, nil
	if strings.HasPrefix(address, "/") {
		o.Network = "unix"
	}
	return o, o.setDefaults()
}

// warnLocked says once how the plan differs from the configuration. a.Changing is held.
func (a *servers) warnLocked(w *view) {
	var missing, more []string
	for _, v := range w.Members {
		if !slices.Contains(a.all[:len(a.opts.Servers)], v) {
			missing = append(missing, v.Name())
		}
	}
	for _, v := range a.all[:len(a.opts.Servers)] {
		if !slices.Contains(w.Members, v) {
			more = append(more, v.Name())
		}
	}
	said := fmt.Sprint(missing, more)
	if len(missing)+len(more) == 0 || said == a.warned {
		return
	}
	a.warned = said
	a.log.Warn("configuration differs from the plan", zap.Uint64("plan", w.Number),
		zap.Strings("only_in_plan", missing), zap.Strings("only_in_config", more))
}

// ErrNoPlan is the finding where several servers are configured that do not divide the numbers yet.
// Which of them counts is not guessed.
func (a *servers) ErrNoPlan() error {
	return &UnfitError{
		Server: a.Name(), Finding: "several are configured that do not divide the numbers yet",
		Remedy: "configure the one that has the rows, or any one of them if none has, start with that, and say SEQPROXY ADD SEQUENCE SERVER for each of the others; " +
			"then all may be configured",
	}
}

// errTwoPlans is the finding about a member of a plan that obeys another one of its number. By the two
// a number may be of two members.
func errTwoPlans(v *server, plan *Plan) error {
	return v.Unfit(v.Table.Plan, fmt.Sprintf("its plan %d is another one than that of %s: proxies whose configurations name different sequence servers have each made one", plan.Number, change.Addresses(plan.Members)),
		"name the same sequence servers in all configurations, stop all proxies, raise all rows above what is in use (docs: Backup and restore), DELETE FROM "+v.Table.Plan+" and "+v.Table.Member+
			" on each server, and start the proxies")
}

// firstPlanLocked makes the first plan of the servers that are configured, whose rows show that
// they count in steps. a.Changing is held.
func (a *servers) firstPlanLocked(ctx context.Context, met []change.Met) (*Plan, error) {
	for i := range met {
		if met[i].Err != nil {
			return nil, fmt.Errorf("no plan is in force on the sequence servers that can be reached, but all must say so: %w", met[i].Err)
		}
	}
	if a.opts.Interleave != InterleaveStep {
		return nil, a.ErrNoPlan()
	}
	plan := &Plan{Number: 1, State: PlanInForce, Coordinator: store.NewRegistration().Host, Interleave: InterleaveStep}
	configured := a.all[:len(met)]
	order := make([]int, 0, len(configured))
	for i, v := range configured {
		id, err := v.Plans.MemberID(ctx, v.Pool())
		if err != nil {
			return nil, err
		}
		if at := slices.IndexFunc(plan.Members, func(m Member) bool { return m.ID == id }); at >= 0 {
			return nil, v.Unfit(v.Table.Member, "it is the server that is configured as "+configured[at].Name()+", too", "name each sequence server once; if it is a copy of the other, "+
				"DELETE FROM "+v.Table.Member)
		}
		plan.Members = append(plan.Members, Member{ID: id, Address: v.Config.Link.Name, Position: i})
		order = append(order, i)
	}
	if err := a.First().Pool().QueryRowContext(ctx, "SELECT UUID()").Scan(&plan.UUID); err != nil {
		return nil, err
	}
	for i, v := range configured {
		if err := fitsPlan(ctx, v, v.Pool(), configured, plan, i, ""); err != nil {
			return nil, err
		}
	}
	// Whoever else makes a first plan of these servers begins with the same one, and one of the two is
	// first there. The other finishes that plan, as anybody does if this process dies.
	slices.SortFunc(order, func(x, y int) int { return strings.Compare(plan.Members[x].ID, plan.Members[y].ID) })
	for _, i := range order {
		if err := joinFirstPlan(ctx, configured[i], configured, plan, i); err != nil {
			return nil, err
		}
	}
	a.log.Info("first plan made", zap.String("change", plan.UUID), zap.String("servers", member.NamesOf(configured)))
	return plan, nil
}

// joinFirstPlan makes a server the member at a position of the first plan.
func joinFirstPlan(ctx context.Context, v *server, among []*server, plan *Plan, position int) error {
	return v.Transact(ctx, func(tx *sql.Tx) error {
		was, err := v.Plans.LockMembership(ctx, tx)
		if err == nil && was.Plan != 0 {
			err = store.OutcomeOldPlan
		}
		if err == nil {
			err = fitsPlan(ctx, v, tx, among, plan, position, " FOR UPDATE")
		}
		if err == nil {
			err = v.Plans.Save(ctx, tx, plan)
		}
		if err == nil {
			err = v.Plans.SaveMembership(ctx, tx, plan.Of(plan.Members[position].ID))
		}
		return err
	})
}

// fitsPlan makes sure that a server's counters are such that it can be the member at a position of
// the first plan. locking may be " FOR UPDATE".
func fitsPlan(ctx context.Context, v *server, on link.Querier, among []*server, plan *Plan, position int, locking string) error {
	h := segment.Share{Position: uint64(position), Count: uint64(len(plan.Members)), Interleave: plan.Interleave}
	return steps.On(v.Store).EachRow(ctx, on, locking, func(name string, id uint64) error {
		if !h.Has(id) {
			return v.WrongResidue(ctx, among, name, id, h)
		}
		return nil
	})
}
