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

// A group whose replication may lose a commit gives a number only below a ceiling that a second
// machine has shown. For each sequence, and each node that ever gave its numbers, there are
// `wanted` and `granted`: a proxy raises `wanted`, sees that on a majority of the nodes, and then
// raises `granted`. The holder of all sequences is the one with the highest term. A node that
// becomes the primary is no holder, and gives nothing, until a proxy has made it take over
// (limit/take_over.go): a new term, in which every sequence begins above all windows that any node
// has seen. An old primary without its replicas opens no window any more and ends at its ceiling,
// below. Package limit decides all that.
//
// The holder of a cluster is its present configuration, whichever node a proxy writes to. A crash
// of all nodes may lose commits of a cluster, too, and the configuration that is bootstrapped then
// is another holder. After each reservation the node must confirm that it is still in that
// configuration, or the numbers become a gap.
//
// Every holder has rows of its own, so that late changes of an old primary touch no row of the new
// one. If they touch the counter, it is below the `floor` at which the holder began, and gives
// nothing. Where they bring something that this holder did not know when it began, it has to begin
// again. So a row never stands above what the node wants that has moved it there.

// Ceilings are how far the sequences of a group may go, by what its other nodes know: its rows, and
// what is remembered of those of the node in use.
type Ceilings struct {
	*store.Store
	patience   Patience
	takingOver await.Lock // locked during a takeover
	// unseen, for ORDER: other nodes did not confirm that the node still is the holder.
	unseen atomic.Bool

	mu      sync.Mutex
	under   uint64              // guarded by mu; the node of the ceilings, as nodes.changes
	by      map[string]uint64   // guarded by mu; by the table's spelling. A ceiling only rises.
	opening map[string]struct{} // guarded by mu; windows that are opened ahead of need
	// failing: the last window could not be opened, which was logged. Guarded by mu.
	failing bool
}

// Patience says for how long, and how often, other nodes are looked at.
type Patience struct {
	// Shown bounds the wait for replicas to show what was written. The first look is after
	// FirstLook, and later looks are ever further apart, up to LastLook.
	Shown, FirstLook, LastLook time.Duration
}

// New makes the ceilings of the server that has the tables. It does no I/O.
func New(tables *store.Store, patience Patience) *Ceilings {
	return &Ceilings{Store: tables, patience: patience, takingOver: await.NewLock()}
}

// forget forgets all, for another holder.
func (g *Ceilings) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.by = nil
}

// ofNode returns what is remembered of the node in use, and forgets another one's. The caller has
// locked g.mu.
func (g *Ceilings) ofNode() map[string]uint64 {
	if node := g.Changes(); g.under != node || g.by == nil {
		g.under, g.by = node, make(map[string]uint64)
	}
	return g.by
}

// Learn records a ceiling on the node in use.
func (g *Ceilings) Learn(name string, ceiling uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	by := g.ofNode()
	by[name] = max(by[name], ceiling)
}

// Drop forgets the ceiling of a sequence, which turned out to be another one.
func (g *Ceilings) Drop(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.by, name)
}

// Ceiling returns that of a sequence on the node in use.
func (g *Ceilings) Ceiling(name string) (uint64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ceiling, ok := g.ofNode()[name]
	return ceiling, ok
}

// InForce reports whether numbers are given only below a ceiling: the server is a group.
func (g *Ceilings) InForce() bool { return !planted.Fault(planted.CeilingReplica) && g.Grouped() }

// replicates reports whether two nodes may each believe that they are the primary: the server is a
// group, and no cluster, in which a majority agrees on each commit.
func (g *Ceilings) replicates() bool {
	now := g.Current()
	return g.InForce() && (now == nil || now.Cluster == "")
}

// Bound returns how far the numbers of a sequence may go at present.
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
