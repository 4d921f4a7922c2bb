package sequence

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// draft makes the plan that a change leads to.
func (r *planRun) draft(now *Plan) error {
	change := r.asked
	r.base = now.Number
	if change.Add != "" && change.Force {
		return badOption("FORCE is for SEQPROXY REMOVE SEQUENCE SERVER: a server is added while all members are there")
	}
	if now.Number == 0 {
		servers := r.s.servers.members()
		if len(servers) != 1 {
			return r.s.servers.errNoPlan()
		}
		now.Members = []Member{{Address: servers[0].opts.Addr}}
	}
	r.plan = Plan{
		Number: now.Number + 1, State: planProposed, Coordinator: r.s.servers.first().registry.host,
		Interleave: now.Interleave, Block: now.Block, Previous: now.Members,
	}
	p := &r.plan
	if len(now.Members) == 1 { // which has all numbers, whatever was said before
		if p.Interleave, p.Block = r.s.opts.Interleave, r.s.opts.Block; p.Interleave == InterleaveStep {
			p.Block = 0
		}
	}
	for _, v := range r.s.servers.members() {
		if v.grouped() {
			return &groupError{v.name()}
		}
	}
	members := slices.Clone(now.Members)
	has := func(address string) int {
		return slices.IndexFunc(members, func(m Member) bool { return m.Address == address })
	}
	switch {
	case change.Add != "":
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
	}
	for i := range members {
		members[i].Position = i
	}
	p.Members = members
	return nil
}

// checkChange refuses what cannot be done, and gets the servers ready.
func (r *planRun) checkChange() error {
	p, change := &r.plan, r.asked
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
	return r.checkWriters()
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
		old := hasMember(r.plan.Previous, m.ID)
		mine := old || len(plans) == 0
		for i := range plans {
			p := &plans[i]
			r.plan.Number = max(r.plan.Number, p.Number+1)
			if p.Number > r.base && p.State != planAborted && old {
				return inProgress(p)
			}
			mine = mine || slices.ContainsFunc(slices.Concat(p.Members, p.Previous), func(o Member) bool { return hasMember(r.plan.Previous, o.ID) })
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
func (st *store) namesOf(ctx context.Context, on querier, text string, args ...any) (names []string, err error) {
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

// checkWriters wants the operator's word that no application counts in the tables meanwhile. Where several servers divide the numbers in blocks none can.
func (r *planRun) checkWriters() error {
	p := &r.plan
	if r.asked.WritersStopped || r.s.servers.tuning.Load().NoDirectWriters || len(p.Previous) > 1 && p.Interleave == InterleaveBlock {
		return nil
	}
	v := r.s.servers.first()
	then := ""
	if p.Interleave == InterleaveStep || len(p.Members) == 1 {
		then = fmt.Sprintf("; afterwards they may go on, and count by %d", len(p.Members))
	}
	return &PlanError{
		Finding: fmt.Sprintf("applications may count in the table %s themselves (UPDATE ... LAST_INSERT_ID(id + %d))", v.table.full, len(p.Previous)),
		Remedy:  "stop them and say WITH DIRECT WRITERS STOPPED" + then + "; where there are none: direct_writers = false under [sequence]",
	}
}
