package group

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// others is the access to the nodes besides the chosen one; in a cluster to all.
type others struct {
	*Ceilings
	now *link.Choice
}

func (o others) nodes() (all []*link.Node) {
	for _, n := range o.Ceilings.Nodes() {
		if n != o.now.Node || o.now.Cluster != "" {
			all = append(all, n)
		}
	}
	return all
}

// Sight implements [limit.Nodes].
func (o others) Sight(ctx context.Context) []limit.Look {
	patience := o.Config.Link.DialTimeout
	if o.now.Cluster != "" {
		// This node has what they have, or a majority did not have it.
		patience = min(patience, o.patience.Shown)
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	all := make(chan limit.Look)
	nodes := o.nodes()
	for _, n := range nodes {
		go func() { // received below
			said, err := n.Ask(ctx)
			look := limit.Look{Address: n.Addr, Standing: limit.Standing(said), Err: err}
			if look.Err == nil {
				look.Record, look.Err = o.Limits.Read(ctx, n.Pool(), limit.Scope{All: true})
			}
			all <- look
		}()
	}
	seen := make([]limit.Look, 0, len(nodes))
	for range nodes {
		seen = append(seen, <-all)
	}
	return seen
}

// Watch implements [limit.Nodes].
func (o others) Watch(ctx context.Context, of limit.Scope, start func(address string) *limit.Witness, ended func(*limit.Witness) bool) {
	ctx, stop := context.WithTimeout(ctx, o.patience.Shown)
	defer stop()
	all := make(chan *limit.Witness)
	nodes := o.nodes()
	for _, n := range nodes {
		w := start(n.Addr)
		go func() { // received below
			o.watch(ctx, n, w, of)
			all <- w
		}()
	}
	for range nodes {
		if ended(<-all) {
			stop() // the others end soon
		}
	}
}

// watch asks one node until it shows what is wanted, or never will, or ctx ends.
func (o others) watch(ctx context.Context, n *link.Node, w *limit.Witness, of limit.Scope) {
	for wait := o.patience.FirstLook; ; wait = min(2*wait, o.patience.LastLook) {
		if !w.Identified() {
			if said, err := n.Ask(ctx); !w.Looked((*limit.Standing)(&said), err) {
				return
			}
		}
		if w.Identified() {
			switch known, err := o.Limits.Read(ctx, n.Pool(), of); {
			case err == nil && w.Shown(known):
				return
			case err != nil && ctx.Err() == nil:
				w.Err = err
			}
		}
		if !await.Pause(ctx, wait) {
			return
		}
	}
}

// toChosen returns a connection to the chosen node, which is writable. The caller closes it.
func (g *Ceilings) toChosen(ctx context.Context) (conn *sql.Conn, now *link.Choice, err error) {
	if conn, err = g.Conn(ctx); err != nil {
		return nil, nil, err
	}
	if now = g.Current(); now == nil {
		err = link.ErrUnchosen
	} else {
		err = g.Writable(ctx, conn)
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, now, nil
}

// Group returns the group as one attempt sees it, over a connection to the chosen node.
func (g *Ceilings) Group(conn *sql.Conn, now *link.Choice) *limit.Group {
	return &limit.Group{
		Store: holderStore{g, conn, now}, Nodes: others{g, now}, Count: len(g.Nodes()), Relaxed: g.Config.Link.Relaxed,
		Chosen: limit.Node{Address: now.Addr, Identity: now.Identity, Holder: now.Holder, Cluster: now.Cluster != ""},
	}
}

// ShownOn returns once need nodes have what was committed on this server before the call, the
// chosen one included: a majority of them makes it survive a fail-over, or a crash of all nodes of
// a cluster. Nodes that answer may lag for so long. With one node it returns at once.
func (g *Ceilings) ShownOn(ctx context.Context, lag time.Duration, need int) error {
	if !g.InForce() {
		return nil
	}
	conn, now, err := g.toChosen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if ok, err := g.Group(conn, now).Admitted(ctx, ""); err != nil {
		return err
	} else if !ok {
		// A takeover takes other connections: with as many callers as connections they would wait
		// for each other.
		_ = conn.Close()
		if err := g.takeOverChosen(ctx, "", limit.Holder{}); err != nil {
			return err
		}
		again, err := g.Conn(ctx)
		if err != nil {
			return err
		}
		conn = again
		if err := g.LeadsTo(ctx, conn, now); err != nil {
			return err
		}
	}
	// Replicas apply changes in the order of their commits, so one that shows this has all before
	// it.
	if _, err := conn.ExecContext(ctx, "UPDATE "+g.Table.Holder+" SET `mark` = `mark` + 1 WHERE `holder` = "+now.HolderSQL()); err != nil {
		return fmt.Errorf("write table %s: %w", g.Table.Holder, err)
	}
	known, err := g.Limits.Read(ctx, conn, limit.Scope{})
	if err != nil {
		return err
	}
	marked := known.Holder()
	if marked.ID != now.Holder {
		return store.OutcomeNotHolder
	}
	_ = conn.Close() // others may need it meanwhile
	for begin, again := time.Now(), true; again; {
		_, failed := g.Group(nil, now).Await(ctx, marked, need, limit.Scope{}, func(known limit.Record) bool {
			top := known.Holder()
			return top.ID == marked.ID && top.Term == marked.Term && top.Mark >= marked.Mark
		})
		if failed == nil || err == nil || ctx.Err() == nil {
			// The error of an attempt that was cut off says less than the one before.
			err = failed
		}
		again = limit.IsLagging(err) && time.Since(begin) < lag && ctx.Err() == nil
	}
	if err != nil {
		return fmt.Errorf("a fail-over could lose what was written: %w", err)
	}
	return nil
}

// OnNodes waits for the other nodes to have what was committed. all: each of them has it; err: no
// majority has it. A server that is no group loses nothing.
func (g *Ceilings) OnNodes(ctx context.Context) (all bool, err error) {
	n := len(g.Nodes())
	if err = g.ShownOn(ctx, 0, n); err == nil {
		return true, nil
	}
	lost := new(limit.SeenError)
	if !errors.As(err, &lost) {
		return false, err
	}
	if lost.Need = limit.Confirmations(n); !lost.Cluster {
		lost.Need-- // see limit.Group.Await
	}
	if lost.Seen >= lost.Need {
		return false, nil
	}
	return false, err
}

// KeepsPast makes sure that the node in use has r as it was written, or a later version.
func (g *Ceilings) KeepsPast(ctx context.Context, r *store.Row) error {
	if !g.InForce() {
		return nil
	}
	stored, err := g.Look(ctx, r.Name)
	if err == nil && (stored.Version < r.Version || stored.Epoch == r.Epoch && stored.Past < r.Past) {
		err = fmt.Errorf("%s has taken over, and has not heard that sequence %q goes on above %d: try again", g.At(), r.Name, r.Past)
	}
	return err
}
