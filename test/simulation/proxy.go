package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"seqproxy/sequence/change"
)

// Proxy reserves numbers, and gives each at once.
type Proxy struct {
	Actor *Actor // whose steps are not waited for, unless it is run as one
	plan  change.Plan
	read  bool
	mark  map[string]uint64 // the highest number that it ever got, by name
}

// NewProxy returns a proxy that cannot reach some members.
func (w *World) NewProxy(name string, cut ...int) *Proxy {
	p := &Proxy{Actor: w.Client(name), mark: make(map[string]uint64)}
	for _, i := range cut {
		p.Actor.Cut[i] = true
	}
	return p
}

// Read has it learn which plan is in force, bring members to it that are behind, and let those go
// on that a change left which came to nothing.
func (p *Proxy) Read() error {
	w := p.Actor.World
	var all []change.Met
	away := false
	for i, m := range w.Members {
		s := Store{p.Actor, m}
		t, err := s.Report(context.Background())
		if err != nil {
			away = away || change.HasMember(p.plan.Members, w.Members[i].ID)
			continue
		}
		all = append(all, change.Met{Store: s, Report: t})
	}
	number := uint64(0)
	for i := range all {
		number = max(number, all[i].Plan)
	}
	if number < p.plan.Number && away {
		return errors.New("a newer plan is in force than those know that can be reached")
	}
	if number == 0 {
		p.plan = change.Plan{Members: []change.Member{{ID: w.Members[0].ID, Address: w.Members[0].Address}}}
		p.read = true
		return nil
	}
	var plan *change.Plan
	for i := range all {
		for j := range all[i].Plans {
			if known := &all[i].Plans[j]; known.Number == number && known.State == change.InForce && all[i].Plan == number {
				plan = known
			}
		}
	}
	if plan == nil {
		return fmt.Errorf("nobody knows plan %d", number)
	}
	change.Reconcile(context.Background(), all, plan)
	p.plan, p.read = *plan, true
	return nil
}

// Take has it reserve n numbers of a name on the member at a position of the world, and give
// them.
func (p *Proxy) Take(at int, name string, n uint64) error {
	w := p.Actor.World
	if !p.read {
		if err := p.Read(); err != nil {
			return err
		}
	}
	for range 3 {
		err := p.take(w.Members[at], name, n)
		if !errors.Is(err, errPlan) {
			return err
		}
		if err := p.Read(); err != nil {
			return err
		}
	}
	return errPlan
}

func (p *Proxy) take(m *Member, name string, n uint64) error {
	w := p.Actor.World
	if !change.HasMember(p.plan.Members, m.ID) {
		return errors.New("it is no member")
	}
	for range 2 {
		var numbers []uint64
		var needs uint64
		err := p.Actor.do(m, "reserve", func() (err error) {
			numbers, needs, err = m.reserve(&p.plan, name, p.mark[name], n)
			return err
		})
		if errors.Is(err, errAtCeiling) {
			if err := p.raise(m, name, needs); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		for _, x := range numbers {
			w.give(name, x, giver{p.Actor.Name, m.Address, p.plan.Number})
		}
		p.mark[name] = max(p.mark[name], numbers[len(numbers)-1])
		return nil
	}
	return errAtCeiling
}

// raise writes down how far a member may go, on all others of which one is enough, and then on
// itself.
func (p *Proxy) raise(m *Member, name string, last uint64) error {
	w := p.Actor.World
	ceiling, of := change.CeilingAbove(last, End, Ahead), LimitOf{m.ID, name}
	recorded := false
	var failed error
	for _, o := range w.Members {
		if o == m || !change.HasMember(p.plan.Members, o.ID) {
			continue
		}
		err := p.Actor.do(o, "record", func() error { return o.record(p.plan.Number, of, ceiling, 0, &w.Faults) })
		recorded = recorded || err == nil
		if err != nil {
			failed = err
		}
	}
	if !recorded {
		if errors.Is(failed, errPlan) || errors.Is(failed, errFrozen) {
			return failed
		}
		return errAtCeiling
	}
	return p.Actor.do(m, "record", func() error { return m.record(p.plan.Number, of, ceiling, ceiling, &w.Faults) })
}

// TakeAll has it try each member.
func (p *Proxy) TakeAll(name string, n uint64) (given int) {
	for i := range p.Actor.World.Members {
		if p.Take(i, name, n) == nil {
			given++
		}
	}
	return given
}

// Plan is the one that it believes in.
func (p *Proxy) Plan() change.Plan { return p.plan }

// Frozen lists the members whose rows stand at the end.
func (w *World) Frozen() (all []string) {
	for _, m := range w.Members {
		for _, id := range m.Rows {
			if id == End && !slices.Contains(all, m.Address) {
				all = append(all, m.Address)
			}
		}
	}
	return all
}
