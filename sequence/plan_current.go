package sequence

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// This file is how a coordinator finds the plan in force, and the change that is open.

// report is what one server knows of plans.
type report struct {
	Membership
	address string
	plans   []Plan
}

// change returns a change by its uuid; nil if the server does not know it.
func (t *report) change(uuid string) *Plan {
	i := slices.IndexFunc(t.plans, func(p Plan) bool { return p.UUID == uuid })
	if i < 0 {
		return nil
	}
	return &t.plans[i]
}

// reach connects to servers, all at the same time.
func (r *planRun) reach(addresses ...string) {
	var news []*server
	for _, address := range addresses {
		if r.away[address] != nil || r.opened[address] != nil {
			continue
		}
		o, err := r.s.serverOptions(address)
		if err == nil {
			var v *server
			if v, err = newServer(r.s.opts, o, &counters{scores: newScores()}, newMarks()); err == nil {
				v.tuning = r.s.tuning
				r.opened[address] = v
				news = append(news, v)
				continue
			}
		}
		r.away[address] = err
	}
	errs := make([]error, len(news))
	var wg sync.WaitGroup
	for i, v := range news {
		wg.Go(func() {
			ctx, stop := context.WithTimeoutCause(r.ctx, v.opts.DialTimeout+time.Second, errPatience)
			defer stop()
			conn, err := v.conn(ctx)
			if err == nil {
				err = conn.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for address, v := range r.opened {
		if i := slices.Index(news, v); i >= 0 && errs[i] != nil {
			r.away[address] = errs[i]
		}
	}
}

// plansOf asks servers which plans they know, all at the same time. Those that cannot be reached are left out; why is the reason.
func (r *planRun) plansOf(addresses []string) (all []report, why, err error) {
	r.reach(addresses...)
	var asked []*server
	for _, address := range addresses {
		v, away := r.server(address)
		if away != nil {
			why = errors.Join(why, away)
			continue
		}
		asked = append(asked, v)
		all = append(all, report{address: address})
	}
	errs := make([]error, len(asked))
	var wg sync.WaitGroup
	for i, v := range asked {
		wg.Go(func() {
			t := &all[i]
			if t.Membership, _, errs[i] = v.membership(r.ctx, v.pool()); errs[i] == nil {
				t.plans, errs[i] = v.plans(r.ctx, v.pool())
			}
		})
	}
	wg.Wait()
	return all, why, errors.Join(errs...)
}

// current reads the plan in force, and the change that is open if there is one, from all servers that are known here, and those that these know.
func (r *planRun) current() (now Plan, open *Plan, err error) {
	var why error
	var all []report
	var ask, asked []string
	for _, v := range r.s.servers.members() {
		ask = append(ask, v.opts.Addr)
	}
	for len(ask) > 0 {
		more, away, err := r.plansOf(ask)
		if err != nil {
			return now, nil, err
		}
		all, why, asked = append(all, more...), errors.Join(why, away), append(asked, ask...)
		now, open = latest(all)
		ask = nil
		known := slices.Concat(now.Members, now.Previous)
		if open != nil {
			known = slices.Concat(known, open.Members, open.Previous)
		}
		for _, m := range known {
			if !slices.Contains(asked, m.Address) && !slices.Contains(ask, m.Address) {
				ask = append(ask, m.Address)
			}
		}
	}
	if len(all) == 0 {
		return now, nil, &PlanError{Finding: "no sequence server can be reached", Err: why, unreached: true}
	}
	return now, open, nil
}

// latest is the plan in force, and the change that is open, by what servers have told.
func latest(all []report) (now Plan, open *Plan) {
	for _, t := range all {
		for _, p := range t.plans {
			if p.State == PlanInForce && p.Number > now.Number {
				now = p
			}
		}
	}
	most := 0
	for _, t := range all {
		for i := range t.plans {
			p := &t.plans[i]
			if !p.open() || p.UUID == now.UUID || !p.follows(&now) || p.vetoed(all) {
				continue // or it is left on a member that was away
			}
			knows := 0
			for _, o := range all {
				if o.change(p.UUID) != nil {
					knows++
				}
			}
			if open == nil || p.Number > open.Number || p.Number == open.Number && knows > most {
				open, most = p, knows
			}
		}
	}
	return now, open
}
