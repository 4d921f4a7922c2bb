package mysqld

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

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

// AwaitSynced waits until a node takes part in its cluster, or ctx is done.
func (s *Server) AwaitSynced(ctx context.Context) error {
	return s.awaitGalera(ctx, func() error {
		got, err := s.galeraStatus(ctx)
		if err == nil && !got.synced() {
			err = fmt.Errorf("it is %s", got)
		}
		return err
	})
}

// Rejoin starts a Galera node again, and waits until it takes part in the cluster. A node that does
// not reach the others in time ends, and is started again twice.
func (s *Server) Rejoin(ctx context.Context) error {
	err := s.Restart(ctx)
	for again := 0; err != nil && again < 2; again++ {
		err = s.Restart(ctx)
	}
	return errors.Join(err, s.AwaitSynced(ctx))
}

// AwaitCluster waits until all nodes take part in the cluster, agree on that, and see each other's
// commits, or ctx is done. A node that slept may not know yet that it was excluded, and says that
// it takes part.
func AwaitCluster(ctx context.Context, nodes []*Server) error {
	return nodes[0].awaitGalera(ctx, func() error {
		limited, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		var first galeraStatus
		for i, s := range nodes {
			if err := s.exec(limited, "?wsrep_sync_wait=1", "SELECT COUNT(*) FROM mysql.db"); err != nil {
				return fmt.Errorf("node %d: %w", i+1, err)
			}
			got, err := s.galeraStatus(limited)
			if err != nil {
				return fmt.Errorf("node %d: %w", i+1, err)
			}
			if i == 0 {
				first = got
			}
			if !got.synced() || got.size != strconv.Itoa(len(nodes)) || got.configuration != first.configuration {
				return fmt.Errorf("node 1 is %s, and node %d is %s", first, i+1, got)
			}
		}
		return nil
	})
}

// awaitGalera calls try until it succeeds, ctx is done, or the server ends.
func (s *Server) awaitGalera(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Galera node %s: %w", s.Addr(), errors.Join(context.Cause(ctx), err))
		case <-s.Done():
			return fmt.Errorf("the Galera node %s: %w", s.Addr(), errors.Join(s.Wait(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// galeraStatus is the status that a node reports.
type galeraStatus struct{ state, component, configuration, size string }

func (g galeraStatus) synced() bool { return g.state == "Synced" && g.component == "Primary" }

func (g galeraStatus) String() string {
	return fmt.Sprintf("%q in a component %q, configuration %s of %s nodes", g.state, g.component, g.configuration, g.size)
}

func (s *Server) galeraStatus(ctx context.Context) (g galeraStatus, err error) {
	db, err := s.open("")
	if err != nil {
		return g, err
	}
	defer db.Close() //nolint:errcheck // every statement was answered
	rows, err := db.QueryContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_%'")
	if err != nil {
		return g, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return g, err
		}
		switch name {
		case "wsrep_local_state_comment":
			g.state = value
		case "wsrep_cluster_status":
			g.component = value
		case "wsrep_cluster_conf_id":
			g.configuration = value
		case "wsrep_cluster_size":
			g.size = value
		}
	}
	return g, rows.Err()
}

// Component returns whether a running node may commit, and how many nodes it sees, itself included.
func (s *Server) Component(ctx context.Context) (primary bool, size int, err error) {
	got, err := s.galeraStatus(ctx)
	if err != nil {
		return false, 0, err
	}
	size, err = strconv.Atoi(got.size)
	return got.component == "Primary", size, err
}

// SetGalera sets an option of the library in a running node, such as pc.bootstrap or
// gmcast.isolate.
func (s *Server) SetGalera(ctx context.Context, option string, value int) error {
	if err := s.exec(ctx, "", fmt.Sprintf("SET GLOBAL wsrep_provider_options = '%s=%d'", option, value)); err != nil {
		return fmt.Errorf("set %s of the Galera node %s: %w", option, s.Addr(), err)
	}
	return nil
}

// exec runs a statement on a connection of its own. params are the driver's, "?a=b".
func (s *Server) exec(ctx context.Context, params, text string) error {
	db, err := s.open(params)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the statement was answered
	_, err = db.ExecContext(ctx, text)
	return err
}

func (s *Server) open(params string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN("root@tcp(" + s.Addr() + ")/" + params)
	if err != nil {
		return nil, err
	}
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// recoveredPosition matches the position that a server prints when asked for it.
var recoveredPosition = regexp.MustCompile(`WSREP: Recovered position: (\S+:-?\d+)`)

// BootstrapCluster starts a cluster again whose nodes are all down. It begins with the node that
// has come furthest, as an operator must: otherwise the changes that only this node has are lost.
// https://mariadb.com/kb/en/galera-cluster-recovery/
func BootstrapCluster(ctx context.Context, nodes []*Server) error {
	best, furthest := 0, int64(math.MinInt64)
	for i, s := range nodes {
		at, err := s.galeraPosition(ctx)
		if err != nil {
			return err
		}
		if at > furthest {
			best, furthest = i, at
		}
	}
	first := nodes[best]
	path := filepath.Join(first.DataDir(), galeraStateFile)
	state, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(state, []byte("safe_to_bootstrap: 0"), []byte("safe_to_bootstrap: 1"), 1), 0o600)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(first.RestartWith(ctx, "--wsrep-new-cluster"), first.AwaitSynced(ctx)); err != nil {
		return err
	}
	for i, s := range nodes {
		if i == best {
			continue
		}
		if err := s.Rejoin(ctx); err != nil {
			return err
		}
	}
	return AwaitCluster(ctx, nodes)
}

const galeraStateFile = "grastate.dat"

// stoppedAt matches the position in a node's state file.
var stoppedAt = regexp.MustCompile(`(?m)^seqno: +(-?\d+)`)

// galeraPosition returns the position of a node that is down.
func (s *Server) galeraPosition(ctx context.Context) (int64, error) {
	s.change.Lock()
	defer s.change.Unlock()
	more, err := recoverGalera(ctx, s.cfg.Binary.Path, s.paths, s.cfg.args(s.paths, s.port))
	if err != nil {
		return 0, err
	}
	if len(more) > 0 {
		_, at, _ := strings.Cut(more[0], "=") // uuid:n
		return strconv.ParseInt(at[strings.LastIndexByte(at, ':')+1:], 10, 64)
	}
	state, err := os.ReadFile(filepath.Join(s.paths.data, galeraStateFile))
	if err != nil {
		return 0, err
	}
	found := stoppedAt.FindSubmatch(state)
	if found == nil {
		return 0, fmt.Errorf("%s does not say how far the node %s had come", galeraStateFile, s.Addr())
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// recoverGalera returns the option with the position of a killed node. Its data have the position,
// but the file where the node looks for it does not.
// https://mariadb.com/kb/en/galera-cluster-system-variables/#wsrep_start_position
func recoverGalera(ctx context.Context, program string, p paths, args []string) ([]string, error) {
	state, err := os.ReadFile(filepath.Join(p.data, galeraStateFile))
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
