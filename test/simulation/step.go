package simulation

import (
	"errors"
	"maps"
	"slices"

	"seqproxy/sequence/limit"
)

// This file is for tests that run single steps on a node, and compare them with those of a server.

// As is the group as an actor sees it that writes to a node.
func (g *Group) As(a *Actor, at int) *limit.Group {
	s := nodeStore{g, a, g.chosen(at)}
	return &limit.Group{Store: s, Nodes: nodeNodes(s), Chosen: s.now.Node, Count: len(g.Nodes)}
}

func (g *Group) chosen(at int) *choice {
	n := g.Nodes[at]
	return &choice{n, limit.Node{Address: n.Address, Identity: n.ID, Holder: g.holder(n), Cluster: g.Cluster}}
}

// Reserve takes n numbers up to a ceiling on a node, and returns the last one. Why none are taken
// is read afterwards, as from a server: the row, and then the limits.
func (g *Group) Reserve(a *Actor, at int, name string, ceiling, n uint64) (last uint64, err error) {
	now := g.chosen(at)
	last, _, err = g.reserve(a, now, name, ceiling, n)
	switch {
	case err == nil:
		return last, nil
	case !errors.Is(err, limit.ErrNotHolder) && !errors.Is(err, errAtCeiling):
		return 0, err
	}
	var position uint64
	if err := g.at(a, now.node, "read the row", func() error {
		var ok bool
		if position, ok = now.node.rows.counters[name]; !ok {
			return errNoRow
		}
		return nil
	}); err != nil {
		return 0, err
	}
	return 0, g.at(a, now.node, "read the limits", func() error {
		if _, ok := now.node.rows.record(limit.Scope{Name: name}).Admits(now.Holder, position, g.Highest); !ok {
			return limit.ErrNotHolder
		}
		return errAtCeiling
	})
}

// Standing returns a node's report about itself.
func (g *Group) Standing(at int) *limit.Standing { return g.standing(g.Nodes[at]) }

// Set sets rows on a node by hand.
func (g *Group) Set(a *Actor, at int, counters map[string]uint64) error {
	n := g.Nodes[at]
	return g.at(a, n, "set", func() error { return g.commit(n, &commit{counters: counters}, len(n.commits)) })
}

// Begin sets rows on a node in a transaction, and returns a function that commits it.
func (g *Group) Begin(at int, counters map[string]uint64) (commits func() error) {
	n := g.Nodes[at]
	prepared := len(n.commits)
	return func() error { return g.commit(n, &commit{counters: counters}, prepared) }
}

// Hold writes a row on a node in a transaction, and returns a function that ends it.
func (g *Group) Hold(at int, name string, id uint64) (ends func(commits bool)) {
	n := g.Nodes[at]
	mine := &commit{counters: map[string]uint64{name: id}}
	n.open = mine
	return func(commits bool) {
		if n.open != mine { // the node was killed
			return
		}
		if n.open = nil; commits {
			n.take(mine)
		}
	}
}

// Drop deletes a row on a node by hand. A cluster has no such step.
func (g *Group) Drop(a *Actor, at int, name string) error {
	n := g.Nodes[at]
	return g.at(a, n, "drop", func() error { return g.commit(n, &commit{dropped: []string{name}}, len(n.commits)) })
}

// Holds returns the contents of a node's tables.
func (n *Node) Holds() (counters map[string]uint64, recorded limit.Record) {
	return maps.Clone(n.rows.counters), n.rows.record(limit.Scope{All: true})
}

// Clone returns a group whose nodes have the same contents and the same replication.
func (g *Group) Clone() *Group {
	c := &Group{
		World: &World{given: make(map[number]giver), Random: g.Random}, Cluster: g.Cluster, GroupReplication: g.GroupReplication, Single: g.Single, Faults: g.Faults, Highest: g.Highest,
		order: slices.Clone(g.order), present: g.present, views: g.views, primary: g.primary, answered: make(map[string]uint64), passed: make(map[string]passed),
	}
	for _, n := range g.Nodes {
		copied := *n
		copied.rows = rows{maps.Clone(n.rows.counters), maps.Clone(n.rows.holders), maps.Clone(n.rows.limits), n.rows.view}
		copied.commits, copied.has, copied.late = slices.Clone(n.commits), maps.Clone(n.has), slices.Clone(n.late)
		c.Nodes = append(c.Nodes, &copied)
	}
	for i, n := range g.Nodes {
		if n.source != nil {
			c.Nodes[i].source = c.Nodes[slices.Index(g.Nodes, n.source)]
		}
	}
	return c
}

// IsMember reports whether a node is in the present configuration of the cluster.
func (g *Group) IsMember(at int) bool { return g.Nodes[at].member }

// IsLocked reports the error of waiting too long for another's row lock.
func IsLocked(err error) bool { return errors.Is(err, errLocked) }

// IsConflict reports the error that another transaction was first.
func IsConflict(err error) bool { return errors.Is(err, errConflict) }

// IsAtCeiling reports the error that the numbers would exceed the ceiling.
func IsAtCeiling(err error) bool { return errors.Is(err, errAtCeiling) }

// IsNoRow reports the error that there is no such sequence.
func IsNoRow(err error) bool { return errors.Is(err, errNoRow) }
