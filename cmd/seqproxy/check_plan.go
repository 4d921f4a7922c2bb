package main

import (
	"fmt"
	"slices"
	"time"

	"seqproxy/conf"
	"seqproxy/internal/inspect"
	"seqproxy/sequence"
)

// sequenceServersTogether checks the sequence servers as a whole: no two are the same, and the plan
// that divides the numbers is right.
func (k *connected) sequenceServersTogether(all []sequence.ExaminedServer) {
	f := k.at("sequence servers")
	type place struct{ server, database string }
	first := make(map[place]string)
	in := make(map[place]int)
	names, nameAt := "", ""
	for i := range all {
		for j := range all[i].Nodes {
			n := &all[i].Nodes[j]
			if n.Err != nil {
				continue
			}
			p := place{n.Place, k.cfg.Sequence.Servers[i].Database}
			if other, ok := first[p]; ok && in[p] != i {
				f.Wrong("addresses", fmt.Sprintf("%s and %s are one server", other, n.Addr), "name each sequence server once")
			} else {
				first[p], in[p] = n.Addr, i
			}
			switch {
			case n.NameType == "" || n.NameType == names:
			case names == "":
				names, nameAt = n.NameType, n.Addr
			default:
				table := quoteName(k.cfg.Sequence.Servers[i].Database, k.cfg.Sequence.Table)
				k.at("sequence server "+n.Addr).Warn("names", fmt.Sprintf("the column `name` is %s there and %s on %s: a name may mean different sequences on them", n.NameType, names, nameAt),
					"", "ALTER TABLE "+table+" MODIFY `name` "+names+" NOT NULL")
			}
		}
	}
	k.plan(f, all)
}

// plan compares the plan in force with the configuration.
func (k *connected) plan(f *inspect.Findings, all []sequence.ExaminedServer) {
	var number uint64
	var plan, change *sequence.Plan
	for i := range all {
		for j := range all[i].Nodes {
			n := &all[i].Nodes[j]
			number = max(number, n.Membership.Plan)
			if n.Change != nil && (change == nil || n.Change.Number > change.Number) {
				change = n.Change
			}
		}
	}
	for i := range all {
		for j := range all[i].Nodes {
			for p := range all[i].Nodes[j].Plans {
				if one := &all[i].Nodes[j].Plans[p]; one.Number == number && one.State == sequence.PlanInForce {
					plan = one
				}
			}
		}
	}
	q := &k.cfg.Sequence
	if number == 0 {
		if len(all) > 1 {
			k.noPlan(f, len(all))
		}
		return
	}
	if change != nil && change.Number > number {
		f.Wrong("plan", fmt.Sprintf("a change to plan %d is %s, begun by %s at %s UTC", change.Number, change.State, change.Coordinator, change.Begun.Format(time.DateTime)),
			"wait for its end; if its proxy died, say the same SEQPROXY ADD or REMOVE SEQUENCE SERVER again, on any other one, which ends it")
	}
	if plan == nil {
		f.Wrong("plan", fmt.Sprintf("plan %d is in force, but nobody knows it", number), "restore the table of the plans from another sequence server")
		return
	}
	before := len(f.All)
	if len(plan.Members) == 1 {
		// The plan has a single member, which gets all numbers.
	} else if string(q.Interleave) != plan.Interleave {
		f.Warn("plan", fmt.Sprintf("sequence.interleave is %q, the plan in force divides by %q, and counts", q.Interleave, plan.Interleave),
			fmt.Sprintf("interleave = %q; to change it, remove all servers but one and add them again", plan.Interleave))
	} else if plan.Interleave == sequence.InterleaveBlock && uint64(q.Block) != plan.Block {
		f.Warn("plan", fmt.Sprintf("sequence.block is %d, the plan in force has blocks of %d, and counts", q.Block, plan.Block),
			fmt.Sprintf("block = %d; to change it, remove all servers but one and add them again", plan.Block))
	}
	for _, m := range plan.Members {
		if !slices.ContainsFunc(all, func(e sequence.ExaminedServer) bool { return e.Addr == m.Address }) {
			f.Warn("plan", fmt.Sprintf("the member %s of the plan in force is no [[sequence.server]]; it is used with the account of the first", m.Address),
				fmt.Sprintf("[[sequence.server]] with address = %q, or SEQPROXY REMOVE SEQUENCE SERVER '%s'", m.Address, m.Address))
		}
	}
	for i := range all {
		for j := range all[i].Nodes {
			n := &all[i].Nodes[j]
			switch {
			case n.Err != nil || len(all[i].Nodes) > 1 && n.ReadOnly:
			case len(all[i].Nodes) > 1 && len(plan.Members) > 1:
				f.Wrong("plan", fmt.Sprintf("%s is a group, and one of %d servers of the plan in force: it gives no numbers", all[i].Addr, len(plan.Members)),
					"one address in place of nodes; or remove the other servers before, and keep the group alone")
			case !slices.ContainsFunc(plan.Members, func(m sequence.Member) bool { return m.Address == all[i].Addr }):
				mend := fmt.Sprintf("SEQPROXY ADD SEQUENCE SERVER '%s', said to a proxy, or take it out of the configuration", all[i].Addr)
				if slices.ContainsFunc(plan.Members, func(m sequence.Member) bool { return m.ID == n.Membership.ID }) {
					table := k.cfg.Sequence.Table
					mend = fmt.Sprintf("it is a copy of a member; if it shall count by itself, DELETE FROM %s and %s there (seqproxy help restore)", quoteName(table+"_plan"), quoteName(table+"_member"))
				}
				f.Warn("plan", fmt.Sprintf("%s is no member of the plan in force, and gives no numbers", all[i].Addr), mend)
			case n.Membership.Plan < number:
				f.Warn("plan", fmt.Sprintf("%s obeys plan %d, plan %d is in force; the next proxy that reaches it brings it up", all[i].Addr, n.Membership.Plan, number), "start a proxy")
			}
		}
	}
	if len(f.All) == before {
		f.OK("plan", "%d is in force: %d servers, interleave %s", number, len(plan.Members), plan.Interleave)
	}
}

// noPlan reports several servers that do not divide the numbers yet.
func (k *connected) noPlan(f *inspect.Findings, servers int) {
	if k.cfg.Sequence.Interleave == conf.InterleaveStep {
		f.OK("plan", "none is in force; the first start makes one of %d servers, which count in steps", servers)
		return
	}
	f.Wrong("plan", fmt.Sprintf("none is in force, and %d sequence servers are configured", servers),
		"configure the one that has the rows, or any one of them if none has, start with that, and say SEQPROXY ADD SEQUENCE SERVER for each of the others")
}
