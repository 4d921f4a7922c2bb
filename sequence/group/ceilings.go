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

	recorded limit.Recorded // by choice of the node in use

	mu sync.Mutex
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

// Learn records a ceiling on the node in use.
func (g *Ceilings) Learn(name string, ceiling uint64) { g.recorded.Learn(g.Changes(), name, ceiling) }

// Drop forgets the ceiling of a sequence, which turned out to be another one.
func (g *Ceilings) Drop(name string) { g.recorded.Drop(name) }

// Ceiling returns that of a sequence on the node in use.
func (g *Ceilings) Ceiling(name string) (uint64, bool) { return g.recorded.Get(g.Changes(), name) }

// InForce reports whether numbers are given only below a ceiling: the server is a group.
func (g *Ceilings) InForce() bool { return !planted.Fault(planted.CeilingReplica) && g.Grouped() }

// replicates reports whether two nodes may each believe that they are the primary: the server is a
// group, and no cluster, in which a majority agrees on each commit.
func (g *Ceilings) replicates() bool {
	now := g.Current()
	return g.InForce() && (now == nil || now.Cluster == "")
}

// UpTo returns how far the numbers of a sequence may go at present.
func (g *Ceilings) UpTo(ctx context.Context, conn *sql.Conn, name string) (limit.UpTo, error) {
	if !g.InForce() {
		return limit.UpTo{}, nil
	}
	if ceiling, ok := g.Ceiling(name); ok {
		return limit.UpTo{Grouped: true, Ceiling: ceiling}, nil
	}
	now := g.Current()
	if now == nil {
		return limit.UpTo{}, link.ErrUnchosen
	}
	stored, err := g.ReadRow(ctx, conn, name)
	if err != nil {
		return limit.UpTo{}, err
	}
	known, err := g.Limits.Read(ctx, conn, limit.Scope{Name: name})
	if err != nil {
		return limit.UpTo{}, err
	}
	l, err := g.Limits.Admitted(known, now, stored.Position())
	if err != nil {
		return limit.UpTo{}, err
	}
	if l.Granted == 0 {
		return limit.UpTo{}, store.OutcomeAtCeiling
	}
	g.Learn(name, l.Granted)
	return limit.UpTo{Grouped: true, Ceiling: l.Granted}, nil
}
