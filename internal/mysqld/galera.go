package mysqld

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"seqproxy/internal/child"
)

// GaleraEnv is the environment variable with the path of Galera's library, if that is not in a
// usual place.
const GaleraEnv = "SEQPROXY_TEST_GALERA"

// galeraTransfer is a state transfer between nodes that start with copies of one data directory. It
// copies nothing: the donor sends what happened since (IST). So it needs neither rsync nor a backup
// program.
const galeraTransfer = `#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	--role) role=$2 ;;
	--datadir) datadir=$2 ;;
	--address) address=$2 ;;
	--gtid) gtid=$2 ;;
	--bypass) bypass=1 ;;
	esac
	shift
done
case $role in
donor)
	[ -n "$bypass" ] || exit 1
	cat >/dev/null # what the server has to say about accounts: it takes a script that does not listen for one that failed
	echo "$gtid" >"${address#*/}/transferred"
	echo "done $gtid"
	;;
joiner)
	rm -f "$datadir/transferred"
	echo "ready 127.0.0.1:1/$datadir"
	while [ ! -s "$datadir/transferred" ]; do
		kill -0 $PPID || exit 1
		sleep 0.02
	done
	cat "$datadir/transferred"
	;;
esac
`

// galeraHaste lets nodes exclude a lost node after 5 seconds instead of 15. With less, nodes on a
// busy machine would exclude each other.
// https://galeracluster.com/library/documentation/galera-parameters.html
const galeraHaste = "evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.25S;evs.suspect_timeout=PT5S;evs.inactive_timeout=PT10S;evs.install_timeout=PT5S"

// GaleraLibrary returns the path of Galera's library for a server program, or "".
func GaleraLibrary(b Binary) string {
	if b.Flavour != MariaDB {
		return ""
	}
	path := b.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	root := filepath.Dir(filepath.Dir(path))
	for _, place := range []string{
		os.Getenv(GaleraEnv), filepath.Join(root, "lib", "galera", "libgalera_smm.so"), filepath.Join(root, "lib", "libgalera_smm.so"),
		"/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so", "/usr/lib64/galera/libgalera_smm.so",
	} {
		if info, err := os.Stat(place); err == nil && info.Mode().IsRegular() {
			return place
		}
	}
	return ""
}

// StartGalera starts a cluster of n nodes in dir, each in its GaleraNodeDir. All start with the
// data of the first one. library is the path from [GaleraLibrary]. A node may be killed and
// restarted as long as a majority is left; the others send it what it missed. After an error no
// node runs. At the end the caller kills the nodes: with an orderly stop they would wait for each
// other.
func StartGalera(ctx context.Context, b Binary, library, dir string, n int) (nodes []*Server, err error) {
	for attempt := 1; ; attempt++ {
		nodes, err = startGalera(ctx, b, library, dir, n)
		if err == nil || attempt == 3 || ctx.Err() != nil {
			return nodes, err
		}
		// On a busy machine somebody else may take a node's port before it does, or a node may not
		// reach the others in time.
		for i := range n {
			if failed := os.RemoveAll(GaleraNodeDir(dir, i)); failed != nil {
				return nil, errors.Join(err, failed)
			}
		}
	}
}

// startGalera is one attempt of StartGalera.
func startGalera(ctx context.Context, b Binary, library, dir string, n int) (nodes []*Server, err error) {
	defer func() {
		if err != nil {
			for _, node := range nodes {
				err = errors.Join(err, node.Kill())
			}
			nodes = nil
		}
	}()
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	scripts := filepath.Join(dir, "scripts")
	if err := os.MkdirAll(scripts, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(scripts, "wsrep_sst_local"), []byte(galeraTransfer), 0o700); err != nil { //nolint:gosec // the server runs it
		return nil, err
	}
	ports, err := child.FreePorts(2 * n)
	if err != nil {
		return nil, err
	}
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf("127.0.0.1:%d", ports[2*i])
	}
	// later the first node must join the cluster and not begin another
	var formed atomic.Bool
	for i := range n {
		cfg := Config{
			Binary: b, Dir: GaleraNodeDir(dir, i), SkipNameResolve: true,
			env: []string{"PATH=" + scripts + string(os.PathListSeparator) + os.Getenv("PATH")},
			ExtraArgs: []string{
				"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--innodb-flush-log-at-trx-commit=1", "--debug-no-sync",
				// since MariaDB 11 a plugin replaces some options of the library by variables; see
				// SetGalera
				"--loose-plugin-wsrep-provider=OFF",
				"--wsrep-on=ON", "--wsrep-provider=" + library, "--wsrep-cluster-name=" + filepath.Base(dir),
				fmt.Sprintf("--wsrep-node-name=node%d", i+1), "--wsrep-node-address=127.0.0.1",
				"--wsrep-cluster-address=gcomm://" + strings.Join(members, ","), "--wsrep-sst-method=local",
				fmt.Sprintf("--wsrep-provider-options=base_host=127.0.0.1;base_port=%d;gmcast.listen_addr=tcp://%s;ist.recv_addr=127.0.0.1:%d;"+
					"gcache.size=16M;"+galeraHaste, ports[2*i], members[i], ports[2*i+1]),
			},
			startArgs: func(ctx context.Context, p paths, args []string) ([]string, error) {
				if i == 0 && !formed.Load() {
					return []string{"--wsrep-new-cluster"}, nil
				}
				return recoverGalera(ctx, b.Path, p, args)
			},
		}
		if i == 1 { // it was stopped to copy its data
			if err := nodes[0].Restart(ctx); err != nil {
				return nodes, err
			}
			if err := nodes[0].AwaitSynced(ctx); err != nil {
				return nodes, err
			}
		}
		node, err := Start(ctx, cfg)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, node)
		if err := node.AwaitSynced(ctx); err != nil {
			return nodes, err
		}
		if i > 0 || n == 1 {
			continue
		}
		if err := node.Stop(ctx); err != nil {
			return nodes, err
		}
		for j := 1; j < n; j++ {
			if err := copyGalera(node.DataDir(), filepath.Join(GaleraNodeDir(dir, j), "data")); err != nil {
				return nodes, err
			}
		}
	}
	formed.Store(true)
	return nodes, nil
}

// GaleraNodeDir returns the Config.Dir of node i of the cluster in dir.
func GaleraNodeDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("node%d", i+1)) }

// copyGalera copies the data directory of a node that was stopped in order, for a node that will
// join it.
func copyGalera(from, to string) error {
	if err := CopyData(from, to); err != nil {
		return err
	}
	for _, name := range []string{"galera.cache", "gvwstate.dat"} {
		if err := os.Remove(filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	state := filepath.Join(to, galeraStateFile)
	text, err := os.ReadFile(state)
	if err != nil {
		return err
	}
	return os.WriteFile(state, []byte(strings.Replace(string(text), "safe_to_bootstrap: 1", "safe_to_bootstrap: 0", 1)), 0o600)
}
