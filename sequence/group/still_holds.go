package group

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"seqproxy/sequence/link"
)

// StillHolds checks, after an ORDER sequence's reservation in a group, that no other node has given
// higher numbers before it. A cluster that commits on a majority does not need that. Another
// request may have found another node since, which says nothing about numbers that were reserved
// over a connection to this one.
func (g *Ceilings) StillHolds(ctx context.Context, conn *sql.Conn) error {
	if !g.replicates() {
		return nil
	}
	c, err := link.ConnOf(conn)
	if err != nil {
		return err
	}
	now := g.Current()
	switch {
	case now == nil:
		return link.ErrUnchosen
	case now.Node != c.Node:
		return fmt.Errorf("%s is the node in use by now, in place of %s, and may have given higher numbers: %w", now.Addr, c.Node.Addr, driver.ErrBadConn)
	}
	err = g.Group(conn, now).StillHolds(ctx)
	g.unseen.Store(err != nil)
	if err != nil {
		return fmt.Errorf("ORDER needs other nodes to see that %s still holds the sequences (order_requires_replica): %w", now.Addr, err)
	}
	return nil
}

// Unseen reports whether the last StillHolds has failed.
func (g *Ceilings) Unseen() bool { return g.unseen.Load() }
