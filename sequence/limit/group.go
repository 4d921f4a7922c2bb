package limit

import (
	"context"
	"errors"
	"math"
)

// Node is the chosen node, as it was found.
type Node struct {
	Address  string
	Identity string // differs between the nodes of a group
	Holder   string // gives the numbers of this node: the server, or in a cluster its configuration
	Cluster  bool   // it is a member of a cluster, which has several writable nodes
}

// Group is a group of nodes as one attempt to write to the chosen one sees it.
type Group struct {
	Store   Store // of the chosen node
	Nodes   Nodes
	Chosen  Node
	Count   int  // of nodes, with the chosen one
	Relaxed bool // a node counts even if its crash would lose what it shows
}

// Scope is the part of a record that is read: the holders, and the limits of one sequence or of
// all.
type Scope struct {
	Name string // of the one sequence; empty otherwise
	All  bool
}

// Counter is where the row of a sequence stands.
type Counter struct {
	Name     string
	Position uint64 // the last reserved number
	Max      uint64 // the last number that it may give
	End      uint64 // the highest number of its column
	Width    uint64 // from Position to the last of the next reservation
	Fits     bool   // these do not exceed 64 bits
	// Ticks: it counts the ticks of a worker. Its windows end with a reservation. After a fail-over,
	// ticks of a window that are not reserved would pass without keys.
	Ticks bool
	Alone uint64 // with Ticks: how many of them a holder that needs no other node may give
}

// Store is the tables of the chosen node. Each method is one transaction.
type Store interface {
	// Record reads a consistent record.
	Record(ctx context.Context, of Scope) (Record, error)
	// Counter reads where a sequence stands, and how wide its next n numbers are.
	Counter(ctx context.Context, name string, n uint64) (Counter, error)
	// Want writes how far the holder wants to go at least, if it still is the holder. A sequence
	// without a limit gets one with position as its floor, unless its row stands lower by now.
	Want(ctx context.Context, h Holder, name string, end, position uint64) error
	// Grant writes how far the holder may go at least, if it wanted to under its term.
	Grant(ctx context.Context, h Holder, name string, end uint64) error
	// Transact runs f in a transaction on the chosen node. It may call f again.
	Transact(ctx context.Context, f func(Tx) error) error
}

// Tx is the transaction of a take-over.
type Tx interface {
	// Lock reads the whole record of the node, and keeps others from writing it until the end.
	Lock(ctx context.Context) (Record, error)
	// Claim makes the chosen node the holder.
	Claim(ctx context.Context, h Holder) error
	// Install writes where each sequence begins under this holder, and returns their number.
	Install(ctx context.Context, b *Beginning) (sequences int, err error)
	// Complete makes what was installed count.
	Complete(ctx context.Context, h Holder) error
}

// Nodes is the way to the other nodes. In a cluster it includes the chosen node, which may not
// flush, and beside which another may have been chosen since.
type Nodes interface {
	// Sight looks at each node once, and reads its whole record.
	Sight(ctx context.Context) []Look
	// Watch asks each node repeatedly, until it shows what is wanted, or never will, or time is up.
	// It calls ended once for each node, one call at a time; with enough it stops asking.
	Watch(ctx context.Context, of Scope, start func(address string) *Witness, ended func(*Witness) (enough bool))
}

// Look is one look at a node.
type Look struct {
	Address string
	Standing
	Record Record
	Err    error // why it could not be asked
}

// Standing is what a node says of itself.
type Standing struct {
	Identity  string
	Holder    string // gives the numbers of this node
	Apart     string // why a member of a cluster may not commit
	Forgets   bool   // any crash loses commits
	Unflushed string // the statement that makes it flush at commit; empty: it does
	Writable  bool   // it can be written to
}

var (
	// ErrNotHolder: the chosen node must first take over.
	ErrNotHolder = errors.New("this node of the sequence server does not hold the sequences yet")
	// ErrNoRoom: fewer numbers remain.
	ErrNoRoom = errors.New("so many numbers are not left")
)

// Admitted reads whether the chosen node may give numbers of a sequence, apart from its ceiling.
// Without a name it reads whether the node is the holder at all.
func (g *Group) Admitted(ctx context.Context, name string) (bool, error) {
	counter := Counter{Position: math.MaxUint64}
	if name != "" {
		var err error
		if counter, err = g.Store.Counter(ctx, name, 0); err != nil {
			return false, err
		}
	}
	record, err := g.Store.Record(ctx, Scope{Name: name})
	if err != nil {
		return false, err
	}
	_, ok := record.Admits(g.Chosen.Holder, counter.Position, counter.End)
	return ok, nil
}

// StillHolds makes sure that no other node has given numbers up to now. A node that takes over
// gives numbers only after a majority has shown its take-over (see takeovers). So none has, if
// afterwards a majority with the chosen node still names this one as the holder. Of two nodes the
// other may take over alone, so it must be seen.
func (g *Group) StillHolds(ctx context.Context) error {
	self := Holder{ID: g.Chosen.Holder, Term: math.MaxUint64}
	_, err := g.Await(ctx, self, Confirmations(g.Count), Scope{}, func(record Record) bool {
		return record.Holder().ID == self.ID
	})
	return err
}
