package simulation

import (
	"errors"
	"fmt"

	"seqproxy/sequence/change"
	"seqproxy/sequence/segment"
)

var (
	errSeveral    = errors.New("it needs a single sequence server")
	errRegistered = errors.New("other proxies are registered")
	errSilent     = errors.New("not all proxies have confirmed that they hold nothing")
)

// IsRefused reports an error after which the sequence is unchanged, because the operator has to do
// something else first.
func IsRefused(err error) bool { return errors.Is(err, errSeveral) || errors.Is(err, errRegistered) }

// An edit is a change of a sequence on all members. It locks all of them, and then commits on one
// after the other.
type edit struct {
	*Proxy
	name   string
	locked []*Member
	of     Options // before the change, and after it
	top    uint64  // the highest number that any of the members gave
}

// edits returns an actor that changes a sequence for a proxy.
func (p *Proxy) edits(what string, f func(p *Proxy) error) *Actor {
	return p.acts(what, func(p *Proxy) error { return p.underPlan(func() error { return f(p) }) })
}

// edit locks the rows of a name on all members, calls f, and writes the options and, with the
// function that f returns, the row of each member.
func (p *Proxy) edit(name string, f func(e *edit) (row func(m *Member) uint64, err error)) error {
	e := &edit{Proxy: p, name: name}
	defer func() {
		for _, m := range e.locked {
			if m.locked == p.Actor {
				m.locked = nil
			}
		}
	}()
	if err := e.lock(); err != nil {
		return err
	}
	e.of.Version = max(e.of.Version, p.epoch[name]) + 1
	row, err := f(e)
	if err != nil {
		return err
	}
	for i, m := range e.locked {
		if err := p.Actor.do(m, "commit", func() error {
			m.Rows[name], m.Options[name], m.locked = row(m), e.of, nil
			return nil
		}); err != nil {
			return fmt.Errorf("after %d of %d: %w: %w", i, len(e.locked), errUnknown, err)
		}
	}
	return nil
}

// lock locks the rows of all members.
func (e *edit) lock() error {
	w := e.Actor.World
	for _, m := range w.Members {
		if !change.HasMember(e.plan.Members, m.ID) {
			continue
		}
		err := e.Actor.write(m, "lock", func() error {
			id, ok := m.Rows[e.name]
			switch {
			case m.Plan != e.plan.Number:
				return errPlan
			case m.changing() && !w.Faults.SetsFrozen:
				return errFrozen
			case !ok:
				return errNoRow
			}
			m.locked = e.Actor
			e.locked = append(e.locked, m)
			e.top = max(e.top, id, m.Floors[e.name], m.floor(e.name))
			if o := m.Options[e.name]; o.Version >= e.of.Version {
				e.of = o
			}
			return nil
		})
		if errors.Is(err, errAway) && w.Faults.SetsSome {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// floor returns the floor of a name in the plan that a member obeys.
func (m *Member) floor(name string) uint64 {
	if b := m.Starts[Start{m.Plan, name}]; b != nil {
		return b.Floor
	}
	return m.Others[m.Plan]
}

// atLeast returns where the row of a member stands after it is raised to n: at one of the member's
// own numbers, where members divide them in steps.
func (e *edit) atLeast(m *Member, n uint64) uint64 {
	n = max(n, m.Rows[e.name], m.floor(e.name))
	if e.plan.Interleave == segment.InSteps && len(e.plan.Members) > 1 && n < End {
		for owns := owner(&e.plan, int(m.Position)); n > 0 && !owns(n); {
			n++
		}
	}
	return n
}

// SetValue returns an actor that moves a sequence above n, for a proxy.
func (p *Proxy) SetValue(name string, n uint64) *Actor {
	return p.edits(fmt.Sprint("sets ", n), func(p *Proxy) error {
		err := p.edit(name, func(e *edit) (func(m *Member) uint64, error) {
			return func(m *Member) uint64 { return e.atLeast(m, n) }, nil
		})
		if err == nil {
			p.Actor.World.promise(name, func(to *promised) { to.passed = max(to.passed, n) })
		}
		return err
	})
}

// MakeOrdered returns an actor that makes a sequence one with ORDER, for a proxy.
func (p *Proxy) MakeOrdered(name string, home int) *Actor {
	return p.edits("orders", func(p *Proxy) error {
		w := p.Actor.World
		err := p.edit(name, func(e *edit) (func(m *Member) uint64, error) {
			if !e.of.Order {
				e.of.Order, e.of.Home = true, w.Members[home].ID
			}
			return func(m *Member) uint64 { return e.atLeast(m, e.top) }, nil
		})
		if err != nil {
			return err
		}
		if err := p.Actor.pause("await"); err != nil {
			return err
		}
		for _, o := range w.proxies {
			if *o.taken > 0 {
				return errSilent
			}
		}
		w.promise(name, func(to *promised) { to.order = true })
		return nil
	})
}

// Restart returns an actor that makes a sequence begin again at first, as RESTART ... FORCE does,
// for a proxy.
func (p *Proxy) Restart(name string, first uint64) *Actor {
	return p.edits(fmt.Sprint("restarts at ", first), func(p *Proxy) error {
		if len(p.plan.Members) > 1 {
			return errSeveral
		}
		epoch := uint64(0)
		err := p.edit(name, func(e *edit) (func(m *Member) uint64, error) {
			for other := range e.locked[0].Proxies {
				if other != p.name && !p.Actor.World.Faults.RestartsUnchecked {
					return nil, errRegistered
				}
			}
			epoch, e.of.Epoch = e.of.Version, e.of.Version
			return func(*Member) uint64 {
				p.Actor.World.restarted(name, epoch)
				return first - 1
			}, nil
		})
		if err == nil || errors.Is(err, errUnknown) {
			p.enter(name, epoch)
		}
		return err
	})
}

// restarted notes that the numbers of a name may be given again, as the operator asked.
func (w *World) restarted(name string, epoch uint64) {
	for key := range w.given {
		if key.name == name {
			delete(w.given, key)
		}
	}
	w.promise(name, func(to *promised) { to.epoch, to.answered, to.passed = epoch, 0, 0 })
}

// agree writes the options of the highest version to all members within reach.
func (p *Proxy) agree(name string) {
	var newest Options
	for _, m := range p.Actor.World.Members {
		_ = p.Actor.do(m, "find", func() error {
			if o := m.Options[name]; m.Plan == p.plan.Number && o.Version > newest.Version {
				newest = o
			}
			return nil
		})
	}
	for _, m := range p.Actor.World.Members {
		if m.Options[name].Version < newest.Version {
			_ = p.Actor.write(m, "agree", func() error { // the next proxy that looks does it
				if m.Plan == p.plan.Number && !m.changing() && m.Options[name].Version < newest.Version {
					m.Options[name] = newest
				}
				return nil
			})
		}
	}
}
