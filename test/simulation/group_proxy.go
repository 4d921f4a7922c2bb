package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"seqproxy/sequence/limit"
)

// GroupProxy reserves numbers of a group, and gives each at once. Like package sequence, it finds
// the writable node, and remembers the ceilings there.
type GroupProxy struct {
	*Actor
	group    *Group
	now      *choice
	last     *choice           // the node before
	ceilings map[string]uint64 // ceilings on the node in use
	Given    int
	// Order makes its numbers those of an ORDER sequence: higher than any that a client got before
	// the request.
	Order bool
	// Ahead makes it open the next window before it is needed.
	Ahead bool
	// Moves is by how much it moves the sequence ahead after each number, as SETVAL, REPAIR and
	// RESTART do; 0: not at all.
	Moves uint64
}

// NewGroupProxy returns a proxy that takes n numbers of a sequence at a time, so many times, each
// in up to six attempts.
func (g *Group) NewGroupProxy(id, name string, n uint64, times int) *GroupProxy {
	p := &GroupProxy{group: g, ceilings: make(map[string]uint64)}
	p.Actor = g.NewActor(id, func(a *Actor) error {
		var err error
		for range times {
			for range 6 {
				if err = p.take(name, n); err == nil || a.killed {
					break
				}
			}
			if p.Moves > 0 && !a.killed {
				_ = p.move(name, p.Moves) // a failed move promises nothing
			}
		}
		return err
	})
	return p
}

// choose finds the writable node.
func (p *GroupProxy) choose() error {
	g := p.group
	var best *choice
	for _, n := range g.Nodes {
		var c *choice
		_ = g.at(p.Actor, n, "look", func() error { // a node that does not answer is not chosen
			if s := g.standing(n); s.Writable && s.Apart == "" && (n.source == nil || g.Cluster) && !n.Forgets {
				c = &choice{n, limit.Node{Address: n.Address, Identity: n.ID, Holder: s.Holder, Cluster: g.Cluster}}
			}
			return nil
		})
		switch {
		case c == nil:
		case best == nil:
			best = c
		case !g.Cluster || best.Holder != c.Holder && !g.Faults.HolderPerNode:
			return errTwoPrimaries
		case p.last != nil && p.last.node == n:
			best = c // the proxy stays with its node
		}
	}
	if best == nil {
		return errAway
	}
	if p.last == nil || p.last.Node != best.Node {
		clear(p.ceilings)
	}
	p.now, p.last = best, best
	return nil
}

// of returns the group as one attempt sees it.
func (p *GroupProxy) of(now *choice) *limit.Group {
	s := nodeStore{p.group, p.Actor, now}
	return &limit.Group{Store: s, Nodes: nodeNodes(s), Chosen: now.Node, Count: len(p.group.Nodes)}
}

// failed decides what follows an error of a group: the proxy looks for the node again where it is
// no longer writable.
func (p *GroupProxy) failed(err error) error {
	if errors.Is(err, errReadOnly) || errors.Is(err, errChosen) || errors.Is(err, errAway) || errors.Is(err, errNotReady) || errors.Is(err, errUnknown) {
		p.now = nil
	}
	return err
}

// takeOver makes the node in use the holder.
func (p *GroupProxy) takeOver(name string, over limit.Holder) error {
	made, err := p.of(p.now).TakeOver(context.Background(), name, over)
	if err == nil && made.Term > 0 {
		clear(p.ceilings)
	}
	return p.failed(err)
}

// open raises the ceiling of a sequence.
func (p *GroupProxy) open(name string, n uint64) error {
	w, err := p.of(p.now).Open(context.Background(), name, n, false)
	lost := new(limit.SeenError)
	switch {
	case errors.Is(err, limit.ErrNotHolder):
		delete(p.ceilings, name)
		return p.takeOver(name, limit.Holder{})
	case errors.As(err, &lost) && lost.Newer.Term > 0:
		p.now = nil // it may be the primary after all
		if err := p.choose(); err != nil {
			return err
		}
		return p.takeOver(name, lost.Newer)
	}
	if w.Granted > 0 {
		p.ceilings[name] = w.Granted
	}
	return p.failed(err)
}

// upTo returns the ceiling of a sequence on the node in use.
func (p *GroupProxy) upTo(name string) (uint64, error) {
	if ceiling, ok := p.ceilings[name]; ok {
		return ceiling, nil
	}
	s := p.of(p.now).Store
	counter, err := s.Counter(context.Background(), name, 0)
	if err != nil {
		return 0, err
	}
	recorded, err := s.Record(context.Background(), limit.Scope{Name: name})
	if err != nil {
		return 0, err
	}
	l, ok := recorded.Admits(p.now.Holder, counter.Position, counter.End)
	switch {
	case !ok:
		return 0, limit.ErrNotHolder
	case l.Granted == 0:
		return 0, errAtCeiling
	}
	p.ceilings[name] = l.Granted
	return l.Granted, nil
}

// reserve takes n numbers up to a ceiling under a term, if the node has the expected identity.
func (g *Group) reserve(a *Actor, now *choice, name string, ceiling, n uint64) (last, term uint64, err error) {
	err = g.at(a, now.node, "reserve", func() error {
		r := &now.node.rows
		position, ok := r.counters[name]
		if !ok {
			return errNoRow
		}
		if now.node.ReadOnly {
			return errReadOnly
		}
		of := limit.Scope{Name: name}
		recorded := g.Faults.seen(r.record(of), of, now.Holder)
		l, ok := recorded.Admits(now.Holder, position, g.Highest)
		switch {
		case !ok:
			return limit.ErrNotHolder
		case n > ceiling-min(position, ceiling) || l.Granted < ceiling:
			return errAtCeiling
		case !g.Cluster && g.holder(now.node) != now.Holder:
			return limit.ErrNotHolder // the server itself evaluates its identity
		}
		last, term = position+n, r.holders[now.Holder].Term
		return g.commit(now.node, &commit{counters: map[string]uint64{name: last}}, len(now.node.commits))
	})
	return last, term, err
}

// take is one attempt to take n numbers.
func (p *GroupProxy) take(name string, n uint64) error {
	if p.now == nil {
		if err := p.choose(); err != nil {
			return err
		}
	}
	now, answered := p.now, p.group.answered[name]
	ceiling, err := p.upTo(name)
	var last, term, above uint64
	if err == nil {
		above = p.group.passed[name].n
		if since := p.group.passed[name].term; since > now.node.rows.holders[now.Holder].Term {
			above = 0 // a later holder has moved it
		}
		last, term, err = p.group.reserve(p.Actor, now, name, ceiling, n)
	}
	switch {
	case errors.Is(err, errAtCeiling):
		delete(p.ceilings, name)
		return errors.Join(err, p.open(name, n))
	case errors.Is(err, limit.ErrNotHolder):
		delete(p.ceilings, name)
		return errors.Join(err, p.takeOver(name, limit.Holder{}))
	case err != nil:
		return p.failed(err)
	}
	if p.group.Cluster && !p.group.Faults.Unconfirmed {
		if err := p.group.at(p.Actor, now.node, "confirm", func() error {
			if p.group.holder(now.node) != now.Holder {
				return errChosen
			}
			return nil
		}); err != nil {
			return p.failed(err) // the numbers become a gap
		}
	}
	if p.Order && !p.group.Cluster && !p.group.Faults.OrderUnseen {
		if err := p.of(now).StillHolds(context.Background()); err != nil {
			return p.failed(err) // the numbers become a gap
		}
	}
	first := last - n + 1
	if first <= above {
		p.group.Twice = append(p.group.Twice, fmt.Sprintf("%s gives %d of %s, which was moved above %d", p.Name, first, name, above))
	}
	if p.Order && first <= answered {
		p.group.Twice = append(p.group.Twice, fmt.Sprintf("%s gives %d of %s, after %d was given", p.Name, first, name, answered))
	}
	for x := first; x <= last; x++ {
		p.group.give(name, x, giver{proxy: p.Name, member: now.Address, plan: term})
		p.Given++
	}
	p.group.answered[name] = max(p.group.answered[name], last)
	if p.Ahead && !p.group.Ticks && limit.WindowLow(last, n, ceiling, p.group.Highest) {
		_ = p.open(name, n) // an error comes again at the ceiling
	}
	return nil
}

// move makes a sequence go on that much further, whatever fails over.
func (p *GroupProxy) move(name string, by uint64) error {
	if p.now == nil {
		if err := p.choose(); err != nil {
			return err
		}
	}
	g, now := p.group, p.now
	var to uint64
	err := g.at(p.Actor, now.node, "move", func() error {
		r := &now.node.rows
		position, ok := r.counters[name]
		switch {
		case now.node.ReadOnly:
			return errReadOnly
		case g.holder(now.node) != now.Holder:
			return errChosen
		case !ok:
			return errNoRow
		case by > g.Highest-position:
			return limit.ErrNoRoom
		}
		to = position + by
		c := &commit{counters: map[string]uint64{name: to}}
		if !g.Faults.MovesUnwanted {
			c.limits = map[limitKey]limit.Limit{{name, now.Holder}: r.wants(name, now.Holder, to)}
		}
		return g.commit(now.node, c, len(now.node.commits))
	})
	if err != nil {
		return p.failed(err)
	}
	for range 4 {
		if g.Faults.SetUnseen {
			break
		}
		var ceiling uint64
		ceiling, err = p.upTo(name)
		switch {
		case errors.Is(err, limit.ErrNotHolder):
			err = p.takeOver(name, limit.Holder{})
		case err == nil && ceiling < to, errors.Is(err, errAtCeiling):
			delete(p.ceilings, name)
			err = errors.Join(errAtCeiling, p.open(name, 1))
		}
		if err == nil && ceiling >= to || p.now == nil {
			break
		}
	}
	if err == nil && p.now == nil {
		err = errAway
	}
	if err != nil {
		return p.failed(err)
	}
	now = p.now
	counter, err := p.of(now).Store.Counter(context.Background(), name, 0)
	if err == nil && counter.Position < to {
		err = errors.New("it has taken over")
	}
	if err != nil {
		return p.failed(err)
	}
	if was, term := g.passed[name], now.node.rows.holders[now.Holder].Term; to > was.n {
		g.passed[name] = passed{to, max(term, was.term)}
	}
	return nil
}

// CutFrom makes it reach all nodes but these.
func (p *GroupProxy) CutFrom(nodes ...int) {
	for i := range p.group.Nodes {
		p.Cut[i] = slices.Contains(nodes, i)
	}
}
