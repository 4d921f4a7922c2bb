package simulation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"seqproxy/sequence/limit"
)

// Node is one simulated node of a group. Its contents are the result of its commits, one after the
// other. A replica, and a node of a cluster, applies those of others.
type Node struct {
	Address  string
	ID       string // its name for life
	Up       bool
	ReadOnly bool
	// Forgets makes a crash lose what was committed since the last flush.
	Forgets bool

	rows    rows
	commits []*commit
	has     map[*commit]bool
	flushed int // how many of its commits are on disk
	through int // it has this many commits of its cluster, and perhaps later ones

	open *commit // of a transaction that has written it, and has neither committed nor ended

	source *Node     // the source whose commits it applies, as a replica
	late   []*commit // of an old source, received and not applied yet

	member bool // it belongs to the present configuration of the cluster
	// view is the configuration of its cluster that it believes to be the present one. "": it knows
	// that it is in none.
	view string
}

// rows are the contents of a node's tables, by table and key. The keys are few.
type rows struct {
	counters map[string]uint64
	holders  map[string]limit.Holder
	limits   map[limitKey]limit.Limit
	view     string // the stored configuration of the cluster
}

type limitKey struct{ name, giver string }

// commit is what one transaction wrote: whole rows, as they are replicated.
type commit struct {
	counters map[string]uint64
	dropped  []string // counters whose rows were dropped
	holders  map[string]limit.Holder
	limits   map[limitKey]limit.Limit
	removed  []limitKey
	retired  []string // holders whose rows were removed
	view     string
}

// empty reports whether it writes nothing.
func (c *commit) empty() bool {
	return len(c.counters)+len(c.dropped)+len(c.holders)+len(c.limits)+len(c.removed)+len(c.retired) == 0 && c.view == ""
}

func (c *commit) String() string {
	var text strings.Builder
	for name, id := range c.counters {
		fmt.Fprintf(&text, "%s = %d ", name, id)
	}
	for _, h := range c.holders {
		fmt.Fprintf(&text, "%+v ", h)
	}
	for _, l := range c.limits {
		fmt.Fprintf(&text, "%+v ", l)
	}
	return text.String() + c.view
}

func newRows() rows {
	return rows{counters: make(map[string]uint64), holders: make(map[string]limit.Holder), limits: make(map[limitKey]limit.Limit)}
}

func (r *rows) apply(c *commit) {
	for _, name := range c.dropped {
		delete(r.counters, name)
	}
	maps.Copy(r.counters, c.counters)
	for _, id := range c.retired {
		delete(r.holders, id)
	}
	maps.Copy(r.holders, c.holders)
	for _, key := range c.removed {
		delete(r.limits, key)
	}
	maps.Copy(r.limits, c.limits)
	if c.view != "" {
		r.view = c.view
	}
}

// touches reports whether both write a row.
func (c *commit) touches(other *commit) bool {
	for name := range c.counters {
		if _, ok := other.counters[name]; ok {
			return true
		}
	}
	for id := range c.holders {
		if _, ok := other.holders[id]; ok || slices.Contains(other.retired, id) {
			return true
		}
	}
	for key := range c.limits {
		if _, ok := other.limits[key]; ok || slices.Contains(other.removed, key) {
			return true
		}
	}
	return slices.ContainsFunc(c.removed, func(key limitKey) bool {
		_, ok := other.limits[key]
		return ok || slices.Contains(other.removed, key)
	}) || slices.ContainsFunc(c.retired, func(id string) bool {
		_, ok := other.holders[id]
		return ok || slices.Contains(other.retired, id)
	})
}

// locks reports whether a transaction has locked the row of a counter; "" means any row.
func (n *Node) locks(name string) bool {
	if n.open == nil {
		return false
	}
	_, ok := n.open.counters[name]
	return ok || name == ""
}

func (n *Node) take(c *commit) {
	n.rows.apply(c)
	n.commits = append(n.commits, c)
	n.has[c] = true
	if !n.Forgets {
		n.flushed = len(n.commits)
	}
}

// become makes the node's contents the result of these commits.
func (n *Node) become(commits []*commit) {
	n.rows, n.commits, n.has, n.flushed = newRows(), nil, make(map[*commit]bool), len(commits)
	for _, c := range commits {
		n.take(c)
	}
	n.flushed, n.through = len(n.commits), 0
}

// apply makes a replica apply one commit, and reports whether there was one.
func (n *Node) apply() bool {
	if !n.Up {
		return false
	}
	for len(n.late) > 0 {
		c := n.late[0]
		n.late = n.late[1:]
		if !n.has[c] {
			n.take(c)
			return true
		}
	}
	if n.source == nil || !n.source.Up {
		return false
	}
	for _, c := range n.source.commits {
		if !n.has[c] {
			n.take(c)
			return true
		}
	}
	return false
}

// Flush writes the node's commits to its disk.
func (n *Node) Flush() { n.flushed = len(n.commits) }

// record returns what the node has recorded.
func (r *rows) record(of limit.Scope) (recorded limit.Record) {
	for _, id := range slices.Sorted(maps.Keys(r.holders)) {
		recorded.Holders = append(recorded.Holders, r.holders[id])
	}
	for key, l := range r.limits {
		if of.All || key.name == of.Name {
			recorded.Limits = append(recorded.Limits, l)
		}
	}
	return recorded
}

var (
	errReadOnly = errors.New("the node is read only")
	errConflict = errors.New("another transaction was first")
	errChosen   = errors.New("a connection leads to another holder than the one that was chosen")
	errNotReady = errors.New("the node is not part of its cluster")
	// errTwoPrimaries: two nodes contradict each other.
	errTwoPrimaries = errors.New("two nodes can be written to, and are in no configuration of a cluster that is the same")
)

// wants returns the limit of a holder that wants to go up to a number to which its row is moved.
func (r *rows) wants(name, holder string, to uint64) limit.Limit {
	l, ok := r.limits[limitKey{name, holder}]
	if !ok {
		l = limit.Limit{Name: name, Giver: holder, Floor: to}
		if h := r.holders[holder]; h.Complete {
			l.Term = h.Term
		}
	}
	l.Wanted = max(l.Wanted, to)
	return l
}

// Knows reports whether it knows of any holder. A node that does not has never been a copy.
func (n *Node) Knows() bool { return len(n.rows.holders) > 0 }

// String shows the node's contents.
func (n *Node) String() string {
	return fmt.Sprintf("%s up %v, read only %v, view %q of %q, member %v, late %d: counters %v, holders %v, limits %v", n.Address, n.Up, n.ReadOnly, n.rows.view, n.view, n.member,
		len(n.late), n.rows.counters, n.rows.holders, n.rows.limits)
}
