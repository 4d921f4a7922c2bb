package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"

	"seqproxy/sequence/limit"
)

// stillHolds makes sure, after an ORDER sequence's reservation in a group, that nobody else has given higher numbers before it. A node
// that takes over gives some only after a majority of the nodes has shown that (see adoptions): so it has not, if a majority, this node
// included, names this one as the holder afterwards. Of two nodes the other one may take over alone; so it has to be seen. A cluster
// that commits on a majority has no need of all this. Another request may have found another node since: what is seen of that says nothing about
// numbers that were reserved over a connection to this one.
func (g *ceilings) stillHolds(ctx context.Context, conn *sql.Conn) error {
	if g.tuning.Load().OrderWithoutReplica {
		return nil
	}
	own, err := lineOf(conn)
	if err != nil {
		return err
	}
	now := g.nodes.current.Load()
	switch {
	case now == nil:
		return errUnchosen
	case now.node != own.node:
		return fmt.Errorf("%s is the node in use by now, in place of %s, and may have given higher numbers: %w", now.addr, own.node.addr, driver.ErrBadConn)
	}
	_, err = g.awaitSeen(ctx, now, limit.Holder{ID: now.holder, Term: math.MaxUint64}, confirmations(len(g.nodes.all)), scope{}, func(known limit.Record) bool {
		return known.Holder().ID == now.holder
	})
	g.unseen.Store(err != nil)
	if err != nil {
		return fmt.Errorf("ORDER needs other nodes to see that %s still holds the sequences (order_requires_replica): %w", now.addr, err)
	}
	return nil
}
