package torture

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"seqproxy/internal/mysqld"
	"seqproxy/internal/mysqltest"
)

func TestWhatNodesOfAClusterWroteDownHasToBeTheSame(t *testing.T) {
	one := func(file int, xid, before, after uint64) transaction {
		return transaction{file: file, xid: xid, done: []rowChange{{table: "sequence", before: []any{"photos", before}, after: []any{"photos", after}}}}
	}
	all := []transaction{one(0, 4, 0, 3), one(0, 7, 3, 9), one(0, 8, 9, 12)}
	for _, c := range []struct {
		name string
		logs [2][]transaction
		want string
	}{
		{"the same", [2][]transaction{all, all}, ""},
		{"in other files", [2][]transaction{all, {one(0, 4, 0, 3), one(2, 7, 3, 9), one(3, 8, 9, 12)}}, ""},
		{"taken back and heard of again", [2][]transaction{all, {one(0, 4, 0, 3), one(0, 7, 3, 9), one(1, 7, 3, 9), one(1, 8, 9, 12)}}, ""},
		{"two taken back and heard of again", [2][]transaction{all, {one(0, 4, 0, 3), one(0, 7, 3, 9), one(0, 8, 9, 12), one(1, 7, 3, 9), one(1, 8, 9, 12)}}, ""},
		{"taken back and never heard of", [2][]transaction{all, {one(0, 4, 0, 3), one(0, 7, 3, 9), one(0, 8, 9, 12), one(1, 7, 3, 9)}}, "only node1 has written down transaction 8"},
		{"taken back, and another came", [2][]transaction{all, {one(0, 4, 0, 3), one(0, 7, 3, 8), one(1, 7, 3, 9), one(1, 8, 9, 12)}}, ""},
		{"one is lost", [2][]transaction{{one(0, 4, 0, 3), one(0, 8, 9, 12)}, all}, "only node2 has written down transaction 7"},
		{"the last one is lost", [2][]transaction{all, all[:2]}, "only node1 has written down transaction 8"},
		{"one node has something of its own", [2][]transaction{all, {all[0], all[1], one(0, 8, 9, 13)}}, "node1 has written down transaction 8 of 00:00:00 (sequence [photos 9] to [photos 12]), and node2 transaction 8"},
		{"twice", [2][]transaction{all, {all[0], all[1], all[1], all[2]}}, "node2 has written down out of turn: transaction 7"},
		{"in another order", [2][]transaction{all, {all[1], all[0], all[2]}}, "node2 has written down out of turn: transaction 4"},
		{"what has no place in the order", [2][]transaction{all, {all[0], all[1], all[2], one(0, 0, 12, 13)}}, "node2 has written down out of turn: transaction 0"},
	} {
		got, wrong := agree([]string{"node1", "node2"}, [][]transaction{c.logs[0], c.logs[1]})
		if text := strings.Join(wrong, "\n"); c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
		way := journalOf(got)
		if err := whole(append([]change{{sequence: "photos", made: true}}, way.changes...), map[string]uint64{"photos": 12}); err != nil && c.want == "" {
			t.Errorf("%s: what is left is not whole: %v", c.name, err)
		}
	}
}

// What a cluster commits is all explained, also when nodes are killed, and all of them at once; and what nobody asked for is found, be it on all nodes or on one.
func TestAGapThatWasPlantedInAClusterIsFound(t *testing.T) {
	binary := serverBinary(t)
	if mysqld.GaleraLibrary(binary) == "" {
		t.Skipf("%s has no Galera, or its library is missing: install the package galera-4 (scripts/deps.sh galera), or name the file in %s", binary, mysqld.GaleraEnv)
	}
	ctx, stop := context.WithTimeout(t.Context(), 8*time.Minute)
	defer stop()
	s, end := newScenario(ctx, t, "galera", mysqltest.Program(t))
	defer end()
	w := s.w
	s.must(w.create(ctx, nil))
	s.crash(0)
	plant := func(node *server, texts ...string) {
		s.must(eventually(ctx, backWithin, func() error { return node.exec(ctx, texts...) })) // it may conflict with a reservation
	}
	for _, c := range []struct {
		name    string
		happens func()
		want    []string
	}{
		{"the node that is written to is killed", func() {
			s.taking(ctx, func() { s.must(errors.Join(w.nodes[0].Kill(), w.nodes[0].restart(ctx))) })
		}, nil},
		{"all nodes are killed", func() {
			s.taking(ctx, func() {
				var all errgroup.Group
				for _, node := range w.nodes {
					all.Go(node.Kill)
				}
				s.must(all.Wait())
				err := mysqld.BootstrapCluster(ctx, w.sequence.cluster)
				for _, node := range w.nodes {
					if err != nil && !node.Running() { // as a node does that the others keep waiting for too long
						s.must(node.restart(ctx))
					}
				}
				s.must(w.together(ctx))
			})
		}, nil},
		{"a number is taken on one node, and all hear of it", func() {
			plant(w.nodes[1], "UPDATE seqproxy.sequence SET id = id + 1 WHERE name = 'photos'")
		}, []string{"GAP: sequence photos: node0: nothing explains that its row changed"}},
		{"a number is taken on one node alone", func() {
			plant(w.nodes[2], "SET wsrep_on = OFF", "UPDATE seqproxy.sequence SET id = id + 1 WHERE name = 'photos'")
		}, []string{"GAP: (only )?node2 has written down ", "GAP: sequence photos: node0: nothing explains"}},
	} {
		s.takeAll(ctx, 5)
		c.happens()
		s.takeAll(ctx, 20)
		for _, p := range w.proxies {
			s.must(p.end(syscall.SIGTERM, endsWithin))
		}
		sum, found, err := w.checkGaps(ctx, s.ops, []string{"photos"})
		s.must(err)
		text := strings.Join(found, "\n")
		if c.want == nil && text != "" {
			t.Errorf("%s: got %s", c.name, text)
		}
		for _, want := range c.want {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%s: got %q, want %q", c.name, text, want)
			}
		}
		if sum.reserved == 0 || sum.killed == 0 {
			t.Errorf("%s: %+v: want reservations, and killed processes", c.name, sum)
		}
		for _, p := range w.proxies {
			s.must(p.start(ctx))
		}
	}
}

// ask asks a proxy for a number; also what failed is noted, since it may be given.
func (s *scenario) ask(ctx context.Context, p *proxy) error {
	o, err := s.n.probe(ctx, p, "photos")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops = append(s.ops, o)
	return err
}

// takeAll takes numbers one by one from each proxy, however often they have to be asked.
func (s *scenario) takeAll(ctx context.Context, count int) {
	s.t.Helper()
	for _, p := range s.w.proxies {
		for range count {
			s.must(eventually(ctx, backWithin, func() error { return s.ask(ctx, p) }))
		}
	}
}

// taking has all proxies be asked for numbers while something happens.
func (s *scenario) taking(ctx context.Context, happens func()) {
	s.t.Helper()
	var over atomic.Bool
	var all sync.WaitGroup
	defer all.Wait()
	defer over.Store(true)
	for _, p := range s.w.proxies {
		all.Go(func() {
			for !over.Load() {
				_ = s.ask(ctx, p) // nobody has to get one meanwhile
				sleep(ctx, 5*time.Millisecond)
			}
		})
	}
	happens()
}
