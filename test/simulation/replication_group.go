package simulation

import "slices"

// NewReplicationGroup has n nodes of MySQL's group replication. The primary is the first node that
// is up, or all nodes are.
func NewReplicationGroup(n int, single bool, seed uint64, name string, forgetful ...int) *Group {
	g := NewGroup(n, false, seed, name, forgetful...)
	g.Cluster, g.GroupReplication, g.Single = true, true, single
	g.order = slices.Clone(g.Nodes[0].commits)
	for _, node := range g.Nodes {
		node.member, node.ReadOnly, node.source = true, false, nil
	}
	g.newView()
	return g
}

// elect makes one member the primary: the old one, if it is up.
func (g *Group) elect() {
	if !g.Nodes[g.primary].member {
		g.primary = max(0, slices.IndexFunc(g.Nodes, func(n *Node) bool { return n.member }))
	}
	for _, n := range g.Nodes {
		if n.member {
			g.open(n)
		}
	}
}

// open makes the primary writable once it has applied what the old primary committed.
func (g *Group) open(n *Node) { n.ReadOnly = n != g.Nodes[g.primary] || len(g.pending(n)) > 0 }

// LoseReceived makes a killed node lose what it had received and not applied, as a machine that
// loses its power.
func (g *Group) LoseReceived(at int) {
	if n := g.Nodes[at]; !n.Up && len(n.late) > 0 {
		g.did("lose what was received", n)
		n.late = nil
	}
}
