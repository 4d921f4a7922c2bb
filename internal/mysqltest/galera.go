package mysqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
)

// GaleraEnv names the environment variable with the path of Galera's library, where it is not in one of the usual places.
const GaleraEnv = "SEQPROXY_TEST_GALERA"

// galeraTransfer is a state transfer between nodes that began with copies of one data directory: nothing is copied, and the donor sends
// what happened since. So neither rsync nor a backup program is needed.
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

// StartGalera starts a Galera cluster of n nodes for this test alone, or skips the test: on MySQL, and where the library is missing. The nodes
// may be killed, and others than the first restarted.
func StartGalera(t *testing.T, n int) []*Server {
	t.Helper()
	bin, err := findBinary()
	if err != nil {
		t.Fatal(err)
	}
	if bin.Flavour != mysqld.MariaDB {
		t.Skipf("%s has no Galera", bin)
	}
	library := findGalera(bin)
	if library == "" {
		t.Skipf("Galera's library is missing: install the package galera-4 (scripts/deps.sh galera), or name the file in %s", GaleraEnv)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "wsrep_sst_local")
	if err := os.WriteFile(script, []byte(galeraTransfer), 0o700); err != nil { //nolint:gosec // the server runs it
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	ports := freePorts(t, 2*n)
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf("127.0.0.1:%d", ports[2*i])
	}
	var nodes []*Server
	for i := range n {
		home := filepath.Join(dir, fmt.Sprintf("node%d", i+1))
		args := []string{
			"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--innodb-flush-log-at-trx-commit=1", "--debug-no-sync",
			"--wsrep-on=ON", "--wsrep-provider=" + library, "--wsrep-cluster-name=" + filepath.Base(dir),
			fmt.Sprintf("--wsrep-node-name=node%d", i+1), "--wsrep-node-address=127.0.0.1",
			"--wsrep-cluster-address=gcomm://" + strings.Join(members, ","), "--wsrep-sst-method=local",
			fmt.Sprintf("--wsrep-provider-options=base_host=127.0.0.1;base_port=%d;gmcast.listen_addr=tcp://%s;ist.recv_addr=127.0.0.1:%d;"+
				"gcache.size=16M", ports[2*i], members[i], ports[2*i+1]),
		}
		if i == 0 {
			args = append(args, "--wsrep-new-cluster")
			if err := copyTemplate(bin, filepath.Join(home, "data")); err != nil {
				t.Fatal(err)
			}
		}
		if i == 1 { // it was stopped for the copies
			if err := nodes[0].Restart(); err != nil {
				t.Fatal(err)
			}
			awaitSynced(t, nodes[0])
		}
		node := startGaleraNode(t, mysqld.Config{Binary: bin, Dir: home, SkipNameResolve: true, ExtraArgs: args})
		nodes = append(nodes, node)
		if awaitSynced(t, node); i == 0 && n > 1 {
			if err := node.Stop(); err != nil {
				t.Fatal(err)
			}
			for j := 1; j < n; j++ {
				if err := copyGalera(filepath.Join(home, "data"), filepath.Join(dir, fmt.Sprintf("node%d", j+1), "data")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return nodes
}

func startGaleraNode(t *testing.T, cfg mysqld.Config) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), restartTimeout)
	defer cancel()
	started, err := mysqld.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Server: started}
	t.Cleanup(func() {
		if err := errors.Join(s.Crashed(), s.Kill()); err != nil { // in order they would wait for each other
			t.Error(err)
		}
	})
	return s
}

// awaitSynced waits until a node takes part in its cluster.
func awaitSynced(t *testing.T, s *Server) {
	t.Helper()
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // every statement was answered
	var name, state string
	for deadline := time.Now().Add(replicationPatience); ; time.Sleep(20 * time.Millisecond) {
		err := db.QueryRow("SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'").Scan(&name, &state)
		if err == nil && state == "Synced" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a Galera node stays %q (%v)", state, err)
		}
	}
}

// copyGalera copies the data directory of a node that was stopped in order, for a node that is to join it.
func copyGalera(from, to string) error {
	if err := copyTree(from, to); err != nil {
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

// findGalera is the path of the library, "" if there is none.
func findGalera(bin mysqld.Binary) string {
	path := bin.Path
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

// freePorts returns ports that nobody uses at present.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() //nolint:errcheck // it was only asked for its port
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}
