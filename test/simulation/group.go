package simulation

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"seqproxy/sequence/limit"
)

// GroupFaults leave out checks of a group, so that a test must find it.
type GroupFaults struct {
	HolderPerNode bool // the holder of a cluster is a node, not a configuration
	// A node shows an older holder its windows, as if it knew of no newer holder.
	ShowsToOlder    bool
	CountsForgetful bool // a node that does not flush at commit counts as a witness
	// A takeover reads only the windows that the chosen node knows.
	BeginsBelow   bool
	GrantsUnseen  bool // a window is used before another node has recorded it
	ForgetsOthers bool // the first use of a sequence does not read the windows of other holders
	// A row is moved above its holder's window, which is written afterwards.
	MovesUnwanted bool
	OrderUnseen   bool // an ORDER number is answered before others have confirmed the holder
	// Numbers of a cluster are given after the reservation without reading the node's configuration
	// again.
	Unconfirmed bool
	SetUnseen   bool // SETVAL is answered before others have recorded the new window
}

// seen returns what the chosen node shows of its record.
func (f *GroupFaults) seen(record limit.Record, of limit.Scope, holder string) limit.Record {
	if f.ForgetsOthers && of.Name != "" {
		record.Limits = slices.DeleteFunc(record.Limits, func(l limit.Limit) bool { return l.Giver != holder })
	}
	return record
}

// ticksAlone is how many ticks of a worker a holder may give that is enough alone.
const ticksAlone = 20

// Group is a number of nodes that hold the same sequences, and all numbers given of them.
type Group struct {
	*World
	Nodes   []*Node
	Cluster bool
	// GroupReplication makes the cluster behave as MySQL's group replication: nodes learn of a
	// configuration before they have applied what was committed before it, and commit meanwhile.
	GroupReplication bool
	// Single allows writes to one node of a cluster at a time.
	Single bool
	Faults GroupFaults

	// Highest is the last number of each sequence. It is low, so that windows are small; see
	// limit.WindowEnd.
	Highest uint64
	// Ticks makes its numbers the ticks of workers, whose windows are as long as a reservation.
	Ticks bool

	order   []*commit // all commits of a cluster, in their order
	present string    // configuration of the cluster; "": none
	views   int       // how many configurations there were
	primary int       // index of the primary, in a group with one

	answered map[string]uint64 // the highest number that a client got, by sequence
	passed   map[string]passed
}

// passed is the number above which a sequence was moved, and the first term whose holders all know
// that.
type passed struct{ n, term uint64 }

// NewGroup has n nodes: the first is the primary of the others, or all are a cluster. A crash of
// the forgetful nodes loses what they committed.
func NewGroup(n int, cluster bool, seed uint64, name string, forgetful ...int) *Group {
	random := rand.New(rand.NewPCG(seed, 11))
	g := &Group{World: &World{given: make(map[number]giver), Random: random}, Cluster: cluster, Highest: 1500, answered: make(map[string]uint64), passed: make(map[string]passed)}
	first := &commit{counters: map[string]uint64{name: 0}}
	for i := range n {
		node := &Node{Address: fmt.Sprintf("10.0.1.%d:3306", i+1), ID: fmt.Sprint("server ", i+1), Up: true, Forgets: slices.Contains(forgetful, i)}
		node.become([]*commit{first})
		g.Nodes = append(g.Nodes, node)
	}
	if cluster {
		g.order = []*commit{first}
		for _, node := range g.Nodes {
			node.member = true
		}
		g.newView()
		for g.ApplyAll() {
		}
	} else {
		for _, node := range g.Nodes[1:] {
			node.ReadOnly, node.source = true, g.Nodes[0]
		}
	}
	return g
}

// newView begins a configuration of the cluster. Its members know of it at once. Galera's nodes
// store it when they reach it.
func (g *Group) newView() {
	g.views++
	g.present = fmt.Sprint("configuration ", g.views)
	if !g.GroupReplication {
		g.order = append(g.order, &commit{view: g.present})
	}
	for _, node := range g.Nodes {
		if node.member {
			node.view = g.present
		}
	}
	if g.Single {
		g.elect()
	}
}

// Apply makes a node apply one commit of another, and reports whether there was one.
func (g *Group) Apply(at int) bool {
	node := g.Nodes[at]
	if !g.Cluster {
		if !node.apply() {
			return false
		}
	} else {
		if !node.Up || !node.member {
			return false
		}
		next := g.pending(node)
		if len(next) == 0 {
			return false
		}
		node.take(next[0])
		if g.Single {
			g.open(node)
		}
	}
	g.steps = append(g.steps, step{actor: "operator", what: "apply", member: node.Address, wrote: node.commits[len(node.commits)-1]})
	return true
}

// ApplyAll makes each node apply one commit, and reports whether there was one.
func (g *Group) ApplyAll() (any bool) {
	for i := range g.Nodes {
		any = g.Apply(i) || any
	}
	return any
}

// pending returns the commits of the cluster that a node of it has not applied.
func (g *Group) pending(n *Node) []*commit {
	if !g.GroupReplication {
		return g.order[len(n.commits):]
	}
	for n.through < len(g.order) && n.has[g.order[n.through]] {
		n.through++
	}
	return slices.DeleteFunc(slices.Clone(g.order[n.through:]), func(c *commit) bool { return n.has[c] })
}

// Lag returns how many commits a node has not applied yet.
func (g *Group) Lag(at int) (n int) {
	node := g.Nodes[at]
	from := g.order
	if !g.Cluster {
		if from = nil; node.source != nil {
			from = node.source.commits
		}
	}
	for _, c := range from {
		if !node.has[c] {
			n++
		}
	}
	return n + len(node.late)
}

// did notes a step on a node.
func (g *Group) did(what string, n *Node) {
	g.steps = append(g.steps, step{actor: "operator", what: what, member: n.Address})
}

// Crash kills a node.
func (g *Group) Crash(at int) {
	node := g.Nodes[at]
	if !node.Up {
		return
	}
	g.did("kill", node)
	node.Up, node.view, node.open = false, "", nil
	if !g.GroupReplication { // group replication keeps what the node has received
		node.late = nil
	}
	if unflushed := len(node.commits) - node.flushed; unflushed > 0 {
		node.become(node.commits[:node.flushed+g.Random.IntN(unflushed+1)])
	}
	g.leave(at)
}

// leave makes the others of a cluster go on without a node, if they are more than half of its
// members.
func (g *Group) leave(at int) {
	if !g.Cluster || !g.Nodes[at].member {
		return
	}
	before := 0
	for _, node := range g.Nodes {
		if node.member {
			before++
		}
	}
	g.leaves(g.Nodes[at])
	if 2*(before-1) > before {
		g.newView()
		return
	}
	g.present = ""
	for _, node := range g.Nodes {
		g.leaves(node) // the rest has no majority, and commits nothing
	}
}

// leaves ends a node's membership. It has received all that its cluster has committed so far.
func (g *Group) leaves(n *Node) {
	if n.member && g.GroupReplication {
		n.late = g.pending(n)
	}
	n.member = false
}

// Part cuts a node of a cluster off from the others. The node learns of that later; see Notice.
func (g *Group) Part(at int) {
	g.did("partition", g.Nodes[at])
	g.leave(at)
}

// Notice makes a node learn which configuration it is in.
func (g *Group) Notice(at int) {
	if node := g.Nodes[at]; !node.member {
		g.did("notice", node)
		node.view = ""
	}
}

// Join makes a node of a cluster come back, with a copy of the others' rows.
func (g *Group) Join(at int) {
	node := g.Nodes[at]
	if g.present == "" || node.member {
		return
	}
	g.did("join", node)
	node.become(g.order)
	node.Up, node.member, node.late = true, true, nil
	g.newView()
}

// Bootstrap begins the cluster again after its end, with the better of two nodes.
func (g *Group) Bootstrap(a, b int) {
	if g.present != "" {
		return
	}
	node := g.Nodes[a]
	if len(g.Nodes[b].commits) > len(node.commits) {
		node = g.Nodes[b]
	}
	g.did("bootstrap", node)
	for _, c := range node.late {
		node.take(c)
	}
	node.late = nil
	for _, other := range g.Nodes {
		other.view = ""
	}
	g.order = slices.Clone(node.commits)
	node.Up, node.member = true, true
	g.newView()
}

// Alive reports whether the cluster exists.
func (g *Group) Alive() bool { return g.present != "" }

// Restart starts a killed node again, with its rows.
func (g *Group) Restart(at int) {
	if !g.Cluster {
		g.did("restart", g.Nodes[at])
		g.Nodes[at].Up = true
	}
}

// Promote makes a replica the primary. It has received up to late more commits of the old primary
// than it has applied, and may apply these later.
func (g *Group) Promote(at, late int) {
	node := g.Nodes[at]
	if source := node.source; source != nil {
		for _, c := range source.commits {
			if !node.has[c] && len(node.late) < late {
				node.late = append(node.late, c)
			}
		}
	}
	node.source, node.ReadOnly = nil, false
	g.did(fmt.Sprintf("promote, with %d late commits,", len(node.late)), node)
}

// Follow makes a node a replica of another.
func (g *Group) Follow(at, source int) {
	if at == source || g.Nodes[source].ReadOnly {
		return
	}
	node := g.Nodes[at]
	node.source, node.ReadOnly, node.late = g.Nodes[source], true, nil
	g.did("follow "+g.Nodes[source].Address, node)
}

// Copy sets a node up anew from another, as its replica, once that one has the sequences.
func (g *Group) Copy(at, from int) {
	source := g.Nodes[from]
	top := source.rows.record(limit.Scope{}).Holder()
	if at == from || !source.Up || source.ReadOnly || top.ID != source.ID || !top.Complete || len(source.late) > 0 {
		return
	}
	for _, n := range g.Nodes {
		if n.rows.record(limit.Scope{}).Holder().Over(top) {
			return
		}
	}
	g.did("copy "+source.Address, g.Nodes[at])
	g.Nodes[at].become(source.commits)
	g.Nodes[at].Up = true
	g.Follow(at, from)
}

// choice is a writable node, as a proxy has found it.
type choice struct {
	node *Node
	limit.Node
}

// holder returns the holder that a node names.
func (g *Group) holder(n *Node) string {
	if !g.Cluster || g.Faults.HolderPerNode {
		return n.ID
	}
	return g.stored(n)
}

// stored returns the configuration of a cluster that a node names.
func (g *Group) stored(n *Node) string {
	if g.GroupReplication {
		return cmp.Or(n.view, n.ID)
	}
	return n.rows.view
}

// standing returns a node's report about itself.
func (g *Group) standing(n *Node) *limit.Standing {
	s := &limit.Standing{Identity: n.ID, Holder: g.holder(n), Forgets: n.Forgets && !g.Faults.CountsForgetful, Writable: !n.ReadOnly}
	if !g.Cluster {
		return s
	}
	if n.Forgets && !g.Faults.CountsForgetful {
		s.Unflushed = "SET GLOBAL innodb_flush_log_at_trx_commit = 1"
	}
	if n.view == "" || n.view != g.stored(n) {
		s.Apart, s.Writable = "it is not part of its cluster, or has not stored its configuration so far", false
	}
	return s
}

// commit makes a node commit what it has prepared when it had so many commits.
func (g *Group) commit(n *Node, c *commit, prepared int) error {
	switch {
	case n.ReadOnly:
		return errReadOnly
	case !g.Cluster && n.open != nil && n.open.touches(c):
		return errLocked
	case !g.Cluster:
		n.take(c)
		return nil
	case !n.member:
		return errNotReady
	}
	pending := g.pending(n)
	if slices.ContainsFunc(append(slices.Clone(n.commits[prepared:]), pending...), c.touches) {
		return errConflict
	}
	if !g.GroupReplication {
		for _, o := range pending {
			n.take(o)
		}
	}
	g.order = append(g.order, c)
	n.take(c)
	return nil
}

// nodeStore is the tables of the chosen node.
type nodeStore struct {
	g   *Group
	a   *Actor
	now *choice
}

// at runs one step on a node.
func (g *Group) at(a *Actor, n *Node, what string, f func() error) error {
	return a.step(slices.Index(g.Nodes, n), n.Address, what, func() error {
		switch {
		case !n.Up:
			return errAway
		case g.Cluster && n.view == "" && what != "look":
			return errNotReady
		}
		return f()
	})
}

// Record implements [limit.Store].
func (s nodeStore) Record(_ context.Context, of limit.Scope) (recorded limit.Record, err error) {
	err = s.g.at(s.a, s.now.node, "read", func() error {
		recorded = s.g.Faults.seen(s.now.node.rows.record(of), of, s.now.Holder)
		return nil
	})
	return recorded, err
}

// Counter implements [limit.Store].
func (s nodeStore) Counter(_ context.Context, name string, n uint64) (c limit.Counter, err error) {
	err = s.g.at(s.a, s.now.node, "read counter", func() error {
		position, ok := s.now.node.rows.counters[name]
		if !ok {
			return errNoRow
		}
		c = limit.Counter{Name: name, Position: position, Max: s.g.Highest, End: s.g.Highest, Width: n, Fits: n <= math.MaxUint64-position, Ticks: s.g.Ticks}
		return nil
	})
	return c, err
}

// write commits what f makes of the rows, if anything. It waits for the row of a counter that it
// reads.
func (s nodeStore) write(what, reads string, f func(r *rows) *commit) error {
	n := s.now.node
	return s.g.at(s.a, n, what, func() error {
		if n.ReadOnly {
			return errReadOnly
		}
		if reads != "" && n.locks(reads) {
			return errLocked
		}
		if c := f(&n.rows); c != nil {
			return s.g.commit(n, c, len(n.commits))
		}
		return nil
	})
}

// Want implements [limit.Store]. The insert and the update are one statement each.
func (s nodeStore) Want(_ context.Context, h limit.Holder, name string, end, position uint64) error {
	key := limitKey{name, s.now.Holder}
	if err := s.write("insert limit", name, func(r *rows) *commit {
		now := r.holders[s.now.Holder]
		stands, ok := r.counters[name]
		if _, made := r.limits[key]; made || !ok || now.Term != h.Term || !now.Complete || stands < position {
			return nil
		}
		return &commit{limits: map[limitKey]limit.Limit{key: {Name: name, Giver: s.now.Holder, Term: h.Term, Floor: position}}}
	}); err != nil {
		return err
	}
	return s.write("want", "", func(r *rows) *commit {
		l, ok := r.limits[key]
		if !ok || l.Term != h.Term {
			return nil
		}
		l.Wanted = max(l.Wanted, end)
		return &commit{limits: map[limitKey]limit.Limit{key: l}}
	})
}

// Grant implements [limit.Store].
func (s nodeStore) Grant(_ context.Context, h limit.Holder, name string, end uint64) error {
	key := limitKey{name, s.now.Holder}
	return s.write("grant", "", func(r *rows) *commit {
		l, ok := r.limits[key]
		if !ok || l.Term != h.Term || l.Wanted < end {
			return nil
		}
		l.Granted = max(l.Granted, end)
		return &commit{limits: map[limitKey]limit.Limit{key: l}}
	})
}

// Transact implements [limit.Store]. In a cluster other nodes commit while it runs.
func (s nodeStore) Transact(_ context.Context, f func(limit.Tx) error) error {
	n := s.now.node
	tx := &nodeTx{s: s}
	prepare := func() error {
		if s.g.holder(n) != s.now.Holder {
			return errChosen
		}
		if n.ReadOnly {
			return errReadOnly
		}
		tx.prepared = len(n.commits)
		tx.commit = &commit{counters: make(map[string]uint64), holders: make(map[string]limit.Holder), limits: make(map[limitKey]limit.Limit)}
		return f(tx)
	}
	written := func() bool { return tx.commit != nil && !tx.commit.empty() }
	if !s.g.Cluster {
		return s.g.at(s.a, n, "transaction", func() error {
			if err := prepare(); err != nil || !written() {
				return err
			}
			return s.g.commit(n, tx.commit, tx.prepared)
		})
	}
	if err := s.g.at(s.a, n, "begin", prepare); err != nil || !written() {
		return err
	}
	return s.g.at(s.a, n, "commit", func() error {
		if len(n.commits) != tx.prepared {
			// It has locked all rows, and the others' commits win.
			return errConflict
		}
		return s.g.commit(n, tx.commit, tx.prepared)
	})
}

// nodeTx is a transaction of a takeover.
type nodeTx struct {
	s        nodeStore
	prepared int
	commit   *commit
}

// Lock implements [limit.Tx].
func (t *nodeTx) Lock(context.Context) (limit.Record, error) {
	return t.s.now.node.rows.record(limit.Scope{All: true}), nil
}

// Claim implements [limit.Tx].
func (t *nodeTx) Claim(_ context.Context, h limit.Holder) error {
	t.commit.holders[h.ID] = h
	return nil
}

// Complete implements [limit.Tx].
func (t *nodeTx) Complete(_ context.Context, h limit.Holder) error {
	if now, ok := t.s.now.node.rows.holders[h.ID]; ok && now.Term == h.Term {
		now.Complete = true
		t.commit.holders[h.ID] = now
	}
	return nil
}

// Install implements [limit.Tx].
func (t *nodeTx) Install(_ context.Context, b *limit.Beginning) (int, error) {
	r := &t.s.now.node.rows
	if t.s.now.node.locks("") {
		return 0, errLocked
	}
	for key, l := range r.limits {
		if key.giver == b.Holder || t.s.g.Cluster && l.Term < b.Term {
			t.commit.removed = append(t.commit.removed, key)
		}
	}
	if t.s.g.Cluster {
		for id, h := range r.holders {
			if h.Term < b.Term && id != b.Holder {
				t.commit.retired = append(t.commit.retired, id)
			}
		}
	}
	for name, wanted := range b.Wanted {
		if _, ok := r.counters[name]; !ok && wanted > 0 { // its row is lost
			t.commit.counters[name] = min(limit.Above(wanted), t.s.g.Highest)
		}
	}
	for name, position := range r.counters {
		wanted := b.Wanted[name]
		if t.s.g.Faults.BeginsBelow {
			wanted = 0
			for key, l := range r.limits {
				if key.name == name {
					wanted = max(wanted, l.Wanted)
				}
			}
		}
		l, begin, _ := b.Of(limit.Counter{Name: name, Position: position, End: t.s.g.Highest, Ticks: t.s.g.Ticks, Alone: ticksAlone}, wanted)
		t.commit.counters[name] = begin
		if begin == position {
			delete(t.commit.counters, name)
		}
		t.commit.limits[limitKey{name, b.Holder}] = l
	}
	return len(r.counters), nil
}

// nodeNodes is the access to the other nodes.
type nodeNodes nodeStore

func (s nodeNodes) others() (all []*Node) {
	order := make([]int, len(s.g.Nodes))
	for i := range order {
		order[i] = i
	}
	if s.g.Random != nil {
		order = s.g.Random.Perm(len(order))
	}
	for _, at := range order {
		if n := s.g.Nodes[at]; s.g.Cluster || n != s.now.node {
			all = append(all, n)
		}
	}
	return all
}

// look reads a node's report about itself.
func (s nodeNodes) look(n *Node) (said *limit.Standing, err error) {
	err = s.g.at(s.a, n, "look", func() error {
		said = s.g.standing(n)
		if s.g.Faults.HolderPerNode {
			said.Holder = s.now.Holder // a witness is of the same cluster, whatever its holder
		}
		return nil
	})
	return said, err
}

func (s nodeNodes) read(n *Node, of limit.Scope) (recorded limit.Record, err error) {
	err = s.g.at(s.a, n, "read", func() error {
		recorded = n.rows.record(of)
		if s.g.Faults.ShowsToOlder {
			recorded.Holders = slices.DeleteFunc(recorded.Holders, func(h limit.Holder) bool { return h.ID != s.now.Holder && recorded.Holder().ID == h.ID })
		}
		return nil
	})
	return recorded, err
}

// Sight implements [limit.Nodes].
func (s nodeNodes) Sight(context.Context) (all []limit.Look) {
	for _, n := range s.others() {
		look := limit.Look{Address: n.Address}
		said, err := s.look(n)
		if err == nil {
			look.Standing = *said
			look.Record, err = s.read(n, limit.Scope{All: true})
		}
		look.Err = err
		all = append(all, look)
	}
	return all
}

// Watch implements [limit.Nodes]. It asks each node twice.
func (s nodeNodes) Watch(_ context.Context, of limit.Scope, start func(string) *limit.Witness, ended func(*limit.Witness) bool) {
	type asked struct {
		*Node
		w *limit.Witness
	}
	var all []asked
	for _, n := range s.others() {
		all = append(all, asked{n, start(n.Address)})
	}
	if s.g.Faults.GrantsUnseen && of.Name != "" {
		for i, n := range all {
			n.w.Looked(&limit.Standing{Identity: fmt.Sprint("unseen ", i), Holder: s.now.Holder}, nil)
			n.w.Err = nil
			ended(n.w)
		}
		return
	}
	enough := false
	for try := 0; try < 2 && !enough && !s.a.killed; try++ {
		all = slices.DeleteFunc(all, func(n asked) bool {
			if enough {
				return false
			}
			if !n.w.Identified() {
				if said, err := s.look(n.Node); !n.w.Looked(said, err) {
					ended(n.w)
					return true
				}
			}
			if !n.w.Identified() {
				return false
			}
			recorded, err := s.read(n.Node, of)
			switch {
			case err != nil:
				n.w.Err = err
			case n.w.Shown(recorded):
				enough = ended(n.w)
				return true
			}
			return false
		})
	}
	for _, n := range all {
		ended(n.w)
	}
}
