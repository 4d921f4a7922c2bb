package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"seqproxy/sequence/change"
	"seqproxy/sequence/segment"
)

// Proxy reserves numbers, and gives each at once.
type Proxy struct {
	Actor *Actor // its steps are done at once, unless it runs as an actor
	name  string // the name of its registration
	plan  change.Plan
	read  bool
	mark  map[string]uint64 // the highest number that it ever got, by name
	epoch map[string]uint64 // the epoch of mark, by name
	out   map[int]bool      // members that it has left out
	lines map[int]line      // its connections
	taken *int              // so many callers wait for its next reservation
}

// line is a connection to a member.
type line struct {
	starts int // of the member, when the connection was made
	// The plans under which others were asked, and have confirmed, that the member is still the
	// home of ORDER sequences.
	asked, noted uint64
}

// NewProxy returns a proxy that cannot reach some members.
func (w *World) NewProxy(name string, cut ...int) *Proxy {
	p := &Proxy{
		Actor: w.Client(name), name: name, mark: make(map[string]uint64), epoch: make(map[string]uint64), out: make(map[int]bool), lines: make(map[int]line),
		taken: new(int),
	}
	for _, i := range cut {
		p.Actor.Cut[i] = true
	}
	w.proxies = append(w.proxies, p)
	return p
}

// Taker returns an actor that asks all members for n numbers, so many times, for a proxy.
func (p *Proxy) Taker(name string, n uint64, times int) *Actor {
	return p.acts("takes", func(p *Proxy) error {
		for range times {
			p.TakeAll(name, n)
		}
		return nil
	})
}

// acts returns an actor that does something for a proxy, over connections of its own.
func (p *Proxy) acts(what string, f func(p *Proxy) error) *Actor {
	return p.Actor.World.NewActor(p.name+" "+what, func(a *Actor) error {
		as := *p
		as.Actor, as.lines, as.out = a, make(map[int]line), make(map[int]bool)
		return f(&as)
	})
}

// Stop ends a proxy in order: it is removed from the members' lists.
func (p *Proxy) Stop() {
	for _, m := range p.Actor.World.Members {
		_ = p.Actor.do(m, "leave", func() error { // a member out of reach keeps it
			delete(m.Proxies, p.name)
			return nil
		})
	}
}

// Read makes the proxy learn the plan in force, bring members that are behind to it, and thaw those
// that an undone change left frozen.
func (p *Proxy) Read() error {
	w := p.Actor.World
	var all []change.Met
	for i, m := range w.Members {
		s := Store{p.Actor, m}
		t, err := s.Report(context.Background())
		if err != nil {
			p.leaveOut(i)
			continue
		}
		all = append(all, change.Met{Store: s, Report: t})
	}
	number := uint64(0)
	for i := range all {
		number = max(number, all[i].Plan)
	}
	if number < p.plan.Number {
		return errors.New("a newer plan is in force than those know that can be reached")
	}
	if number == 0 {
		p.plan = change.Plan{Members: []change.Member{{ID: w.Members[0].ID, Address: w.Members[0].Address}}}
		p.read = true
		delete(p.out, 0)
		return nil
	}
	var plan *change.Plan
	for i := range all {
		for j := range all[i].Plans {
			if candidate := &all[i].Plans[j]; candidate.Number == number && candidate.State == change.InForce && all[i].Plan == number {
				plan = candidate
			}
		}
	}
	if plan == nil {
		return fmt.Errorf("nobody knows plan %d", number)
	}
	failed := change.Reconcile(context.Background(), all, plan, nil, nil)
	for i := range all {
		if at := slices.Index(w.Members, all[i].Store.(Store).Member); failed[i] == nil {
			delete(p.out, at)
		} else {
			p.leaveOut(at)
		}
	}
	p.plan, p.read = *plan, true
	return nil
}

func (p *Proxy) leaveOut(at int) {
	p.out[at] = true
	delete(p.lines, at)
}

// Take makes it reserve n numbers of a name on the member at a position of the world, and give
// them.
func (p *Proxy) Take(at int, name string, n uint64) error {
	waits := p.Actor.World.promised[name] // promises made before its caller asked
	return p.underPlan(func() error { return p.take(at, name, n, waits) })
}

// underPlan runs f again once the proxy knows the plan in force.
func (p *Proxy) underPlan(f func() error) error {
	if !p.read {
		if err := p.Read(); err != nil {
			return err
		}
	}
	for range 3 {
		err := f()
		if !errors.Is(err, errPlan) {
			return err
		}
		if err := p.Read(); err != nil {
			return err
		}
	}
	return errPlan
}

func (p *Proxy) take(at int, name string, n uint64, waits promised) error {
	w := p.Actor.World
	m := w.Members[at]
	if !change.HasMember(p.plan.Members, m.ID) {
		return errors.New("it is no member")
	}
	*p.taken++
	defer func() { *p.taken-- }()
	for range 3 {
		var numbers []uint64
		var needs, passed uint64
		var of Options
		plan, epoch := p.plan, p.epoch[name]
		err := p.Actor.write(m, "reserve", func() (err error) {
			m.Proxies[p.name] = true
			floor := p.mark[name]
			if len(plan.Members) == 1 { // the row alone decides
				floor = 0
			}
			numbers, needs, err = m.reserve(&plan, name, floor, n)
			of, passed = m.Options[name], w.promised[name].passed
			return err
		})
		switch {
		case errors.Is(err, errAtCeiling):
			if err := p.raise(m, name, needs); err != nil {
				return err
			}
			continue
		case errors.Is(err, errAway), errors.Is(err, errUnknown), errors.Is(err, errPlan):
			p.leaveOut(at)
		}
		if err != nil {
			return err
		}
		if of.Order {
			if err := p.mayGive(at, m, &plan, &of, name); err != nil {
				return err
			}
		}
		if err := p.Actor.pause("give"); err != nil {
			return err
		}
		p.enter(name, of.Epoch)
		if epoch != p.epoch[name] && !w.Faults.KeepsEpoch {
			continue // the member was restarted meanwhile
		}
		if numbers[0] <= p.mark[name] {
			return errors.New("the row has gone back")
		}
		p.mark[name] = max(p.mark[name], numbers[n-1])
		p.give(name, numbers, passed, waits, giver{p.name, m.Address, plan.Number, of.Epoch})
		return nil
	}
	return errAtCeiling
}

// enter notes that a sequence has begun again.
func (p *Proxy) enter(name string, epoch uint64) {
	if epoch > p.epoch[name] {
		p.epoch[name], p.mark[name] = epoch, 0
	}
}

// give hands out numbers that were reserved when the name had been moved above passed. waits are
// the promises made before the caller asked.
func (p *Proxy) give(name string, numbers []uint64, passed uint64, waits promised, by giver) {
	w := p.Actor.World
	first, last := numbers[0], numbers[len(numbers)-1]
	if first <= passed {
		w.broken("%s %d by %s, after it was moved above %d", name, first, by, passed)
	}
	if waits.order && waits.epoch == by.epoch && first <= waits.answered {
		w.broken("%s %d by %s, out of order: its caller knew of %d", name, first, by, waits.answered)
	}
	for _, x := range numbers {
		w.give(name, x, by)
	}
	if by.epoch == w.promised[name].epoch {
		w.promise(name, func(to *promised) { to.answered = max(to.answered, last) })
	}
}

// mayGive checks, after numbers of an ORDER sequence were taken, that the member is its home.
func (p *Proxy) mayGive(at int, m *Member, plan *change.Plan, of *Options, name string) error {
	if len(plan.Members) < 2 {
		return nil
	}
	faults := &p.Actor.World.Faults
	if of.Home != m.ID && (m.Position != 0 || change.HasMember(plan.Members, of.Home)) && !faults.AnyHome {
		p.agree(name)
		return errNotHome
	}
	if faults.HomeUnasked {
		return nil
	}
	return p.stillHome(at, m, plan)
}

// stillHome checks that the home of ORDER sequences was not removed while it was off.
func (p *Proxy) stillHome(at int, m *Member, plan *change.Plan) error {
	w := p.Actor.World
	l := p.lines[at]
	if l.starts != m.starts {
		l = line{starts: m.starts}
	}
	if l.noted == plan.Number {
		return nil
	}
	heard, removed, leaving := 0, false, false
	for i, o := range w.Members {
		if o == m || !change.HasMember(plan.Members, o.ID) || p.out[i] && (l.asked == plan.Number || w.Faults.AsksThoseThere) {
			continue
		}
		err := p.Actor.do(o, "ask", func() error {
			removed = removed || o.Plan > plan.Number
			for _, other := range o.Plans {
				leaving = leaving || other.Number > plan.Number && other.State == change.Accepted
			}
			return nil
		})
		if err == nil {
			heard++
		}
	}
	switch {
	case removed:
		return errPlan
	case leaving:
		return errFrozen
	}
	l.asked = plan.Number
	if heard > 0 {
		l.noted = plan.Number
	}
	p.lines[at] = l
	return nil
}

// raise writes down how far a member may go, on all others of which one is enough, and then on
// itself.
func (p *Proxy) raise(m *Member, name string, last uint64) error {
	w := p.Actor.World
	ceiling, of := segment.CeilingAbove(last, End, Ahead), LimitOf{m.ID, name}
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

// TakeAll tries each member.
func (p *Proxy) TakeAll(name string, n uint64) (given int) {
	for i := range p.Actor.World.Members {
		if p.Take(i, name, n) == nil {
			given++
		}
	}
	return given
}

// Plan returns the plan that the proxy believes in.
func (p *Proxy) Plan() change.Plan { return p.plan }

// Frozen lists the members whose rows are at the end.
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
