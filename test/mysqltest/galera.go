package mysqltest

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"seqproxy/internal/child"
	"seqproxy/internal/mysqld"
)

// Cluster is a Galera cluster.
type Cluster struct {
	Nodes []*Server
	all   []*mysqld.Server
}

// clusterPatience bounds waits for a cluster on a loaded machine: three crash recoveries, and
// elections.
const clusterPatience = 3 * time.Minute

// AwaitWhole waits until all nodes take part and agree on that.
func (c *Cluster) AwaitWhole(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterPatience)
	defer cancel()
	if err := mysqld.AwaitCluster(ctx, c.all); err != nil {
		t.Fatal(err)
	}
}

// AwaitRunning is AwaitWhole for those nodes that run.
func (c *Cluster) AwaitRunning(t testing.TB) {
	t.Helper()
	running := &Cluster{}
	for _, node := range c.all {
		if node.Running() {
			running.all = append(running.all, node)
		}
	}
	running.AwaitWhole(t)
}

// Bootstrap starts the cluster again. All nodes must be down.
func (c *Cluster) Bootstrap(t testing.TB) {
	t.Helper()
	c.BootstrapFrom(t, 0)
}

// BootstrapFrom is Bootstrap with the nodes from first on. The others are lost.
func (c *Cluster) BootstrapFrom(t testing.TB, first int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterPatience)
	defer cancel()
	if err := mysqld.BootstrapCluster(ctx, c.all[first:]); err != nil {
		t.Fatal(err)
	}
}

// BootstrapOnly begins the cluster again with one node. The others may come back.
func (c *Cluster) BootstrapOnly(t testing.TB, at int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterPatience)
	defer cancel()
	if err := mysqld.BootstrapCluster(ctx, c.all[at:at+1]); err != nil {
		t.Fatal(err)
	}
}

// Isolate cuts node i off from the others. It waits until i knows that it may not commit, and the
// others know that they may.
func (c *Cluster) Isolate(t testing.TB, i int) {
	t.Helper()
	c.set(t, i, 1)
	ctx, cancel := context.WithTimeout(context.Background(), clusterPatience)
	defer cancel()
	for j, node := range c.all {
		size, primary := len(c.all)-1, true
		if j == i {
			size, primary = 1, false
		}
		for {
			may, sees, err := node.Component(ctx)
			if err == nil && may == primary && sees == size {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("node %d sees %d nodes and may commit: %v (%v), want %d, %v", j, sees, may, err, size, primary)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// Rejoin ends Isolate, and waits until the cluster is whole.
func (c *Cluster) Rejoin(t testing.TB, i int) {
	t.Helper()
	c.set(t, i, 0)
	c.AwaitWhole(t)
}

func (c *Cluster) set(t testing.TB, i, isolate int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterPatience)
	defer cancel()
	if err := c.all[i].SetGalera(ctx, "gmcast.isolate", isolate); err != nil {
		t.Fatal(err)
	}
}

// StartGalera starts a Galera cluster of n nodes for this test only. It skips the test on MySQL,
// and without the library. Nodes may be killed and restarted while a majority is left.
func StartGalera(t *testing.T, n int) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("a Galera cluster is for CI; without -short it is started here")
	}
	bin, err := findBinary()
	if err != nil {
		t.Fatal(err)
	}
	if bin.Flavour != mysqld.MariaDB {
		t.Skipf("%s has no Galera", bin)
	}
	library := mysqld.GaleraLibrary(bin)
	if library == "" {
		t.Skipf("Galera's library is missing: install the package galera-4 (scripts/deps.sh galera), or name the file in %s", mysqld.GaleraEnv)
	}
	dir := t.TempDir()
	if err := copyTemplate(bin, filepath.Join(mysqld.GaleraNodeDir(dir, 0), "data")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), restartTimeout)
	defer cancel()
	started, err := mysqld.StartGalera(ctx, bin, library, dir, n)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{all: started}
	for _, node := range started {
		t.Cleanup(func() {
			if err := errors.Join(node.Crashed(), node.Kill()); err != nil {
				// with an orderly stop they would wait for each other
				t.Error(err)
			}
		})
		c.Nodes = append(c.Nodes, &Server{Server: node})
	}
	return c
}

// freePorts returns ports that nobody uses at present.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports, err := child.FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}
