package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// GaleraEnv names the environment variable with the path of Galera's library, where it is not in one of the usual places.
const GaleraEnv = "SEQPROXY_TEST_GALERA"

// galeraTransfer is a state transfer between nodes that began with copies of one data directory: nothing is copied, and the donor sends
// what happened since (IST). So neither rsync nor a backup program is needed.
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

// galeraHaste has nodes agree sooner that one is gone than after 5 to 15 seconds.
// https://galeracluster.com/library/documentation/galera-parameters.html
const galeraHaste = "evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.25S;evs.suspect_timeout=PT3S;evs.inactive_timeout=PT6S;evs.install_timeout=PT5S"

// GaleraLibrary is the path of Galera's library for a server program, "" if there is none.
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

// StartGalera starts a cluster of n nodes in dir, each in GaleraNodeDir; data that is found in that of the first is what all begin with. library is that of
// [GaleraLibrary]. Each node may be killed and restarted, as long as a majority is left: it hears from the others what it has missed. After an error nothing
// runs. The nodes are to be killed at the end: in order they would wait for each other.
func StartGalera(ctx context.Context, b Binary, library, dir string, n int) (nodes []*Server, err error) {
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
	ports, err := FreePorts(2 * n)
	if err != nil {
		return nil, err
	}
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf("127.0.0.1:%d", ports[2*i])
	}
	var formed atomic.Bool // the first node has to find a cluster from then on, and not to begin another
	for i := range n {
		cfg := Config{
			Binary: b, Dir: GaleraNodeDir(dir, i), SkipNameResolve: true,
			env: []string{"PATH=" + scripts + string(os.PathListSeparator) + os.Getenv("PATH")},
			ExtraArgs: []string{
				"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--innodb-flush-log-at-trx-commit=1", "--debug-no-sync",
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
		if i == 1 { // it was stopped for the copies
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

// GaleraNodeDir is the Config.Dir of node i of the cluster in dir.
func GaleraNodeDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("node%d", i+1)) }

// AwaitSynced waits until a node takes part in its cluster, for at most ctx.
func (s *Server) AwaitSynced(ctx context.Context) error {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.Logger = "root", "tcp", s.Addr(), &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close() //nolint:errcheck // every statement was answered
	var name, state string
	for {
		err := db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'").Scan(&name, &state)
		if err == nil && state == "Synced" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Galera node %s stays %q: %w", s.Addr(), state, errors.Join(context.Cause(ctx), err))
		case <-s.Done():
			return fmt.Errorf("the Galera node %s: %w", s.Addr(), s.Wait())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// recoveredPosition is what a server says that was asked where it stands.
var recoveredPosition = regexp.MustCompile(`WSREP: Recovered position: (\S+:-?\d+)`)

// recoverGalera is what a node is told that was killed: how far it had come, which its data say but not the file in which it would look.
// https://mariadb.com/kb/en/galera-cluster-system-variables/#wsrep_start_position
func recoverGalera(ctx context.Context, program string, p paths, args []string) ([]string, error) {
	state, err := os.ReadFile(filepath.Join(p.data, "grastate.dat"))
	if err != nil || !strings.Contains(string(state), "seqno:   -1") {
		return nil, nil //nolint:nilerr // it never was a member, or it stopped in order
	}
	out := filepath.Join(p.tmp, "recovery.log")
	if err := os.Remove(out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	said, err := exec.CommandContext(ctx, program, append(args[:len(args):len(args)], "--wsrep-recover", "--log-error="+out)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("ask the node how far it had come: %w\n%s", err, lastLines(said, 5))
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	found := recoveredPosition.FindSubmatch(append(text, said...))
	if found == nil {
		return nil, fmt.Errorf("the node does not say how far it had come:\n%s", lastLines(text, 5))
	}
	return []string{"--wsrep-start-position=" + string(found[1])}, nil
}

// copyGalera copies the data directory of a node that was stopped in order, for a node that is to join it.
func copyGalera(from, to string) error {
	if err := CopyData(from, to); err != nil {
		return err
	}
	for _, own := range []string{"galera.cache", "gvwstate.dat"} {
		if err := os.Remove(filepath.Join(to, own)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	state := filepath.Join(to, "grastate.dat")
	text, err := os.ReadFile(state)
	if err != nil {
		return err
	}
	return os.WriteFile(state, []byte(strings.Replace(string(text), "safe_to_bootstrap: 1", "safe_to_bootstrap: 0", 1)), 0o600)
}

// FreePorts returns ports that nobody uses at present.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // it was only asked for its port
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
