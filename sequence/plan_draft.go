package sequence

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// draft makes the plan that a change leads to.
func (r *planRun) draft(now *Plan, change PlanChange) error {
	r.forced, r.above, r.margin, r.base = change.Force, change.Above, change.Margin, now.Number
	if now.Number == 0 {
		servers := r.s.servers.members()
		if len(servers) != 1 {
			return &PlanError{Finding: "the configured sequence servers have no plan yet", Remedy: "it is made when all of them can be reached"}
		}
		now.Members = []Member{{Address: servers[0].opts.Addr}}
	}
	r.plan = Plan{
		Number: now.Number + 1, State: planProposed, Coordinator: r.s.servers.first().registry.host,
		Interleave: now.Interleave, Block: now.Block, Previous: now.Members,
	}
	p := &r.plan
	if p.Interleave == "" {
		p.Interleave = r.s.opts.Interleave
	}
	if change.Interleave != "" {
		p.Interleave = change.Interleave
	}
	switch {
	case p.Interleave == InterleaveStep && change.Block != 0:
		return badOption("BLOCK %d: a plan with steps has no blocks", change.Block)
	case p.Interleave == InterleaveStep:
		p.Block = 0
	case change.Block != 0:
		p.Block = change.Block
	case p.Block == 0:
		p.Block = r.s.opts.Block
	}
	if p.Block > maxBlock {
		return badOption("BLOCK %d, want at most %d", p.Block, uint64(maxBlock))
	}
	members := slices.Clone(now.Members)
	has := func(address string) int {
		return slices.IndexFunc(members, func(m Member) bool { return m.Address == address || slices.Contains(m.Nodes, address) })
	}
	switch {
	case change.Add != "":
		o, err := r.s.serverOptions(change.Add)
		if err != nil {
			return err
		}
		change.Add = o.Addr // of a group that is configured: all its nodes
		if has(change.Add) >= 0 {
			return badOption("sequence server %s is a member already", change.Add)
		}
		if len(members) >= maxMembers {
			return badOption("there are %d sequence servers already, which is the most", len(members))
		}
		members = append(members, Member{Address: change.Add})
	case change.Remove != "":
		i := has(change.Remove)
		switch {
		case i < 0:
			return badOption("sequence server %s is no member; there are %s", change.Remove, addresses(members))
		case len(members) == 1:
			return badOption("sequence server %s is the only one", change.Remove)
		}
		members = slices.Delete(members, i, i+1)
	case p.Interleave == now.Interleave && p.Block == now.Block:
		return badOption("the plan in force has that interleave and block already")
	}
	for i := range members {
		members[i].Position = i
		if nodes := nodesOf(members[i].Address); len(nodes) > 1 {
			members[i].Nodes = nodes
		}
	}
	if change.WritersStopped || change.WritersStep != 0 {
		for i := range members {
			members[i].Direct = !change.WritersStopped
		}
	}
	p.Members = members
	return nil
}

// checkChange refuses what cannot be done, and gets the servers ready.
func (r *planRun) checkChange(change PlanChange) error {
	p := &r.plan
	if err := r.reachable(); err != nil {
		return err
	}
	if change.Add != "" {
		if _, err := r.server(change.Add); err != nil {
			return &PlanError{Finding: fmt.Sprintf("sequence server %s cannot be added", change.Add), Err: err}
		}
	}
	for _, list := range [][]Member{p.Previous, p.Members} {
		for i := range list {
			if v, err := r.server(list[i].Address); err == nil {
				id, err := v.memberID(r.ctx, v.pool())
				if err != nil {
					return err
				}
				if list[i].ID != "" && list[i].ID != id {
					return &PlanError{
						Finding: fmt.Sprintf("at %s there is another sequence server than the plan's: %s, not %s", list[i].Address, id, list[i].ID),
						Remedy:  "bring the one back that was there, or remove it by SEQPROXY REMOVE SEQUENCE SERVER ... FORCE while that address does not answer, and add the new one",
					}
				}
				list[i].ID = id
			}
		}
	}
	for i, m := range p.Members {
		if j := slices.IndexFunc(p.Members, func(o Member) bool { return o.ID == m.ID }); j != i {
			return &PlanError{
				Finding: fmt.Sprintf("%s and %s are the same sequence server, or one is a copy of the other", p.Members[j].Address, m.Address),
				Remedy:  "on a copy that is to be a server of its own: DELETE FROM " + r.opened[m.Address].table.member,
			}
		}
	}
	if err := r.nextNumber(); err != nil {
		return err
	}
	for _, m := range p.Previous {
		if v, err := r.server(m.Address); err == nil {
			if err := v.pool().QueryRowContext(r.ctx, "SELECT UUID()").Scan(&p.UUID); err != nil {
				return fmt.Errorf("name the change: %w", err)
			}
			break
		}
	}
	if _, err := r.proxies(); err != nil { // which the start needs, when nothing can be undone any more
		return err
	}
	if len(p.Members) > 1 {
		if err := r.checkSequences(); err != nil {
			return err
		}
	}
	return r.checkWriters(change)
}

// nextNumber makes the number of the plan one that no server has seen. A server that comes from elsewhere is refused.
func (r *planRun) nextNumber() error {
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		plans, err := v.plans(r.ctx, v.pool())
		if err != nil {
			return err
		}
		old := slices.ContainsFunc(r.plan.Previous, func(o Member) bool { return o.ID == m.ID })
		mine := old || len(plans) == 0
		for i := range plans {
			p := &plans[i]
			r.plan.Number = max(r.plan.Number, p.Number+1)
			if p.Number > r.base && p.State != planAborted && old {
				return inProgress(p)
			}
			mine = mine || slices.ContainsFunc(slices.Concat(p.Members, p.Previous), func(o Member) bool {
				return slices.ContainsFunc(r.plan.Previous, func(known Member) bool { return known.ID == o.ID })
			})
		}
		if !mine {
			return &PlanError{
				Finding: fmt.Sprintf("sequence server %s belongs to another set of sequence servers: %s", m.Address, addresses(plans[len(plans)-1].Members)),
				Remedy:  "remove it there first, and then DROP TABLE " + v.table.plan + ", " + v.table.start + ", " + v.table.member + " on it",
			}
		}
	}
	return nil
}

// checkSequences refuses sequences that several servers cannot count. One that is made from now on is found when the rows are frozen.
func (r *planRun) checkSequences() error {
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		if err := v.refuseSingles(r.ctx, v.pool()); err != nil {
			return err
		}
	}
	return nil
}

// refuseSingles refuses sequences that this server alone can count. The table of options is full.
func (v *server) refuseSingles(ctx context.Context, on querier) error {
	const most = 10
	names, err := v.namesOf(ctx, on, "SELECT s.`name` FROM "+v.table.full+" AS s JOIN "+v.table.options+" AS o ON o.`name` = s.`name` "+
		"WHERE o.`name` <> '' AND (o.`increment` > 1 OR o.`cycle` <> 0) ORDER BY s.`name` LIMIT "+strconv.Itoa(most))
	if err != nil {
		return fmt.Errorf("look for sequences with INCREMENT or CYCLE on %s: %w", v.name(), err)
	}
	if len(names) == 0 {
		return nil
	}
	return &PlanError{
		Finding: "sequences with INCREMENT or CYCLE need a single sequence server: " + strings.Join(names, ", "),
		Remedy:  "ALTER SEQUENCE ... INCREMENT BY 1 NOCYCLE, or leave them to a proxy of their own",
	}
}

// namesOf reads names.
func (v *server) namesOf(ctx context.Context, on querier, text string, args ...any) (names []string, err error) {
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// checkWriters wants the operator's word about applications that count in the table themselves.
func (r *planRun) checkWriters(change PlanChange) error {
	p := &r.plan
	stepped := p.Interleave == InterleaveStep || len(p.Members) == 1
	step := uint64(len(p.Members))
	switch {
	case change.WritersStopped:
		return nil
	case change.WritersStep != 0 && !stepped:
		return badOption("WITH DIRECT WRITERS STEP %d: with interleave = \"block\" nobody but seqproxy can count in the table; stop them, or first say SEQPROXY CHANGE SEQUENCE SERVERS "+
			"INTERLEAVE STEP WITH DIRECT WRITERS STEP %d", change.WritersStep, len(p.Previous))
	case change.WritersStep != 0 && change.WritersStep != step:
		return badOption("WITH DIRECT WRITERS STEP %d: with %d sequence servers the step is %d", change.WritersStep, len(p.Members), step)
	case change.WritersStep != 0:
		return r.writersKnown()
	}
	for _, m := range p.Previous {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		direct, err := v.directWriters(r.ctx)
		if err != nil {
			return err
		}
		why := "since it was not made by seqproxy"
		if m.Direct && v.tuning.Load().DirectWriters != DirectWritersNo {
			direct, why = true, "as was said when the plan in force was made"
		}
		if !direct {
			continue
		}
		remedy := "stop them and say WITH DIRECT WRITERS STOPPED"
		if stepped {
			remedy += fmt.Sprintf(", or prepare them to count by %d and say WITH DIRECT WRITERS STEP %d", step, step)
		}
		return &PlanError{
			Finding: fmt.Sprintf("applications may count in the table %s of %s themselves (UPDATE ... LAST_INSERT_ID(id + 1)), %s", v.table.full, m.Address, why),
			Remedy:  remedy + "; where there are none: direct_writers = \"no\" under [sequence]",
		}
	}
	return nil
}

// writersKnown makes sure, before there is a plan that says so, that proxies know of applications that count in the table: they take care of these in the moments in which they have not heard of the
// first plan yet (see taking).
func (r *planRun) writersKnown() error {
	for _, m := range r.plan.Previous {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		if is, _, err := v.membership(r.ctx, v.pool()); err != nil || is.Plan > 0 {
			return err
		}
		if direct, err := v.directWriters(r.ctx); err != nil || direct {
			return err
		}
		return &PlanError{
			Finding: fmt.Sprintf("seqproxy made the table %s of %s, and proxies take it that no application counts there", v.table.full, m.Address),
			Remedy:  "set direct_writers = \"yes\" under [sequence] of every proxy and reload them, and then say this again",
		}
	}
	return nil
}

// awayError: or is what else can be done.
func awayError(away []string, err error, or string) error {
	return &PlanError{
		Finding: "nobody knows which numbers a sequence server gave that cannot be reached: " + strings.Join(away, ", "),
		Remedy: "bring it back; or make sure that it stays off, and say FORCE ABOVE n, a number above all that it can have given, " +
			"or FORCE MARGIN n, how far it can be ahead of the others" + or, Err: err,
	}
}
