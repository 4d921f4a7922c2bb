package torture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seqproxy/internal/mysqld"
)

// operator is whoever watches over a cluster. Where a busy machine has the nodes take each other
// for dead while one of them is away for a fault, no majority is left, and they come to none again
// by themselves as long as that one does not come back as the same. Then somebody has to say that
// they go on, once all are there: of those Galera has the others hear from the one that has come
// furthest. https://mariadb.com/kb/en/galera-cluster-recovery/
type operator struct {
	world *world
	stop  context.CancelFunc
	group sync.WaitGroup

	mended atomic.Int64 // how often he has said so
}

const (
	// lookEvery is between two looks at the nodes, each of which may take longer where one sleeps.
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
	for ; ctx.Err() == nil; sleep(ctx, lookEvery) {
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

// errApart: the nodes of a cluster find each other no more, whatever the operator says. That tells
// nothing of the proxies, which are to be looked at in another run.
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

// look reports whether any node may commit. apart is one that sees all the others and may not.
func (o *operator) look(ctx context.Context) (primary bool, apart *server) {
	ctx, stop := context.WithTimeout(ctx, mayTake)
	defer stop()
	may, sees := make([]bool, len(o.world.nodes)), make([]int, len(o.world.nodes))
	var all sync.WaitGroup
	for i, s := range o.world.nodes {
		// one that cannot be asked sees none
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
