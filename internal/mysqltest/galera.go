package mysqltest

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"seqproxy/internal/mysqld"
)

// StartGalera starts a Galera cluster of n nodes for this test alone, or skips the test: on MySQL, and where the library is missing. The nodes
// may be killed and restarted while a majority is left.
func StartGalera(t *testing.T, n int) []*Server {
	t.Helper()
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
	var nodes []*Server
	for _, node := range started {
		t.Cleanup(func() {
			if err := errors.Join(node.Crashed(), node.Kill()); err != nil { // in order they would wait for each other
				t.Error(err)
			}
		})
		nodes = append(nodes, &Server{Server: node})
	}
	return nodes
}

// freePorts returns ports that nobody uses at present.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports, err := mysqld.FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}
