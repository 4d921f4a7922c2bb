package mysqld

import (
	"bytes"
	"context"
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
)

// Rejoin starts a Galera node again, and waits until it takes part in the cluster. A node that does
// not reach the others in time ends, and is started again twice.
func (s *Server) Rejoin(ctx context.Context) error {
	err := s.Restart(ctx)
	for again := 0; err != nil && again < 2; again++ {
		err = s.Restart(ctx)
	}
	return errors.Join(err, s.AwaitSynced(ctx))
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
