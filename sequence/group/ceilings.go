package group

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/planted"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// A group whose replication may lose what was committed gives a number only below a ceiling that
// was seen on a second machine. For each sequence, and each node that ever gave its numbers, there
// are `wanted` and `granted`: a proxy raises `wanted`, sees that on a majority of the nodes, and
// then raises `granted`. The holder of all sequences is the one with the highest term. A node that
// becomes the primary is no holder, and gives nothing, until a proxy has taken it over
// (limit/take_over.go): a new term, in which every sequence begins above all windows that any node
// has seen. An old primary that lives on without its replicas opens no window any more and ends at
// its ceiling, below. Package limit decides all that.
//
// Of a cluster the holder is its present configuration, whichever node a proxy writes to. A crash
// of all nodes may lose what was committed there, too, and the configuration that is bootstrapped
// then is another holder. After each reservation the node says that it is in that configuration
// still, or the numbers are given to nobody.
//
// Every holder has rows of its own, so that changes of an old primary which arrive late touch no
// row of the new one. If they touch the counter, it is below the `floor` at which the holder
// began, and gives nothing. Where they bring what this holder did not know of when it began, it
// has to begin again. So a row never stands above what the node wants that has moved it there.

// Ceilings are how far the sequences of a group may go, by what its other nodes know: its rows, and
// what is remembered of those of the node in use.
type Ceilings struct {
	*store.Store
	patience   Patience
	takingOver await.Lock // held during a takeover
	// that the node still holds the sequences was not seen on others, for ORDER
	unseen atomic.Bool

	mu      sync.Mutex
	under   uint64              // guarded by mu; the node of the ceilings, as nodes.changes
	by      map[string]uint64   // guarded by mu; by the table's spelling. A ceiling only rises.
	opening map[string]struct{} // guarded by mu; windows that are opened ahead of need
	// guarded by mu; the last window could not be opened, which was logged
	failing bool
}

// Patience says for how long, and how often, other nodes are looked at.
type Patience struct {
	// Shown bounds the wait for replicas to show what was written. They are looked at after
	// FirstLook, and ever more rarely up to LastLook.
	Shown, FirstLook, LastLook time.Duration
}

// New makes the ceilings of the server that has the tables. It does no I/O.
func New(tables *store.Store, patience Patience) *Ceilings {
	return &Ceilings{Store: tables, patience: patience, takingOver: await.NewLock()}
}

// forget is for another holder.
func (g *Ceilings) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.by = nil
}

// ofNode is what is remembered of the node in use: that of another one is forgotten. g.mu is held.
func (g *Ceilings) ofNode() map[string]uint64 {
	if node := g.Changes(); g.under != node || g.by == nil {
		g.under, g.by = node, make(map[string]uint64)
	}
	return g.by
}

// Learn takes note of a ceiling on the node in use.
func (g *Ceilings) Learn(name string, ceiling uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	by := g.ofNode()
	by[name] = max(by[name], ceiling)
}

// Drop is for a sequence whose ceiling turned out to be another one.
func (g *Ceilings) Drop(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.by, name)
}

// Ceiling is that of a sequence on the node in use.
func (g *Ceilings) Ceiling(name string) (uint64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ceiling, ok := g.ofNode()[name]
	return ceiling, ok
}

// InForce reports whether numbers are given below a ceiling only: the server is a group.
func (g *Ceilings) InForce() bool { return !planted.Fault(planted.CeilingReplica) && g.Grouped() }

// replicates reports whether two nodes may each take themselves for the one that is written to: the
// server is a group, and no cluster, in which a majority agrees on each commit.
func (g *Ceilings) replicates() bool {
	now := g.Current()
	return g.InForce() && (now == nil || now.Cluster == "")
}

// Bound is how far the numbers of a sequence may go at present.
func (g *Ceilings) Bound(ctx context.Context, conn *sql.Conn, name string) (limit.Bound, error) {
	if !g.InForce() {
		return limit.Bound{}, nil
	}
	if ceiling, ok := g.Ceiling(name); ok {
		return limit.Bound{Grouped: true, Ceiling: ceiling}, nil
	}
	now := g.Current()
	if now == nil {
		return limit.Bound{}, link.ErrUnchosen
	}
	stored, err := g.ReadRow(ctx, conn, name)
	if err != nil {
		return limit.Bound{}, err
	}
	known, err := g.Limits.Read(ctx, conn, limit.Scope{Name: name})
	if err != nil {
		return limit.Bound{}, err
	}
	l, err := g.Limits.Admitted(known, now, stored.Position())
	if err != nil {
		return limit.Bound{}, err
	}
	if l.Granted == 0 {
		return limit.Bound{}, store.OutcomeAtCeiling
	}
	g.Learn(name, l.Granted)
	return limit.Bound{Grouped: true, Ceiling: l.Granted}, nil
}
