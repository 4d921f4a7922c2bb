package torture

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// operator is whoever watches over a cluster. Where a busy machine has the nodes take each other for dead while one of them is away for a fault, no majority is left, and
// they come to none again by themselves as long as that one does not come back as the same. Then somebody has to say that those that are there go on: the rule is that
// all but the one are, which Galera had everything told to that it has committed.
// https://mariadb.com/kb/en/galera-cluster-recovery/
type operator struct {
	world *world
	stop  context.CancelFunc
	group sync.WaitGroup

	mended atomic.Int64 // how often he has said so
}

const (
	// lookEvery is between two looks at the nodes, and how long one may take.
	lookEvery = time.Second
	// bootstrapAfter is for how long no node may commit before the operator acts. Nodes that agree again do so sooner.
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
			if now-good > 2*lookEvery+sluggish {
				o.world.trouble.note(window{fault: "no node may commit", parts: []part{clusterPart}, begin: good, end: now})
			}
			good = now
			continue
		}
		if now-good < bootstrapAfter || apart == nil {
			continue
		}
		limited, stop := context.WithTimeout(ctx, 5*time.Second)
		_, err := apart.db.ExecContext(limited, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
		stop()
		if err == nil {
			o.mended.Add(1)
		}
	}
}

// errApart: the nodes of a cluster find each other no more, whatever the operator says. That tells nothing of the proxies, which are to be looked at in another run.
var errApart = errors.New("the cluster does not come together again")

// together waits until a node of the cluster, if there is one, may commit.
func (w *world) together(ctx context.Context) error {
	if !w.galera() {
		return nil
	}
	return eventually(ctx, backWithin, func() error {
		if primary, _ := w.operator.look(ctx); !primary {
			return errApart
		}
		return nil
	})
}

// look reports whether any node may commit. apart is one of two or more that see each other and may not.
func (o *operator) look(ctx context.Context) (primary bool, apart *server) {
	ctx, stop := context.WithTimeout(ctx, lookEvery)
	defer stop()
	status := make([]string, len(o.world.nodes))
	size := make([]int, len(o.world.nodes))
	var all sync.WaitGroup
	for i, s := range o.world.nodes {
		all.Go(func() {
			var name string
			if s.db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_status'").Scan(&name, &status[i]) != nil {
				status[i] = ""
				return
			}
			_ = s.db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'").Scan(&name, &size[i]) // 0 if it cannot be asked
		})
	}
	all.Wait()
	for i, s := range o.world.nodes {
		switch {
		case status[i] == "Primary":
			return true, nil
		case status[i] != "" && size[i] >= len(o.world.nodes)-1:
			apart = s
		}
	}
	return false, apart
}
