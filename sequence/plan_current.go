package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// This file is how a coordinator finds the plan in force, and the change that is open.

// told is what one server knows of plans.
type told struct {
	address string
	plans   []Plan
}

// left is a proposal that is known on a server and cannot become a change any more.
type left struct {
	address string
	plan    *Plan
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
func (r *planRun) plansOf(addresses []string) (all []told, why, err error) {
	r.reach(addresses...)
	var asked []*server
	for _, address := range addresses {
		v, away := r.server(address)
		if away != nil {
			why = errors.Join(why, away)
			continue
		}
		asked = append(asked, v)
		all = append(all, told{address: address})
	}
	errs := make([]error, len(asked))
	var wg sync.WaitGroup
	for i, v := range asked {
		wg.Go(func() { all[i].plans, errs[i] = v.plans(r.ctx, v.pool()) })
	}
	wg.Wait()
	return all, why, errors.Join(errs...)
}

// current reads the plan in force, and the change that is open if there is one, from all servers that are known here, and those that these know.
func (r *planRun) current() (now Plan, open *Plan, err error) {
	var why error
	var all []told
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
		now, open = r.latest(all)
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
	if open == nil && now.Number > 0 {
		// Finished on some, but not on all that can be reached: that is a change in progress, too.
		return now, r.unfinished(&now), nil
	}
	return now, open, nil
}

// latest is the plan in force, and the change that is open, by what servers have told. It takes note of proposals that are neither.
func (r *planRun) latest(all []told) (now Plan, open *Plan) {
	for _, t := range all {
		for i := range t.plans {
			if p := &t.plans[i]; p.State == PlanInForce && p.Number > now.Number {
				now = *p
			}
		}
	}
	r.lefts = nil
	most := 0
	for _, t := range all {
		for i := range t.plans {
			p := &t.plans[i]
			passed := p.Number == now.Number && p.UUID != now.UUID
			switch {
			case !p.open(), p.Number < now.Number, passed && p.State != planProposed:
				continue // left over on a member that was away
			case passed, hopeless(p, all):
				r.lefts = append(r.lefts, left{t.address, p})
				continue
			}
			known := 0
			for _, o := range all {
				if slices.ContainsFunc(o.plans, func(q Plan) bool { return q.UUID == p.UUID }) {
					known++
				}
			}
			if open == nil || p.Number > open.Number || p.Number == open.Number && known > most {
				open, most = p, known
			}
		}
	}
	return now, open
}

// hopeless reports whether a change is nowhere more than proposed, and so many of its voters have another plan under its number that it cannot get a majority: its coordinator died, or
// was slower, and others that did not see it have gone on.
func hopeless(p *Plan, all []told) bool {
	voters := p.voters()
	against := 0
	for _, t := range all {
		for i := range t.plans {
			o := &t.plans[i]
			switch {
			case o.UUID == p.UUID && o.State != planProposed:
				return false
			case o.UUID != p.UUID && o.Number == p.Number && slices.ContainsFunc(voters, func(m Member) bool { return m.Address == t.address }):
				against++
			}
		}
	}
	return len(voters)-against < len(voters)/2+1
}

// sweep takes proposals back that cannot become a change any more. Should the coordinator of one live, it finds that another has taken over.
func (r *planRun) sweep() error {
	for _, l := range r.lefts {
		v, err := r.server(l.address)
		if err != nil {
			continue
		}
		err = v.transact(r.ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(r.ctx, "DELETE FROM "+v.table.plan+" WHERE `number` = ? AND `uuid` = ? AND `state` = ?", l.plan.Number, l.plan.UUID, planProposed)
			return err
		})
		if err != nil {
			return fmt.Errorf("take back a proposal that was left on %s: %w", l.address, err)
		}
		r.s.log.Warn("proposal of sequence servers taken back", zap.String("change", l.plan.UUID), zap.String("from", l.plan.Coordinator), zap.Uint64("plan", l.plan.Number),
			zap.String("server", l.address))
	}
	return nil
}
