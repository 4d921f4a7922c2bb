package torture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/mysqld"
)

// operator watches over a cluster. On a busy machine the nodes may take each other for dead while
// one of them is away for a fault. Then no majority exists, and none forms as long as that node
// does not come back as the same. The operator then makes the cluster go on, once all nodes are up:
// with Galera, the others copy from the one that has come furthest.
// https://mariadb.com/kb/en/galera-cluster-recovery/
type operator struct {
	world *world
	stop  context.CancelFunc
	group sync.WaitGroup

	mended atomic.Int64 // how often the operator has acted
}

const (
	// lookEvery is between two looks at the nodes, each of which may take longer where one is
	// stopped.
	lookEvery = time.Second
	mayTake   = 3 * time.Second
	// bootstrapAfter is for how long no node may commit before the operator acts. Nodes that agree
	// again do so sooner.
	bootstrapAfter = 10 * time.Second
)

// watch starts the operator of a cluster.
func (w *world) watch() *operator {
	ctx, stop := context.WithCancel(context.Background())
	o := &operator{world: w, stop: stop}
	o.group.Go(func() { o.run(ctx) })
	return o
}

// end waits for the operator and returns how often he had to act.
func (o *operator) end() int {
	o.stop()
	o.group.Wait()
	return int(o.mended.Load())
}

func (o *operator) run(ctx context.Context) {
	good := o.world.clock.now()
	for ; ctx.Err() == nil; await.Pause(ctx, lookEvery) {
		primary, apart := o.look(ctx)
		now := o.world.clock.now()
		if primary || ctx.Err() != nil {
			if now-good > lookEvery+mayTake+sluggish {
				o.world.trouble.note(window{fault: "no node may commit", parts: []part{clusterPart}, begin: good, end: now})
			}
			good = now
			continue
		}
		if now-good < bootstrapAfter || apart == nil {
			continue
		}
		limited, stop := context.WithTimeout(ctx, mayTake)
		err := apart.SetGalera(limited, "pc.bootstrap", 1)
		stop()
		if err == nil {
			o.mended.Add(1)
		}
	}
}

// errApart: the nodes of a cluster do not find each other again, whatever the operator does. That
// shows nothing about the proxies, which another run has to test.
var errApart = errors.New("the cluster does not come together again")

// together waits until all nodes of the cluster, if there is one, take part in it.
func (w *world) together(ctx context.Context) error {
	if !w.galera() {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, backWithin)
	defer stop()
	if err := mysqld.AwaitCluster(ctx, w.sequence.cluster); err != nil {
		return fmt.Errorf("%w: %w", errApart, err)
	}
	return nil
}

// look reports whether any node may commit. apart is a node that sees all the others and may not.
func (o *operator) look(ctx context.Context) (primary bool, apart *server) {
	ctx, stop := context.WithTimeout(ctx, mayTake)
	defer stop()
	may, sees := make([]bool, len(o.world.nodes)), make([]int, len(o.world.nodes))
	var all sync.WaitGroup
	for i, s := range o.world.nodes {
		// A node that does not answer sees none.
		all.Go(func() { may[i], sees[i], _ = s.Component(ctx) })
	}
	all.Wait()
	if slices.Contains(may, true) {
		return true, nil
	}
	if i := slices.Index(sees, len(o.world.nodes)); i >= 0 {
		apart = o.world.nodes[i]
	}
	return false, apart
}
