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
	Holder   string // who gives numbers by it: the server, or of a cluster its configuration
	Cluster  bool   // it is a member of a cluster, of which several nodes can be written to
}

// Group is a group of nodes, as one attempt to write to the chosen one sees it.
type Group struct {
	Store   Store // of the chosen node
	Nodes   Nodes
	Chosen  Node
	Count   int  // of nodes, the chosen one included
	Relaxed bool // a node counts although its crash would lose what it shows
}

// Scope is what is read of a record: the holders, and beside them the limits of one sequence, or
// all of them.
type Scope struct {
	Name string // of the sequence, if it is one
	All  bool
}

// Counter is where the row of a sequence stands.
type Counter struct {
	Name     string
	Position uint64 // the last number that was reserved
	Max      uint64 // the last one that it may give
	End      uint64 // the highest that its column holds
	Width    uint64 // from position to the last of those that are reserved next
	Fits     bool   // these do not go beyond 64 bits
}

// Store is the tables of the chosen node. Each method is one transaction.
type Store interface {
	// Record reads what it has recorded, as of one moment.
	Record(ctx context.Context, of Scope) (Record, error)
	// Counter reads where a sequence stands, and how wide its next n numbers are.
	Counter(ctx context.Context, name string, n uint64) (Counter, error)
	// Want writes how far the holder wants to go at least, if it is the holder still. A sequence
	// that has no limit gets one with position as its floor, unless it stands lower by now.
	Want(ctx context.Context, h Holder, name string, end, position uint64) error
	// Grant writes how far the holder may go at least, if it wanted to under its term.
	Grant(ctx context.Context, h Holder, name string, end uint64) error
	// Transact has f done or not at all, on the chosen node and no other. It may call f again.
	Transact(ctx context.Context, f func(Tx) error) error
}

// Tx is a transaction of a takeover.
type Tx interface {
	// Lock reads all that the node has recorded. Nobody else writes there until it ends.
	Lock(ctx context.Context) (Record, error)
	// Claim makes the chosen node the holder.
	Claim(ctx context.Context, h Holder) error
	// Install writes where each sequence begins under this holder, and returns how many there are.
	Install(ctx context.Context, b *Beginning) (sequences int, err error)
	// Complete has what was installed count.
	Complete(ctx context.Context, h Holder) error
}

// Nodes is the way to the other nodes. In a cluster the chosen one is looked at as the others are:
// it may not flush, and another may have been chosen since.
type Nodes interface {
	// Sight looks at each once, and reads all that it has recorded.
	Sight(ctx context.Context) []Look
	// Watch asks each again and again, until it shows what is wanted, or never will, or ended says
	// that no more have to be asked, or they were asked for long enough. ended is called once for
	// each, one at a time.
	Watch(ctx context.Context, of Scope, start func(address string) *Witness, ended func(*Witness) (enough bool))
}

// Look is a node as it was looked at once.
type Look struct {
	Address string
	Standing
	Known Record
	Err   error // why it could not be asked
}

// Standing is what a node says of itself.
type Standing struct {
	Identity  string
	Holder    string // who gives numbers by it
	Apart     string // why a member of a cluster may not commit
	Forgets   bool   // its crash loses what it committed, however it ends
	Unflushed string // what would have it flush at commit; empty: it does
	Writable  bool   // it can be written to
}

var (
	// ErrNotHolder: the chosen node has to be taken over.
	ErrNotHolder = errors.New("this node of the sequence server was not adopted yet")
	// ErrNoRoom: so many numbers are not left.
	ErrNoRoom = errors.New("so many numbers are not left")
)

// Admitted reads whether the chosen node may give numbers of a sequence, its ceiling apart; without
// a name whether it is the holder at all.
func (g *Group) Admitted(ctx context.Context, name string) (bool, error) {
	counter := Counter{Position: math.MaxUint64}
	if name != "" {
		var err error
		if counter, err = g.Store.Counter(ctx, name, 0); err != nil {
			return false, err
		}
	}
	known, err := g.Store.Record(ctx, Scope{Name: name})
	if err != nil {
		return false, err
	}
	_, ok := known.Admits(g.Chosen.Holder, counter.Position, counter.End)
	return ok, nil
}

// StillHolds makes sure that no other node has given numbers up to now. A node that takes over
// gives some only after a majority of the nodes has shown that (see takeovers): so it has not, if a
// majority, the chosen one included, names this one as the holder afterwards. Of two nodes the
// other one may take over alone; so it has to be seen.
func (g *Group) StillHolds(ctx context.Context) error {
	own := Holder{ID: g.Chosen.Holder, Term: math.MaxUint64}
	_, err := g.Await(ctx, own, Confirmations(g.Count), Scope{}, func(known Record) bool {
		return known.Holder().ID == own.ID
	})
	return err
}
