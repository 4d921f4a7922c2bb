package sequence

import (
	"context"
	"fmt"
	"math"
)

// stillHolds makes sure, after an ORDER sequence's reservation in a group, that nobody else has given higher numbers before it. A node
// that takes over gives some only after a majority of the nodes has shown that (see adoptions): so it has not, if a majority, this node
// included, names this one as the holder afterwards. Of two nodes the other one may take over alone; so it has to be seen. A cluster
// that commits on a majority has no need of all this.
func (v *server) stillHolds(ctx context.Context) error {
	now := v.nodes.current.Load()
	if v.tuning.Load().OrderWithoutReplica || now == nil {
		return nil
	}
	_, err := v.awaitSeen(ctx, now, guardRow{holder: now.identity, term: math.MaxUint64}, confirmations(len(v.nodes.all))-1, " WHERE `name` = ''", nil, func(rows guardRows) bool {
		return rows.holder().holder == now.identity
	})
	v.unseen.Store(err != nil)
	if err != nil {
		return fmt.Errorf("that %s still holds the sequences has to be seen on other nodes for ORDER (order_requires_replica): %w", now.addr, err)
	}
	return nil
}
