package sequence_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
	"seqproxy/test/mysqltest"
	"seqproxy/test/simulation"
)

// The simulated clusters of test/simulation, beside a Galera cluster: both are done the same to, and
// what they answer, and what each node holds, is compared.

// clusterSide is a cluster that steps are done on.
type clusterSide interface {
	// of has f decide about the cluster as somebody sees it who writes to a node.
	of(at int, f func(g *limit.Group) string) string
	reserve(at int, ceiling, n uint64) (last uint64, err error)
	holdUp(nodes ...int)          // they apply nothing until they are killed
	flush(at, how int)            // as innodb_flush_log_at_trx_commit
	killAll()                     // all nodes, at once
	begin(at int)                 // the cluster, with one node alone
	beginFrom(first int)          // the cluster, with a node and those after it
	kill(at int)                  // one node
	join(at int)                  // one comes back
	write(first, second int) bool // both write one row at the same time; whether the second one may
	held(at int) string
}

// realCluster is one of servers.
type realCluster struct {
	t *testing.T
	*mysqltest.Cluster
	v     sequence.Server
	pools []*sql.DB
}

func newRealCluster(t *testing.T) *realCluster {
	t.Helper()
	c := mysqltest.StartGalera(t, modelledNodes)
	r := &realCluster{t: t, Cluster: c}
	c.Nodes[0].Exec(t, append(sequence.Schema("app", "sequence"), "INSERT INTO app.sequence (name) VALUES ('photos')")...)
	server := sequence.ServerOptions{User: "root", Database: "app"}
	for _, node := range c.Nodes {
		server.Nodes = append(server.Nodes, sequence.Node{Addr: node.Addr()})
		r.pools = append(r.pools, node.DB(t, ""))
	}
	o := sequence.Options{Servers: []sequence.ServerOptions{server}}
	quick(&o)
	sequence.ChangeTiming(&o, func(t *sequence.Timing) { t.Redial, t.Conflict = time.Nanosecond, time.Millisecond })
	s, err := sequence.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // nodes are gone
	r.v = sequence.Inside(s).First()
	return r
}

// on has f use a connection to a node, once that takes part in the cluster.
func (r *realCluster) on(at int, f func(conn *sql.Conn, now *link.Choice) error) (err error) {
	eventually(r.t, "a node takes part in the cluster", func() bool {
		is := r.v.Survey(r.t.Context())[at]
		if is.Err != nil {
			return false
		}
		now := is.Choice()
		r.v.Settle(now)
		conn, failed := r.v.Conn(r.t.Context())
		if failed != nil {
			return false
		}
		defer func() { _ = conn.Close() }() // the node may be gone
		if r.v.Current() != now || r.v.LeadsTo(r.t.Context(), conn, now) != nil {
			return false
		}
		err = f(conn, now)
		return outcomeInGroup(err) != "failed" // else it stored another configuration meanwhile
	})
	return err
}

func (r *realCluster) of(at int, f func(g *limit.Group) string) (what string) {
	_ = r.on(at, func(conn *sql.Conn, now *link.Choice) error {
		if what = f(r.v.Ceilings().Group(conn, now)); strings.HasPrefix(what, "failed") {
			return errors.New(what)
		}
		return nil
	})
	return what
}

func (r *realCluster) reserve(at int, ceiling, n uint64) (last uint64, err error) {
	err = r.on(at, func(conn *sql.Conn, _ *link.Choice) error {
		if _, err := r.v.ReadRow(r.t.Context(), conn, "photos"); err != nil { // which learns its rule
			return err
		}
		used := r.v.Rules.Of("photos")
		taking := store.Taking{Name: "photos", N: n, Used: used, Share: r.v.Share().By(used), UpTo: limit.UpTo{Grouped: true, Ceiling: ceiling}}
		if err := r.v.Prepare(&taking); err != nil {
			return errors.Join(r.v.OutcomeOf(err), err)
		}
		did := r.v.Take(r.t.Context(), conn, &taking)
		if last = did.Last; did.Taken {
			return nil
		}
		return errors.Join(did.Outcome, did.Err)
	})
	return last, err
}

func (r *realCluster) holdUp(nodes ...int) {
	for _, at := range nodes {
		conn, err := r.pools[at].Conn(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = conn.Close() }) // the node was killed
		for _, text := range []string{"SET GLOBAL wsrep_desync = ON", "FLUSH TABLES WITH READ LOCK"} {
			if _, err := conn.ExecContext(r.t.Context(), text); err != nil {
				r.t.Fatalf("%s: %v", text, err)
			}
		}
	}
}

func (r *realCluster) flush(at, how int) {
	r.Nodes[at].Exec(r.t, fmt.Sprint("SET GLOBAL innodb_flush_log_at_trx_commit = ", how))
}

func (r *realCluster) killAll() {
	for _, node := range r.Nodes {
		if !node.Running() {
			continue
		}
		if err := node.Kill(); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *realCluster) begin(at int)        { r.BootstrapOnly(r.t, at) }
func (r *realCluster) beginFrom(first int) { r.BootstrapFrom(r.t, first) }

func (r *realCluster) kill(at int) {
	if err := r.Nodes[at].Kill(); err != nil {
		r.t.Fatal(err)
	}
	r.AwaitRunning(r.t)
}

func (r *realCluster) join(at int) {
	if err := r.Nodes[at].Restart(); err != nil {
		r.t.Fatal(err)
	}
	r.AwaitRunning(r.t)
}

func (r *realCluster) write(first, second int) bool {
	tx, err := r.pools[first].Begin()
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // it may be committed
	const text = "UPDATE app.sequence SET id = id + 1000 WHERE name = 'photos'"
	if _, err := tx.Exec(text); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.pools[second].Exec(text); err != nil {
		r.t.Fatal(err)
	}
	err = tx.Commit()
	if err != nil && !link.IsConflict(err) {
		r.t.Fatal(err)
	}
	return err == nil
}

// readNumbers reads where the sequences of a table stand.
func readNumbers(ctx context.Context, on *sql.DB, table string) (all map[string]uint64, err error) {
	rows, err := on.QueryContext(ctx, "SELECT name, id FROM "+table)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all = make(map[string]uint64)
	for rows.Next() {
		var name string
		var n uint64
		if err := rows.Scan(&name, &n); err != nil {
			return nil, err
		}
		all[name] = n
	}
	return all, rows.Err()
}

func (r *realCluster) held(at int) string {
	counters, err := readNumbers(r.t.Context(), r.pools[at], "app.sequence")
	if err != nil {
		return err.Error()
	}
	known, err := r.v.Limits.Read(r.t.Context(), r.pools[at], limit.Scope{All: true})
	if err != nil {
		return err.Error()
	}
	return nodeText(counters, known)
}

// modelCluster is a simulated one.
type modelCluster struct {
	*simulation.Group
	actor *simulation.Actor
	lags  map[int]bool // nodes that apply nothing
}

func newModelCluster() *modelCluster {
	g := simulation.NewGroup(modelledNodes, true, 1, "photos")
	g.Highest = math.MaxUint64
	return &modelCluster{g, g.Client("model"), make(map[int]bool)}
}

// apply has all nodes have what is committed, but for those that are held up.
func (m *modelCluster) apply() {
	for i := range m.Nodes {
		for !m.lags[i] && m.Apply(i) {
		}
	}
}

func (m *modelCluster) of(at int, f func(g *limit.Group) string) string {
	m.apply()
	g := m.As(m.actor, at)
	g.Nodes = beforeWatch{g.Nodes, m.apply}
	return f(g)
}

func (m *modelCluster) reserve(at int, ceiling, n uint64) (uint64, error) {
	m.apply()
	return m.Reserve(m.actor, at, "photos", ceiling, n)
}

func (m *modelCluster) holdUp(nodes ...int) {
	m.apply()
	for _, at := range nodes {
		m.lags[at] = true
	}
}

func (m *modelCluster) flush(at, how int) {
	m.apply()
	m.Nodes[at].Forgets = how == 0 // the system has what was only written
}

func (m *modelCluster) killAll() {
	m.apply()
	for i := range m.Nodes {
		m.Crash(i)
	}
	clear(m.lags)
}

func (m *modelCluster) begin(at int) { m.Group.Bootstrap(at, at) }
func (m *modelCluster) beginFrom(first int) {
	m.begin(first)
	for i := first + 1; i < len(m.Nodes); i++ {
		m.join(i)
	}
}

func (m *modelCluster) kill(at int) { m.apply(); m.Crash(at) }
func (m *modelCluster) join(at int) { m.apply(); m.Join(at) }

func (m *modelCluster) write(first, second int) bool {
	m.apply()
	counters, _ := m.Nodes[first].Holds()
	to := map[string]uint64{"photos": counters["photos"] + 1000}
	commits := m.Begin(first, to)
	return m.Set(m.actor, second, to) == nil && commits() == nil
}

func (m *modelCluster) held(at int) string { return nodeText(m.Nodes[at].Holds()) }

// configuration is how either side calls a holder.
var configuration = regexp.MustCompile(`(Galera [0-9a-f-]+, )?configuration [0-9a-f-]+( at \d+)?`)

// anonymous calls the holders of one side by the order in which they were met.
type anonymous map[string]string

func (a anonymous) text(s string) string {
	s = configuration.ReplaceAllStringFunc(s, func(is string) string {
		if a[is] == "" {
			a[is] = fmt.Sprint("holder ", len(a)+1)
		}
		return a[is]
	})
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// clusterDeed is a step, and what comes of it.
type clusterDeed struct {
	what string
	do   func(s clusterSide) string
}

func quietly(what string, f func(s clusterSide)) clusterDeed {
	return clusterDeed{what, func(s clusterSide) string { f(s); return "" }}
}

func adoptOn(at int) clusterDeed {
	return clusterDeed{fmt.Sprint("adopt on ", at), func(s clusterSide) string {
		return s.of(at, func(g *limit.Group) string {
			made, err := g.TakeOver(context.Background(), "photos", limit.Holder{})
			made.SeenOn = nil // addresses
			return fmt.Sprintf("%s %+v", outcomeInGroup(err), made)
		})
	}}
}

func openOn(at int, n uint64) clusterDeed {
	return clusterDeed{fmt.Sprintf("open on %d for %d", at, n), func(s clusterSide) string {
		return s.of(at, func(g *limit.Group) string {
			w, err := g.Open(context.Background(), "photos", n, false)
			w.SeenOn = nil // addresses
			return fmt.Sprintf("%s %+v", outcomeInGroup(err), w)
		})
	}}
}

// takeOn reserves up to what is granted there.
func takeOn(at int, n uint64) clusterDeed {
	return clusterDeed{fmt.Sprintf("take %d on %d", n, at), func(s clusterSide) string {
		granted := uint64(0)
		s.of(at, func(g *limit.Group) string {
			known, _ := g.Store.Record(context.Background(), limit.Scope{All: true})
			for _, l := range known.Limits {
				granted = max(granted, l.Granted)
			}
			return ""
		})
		last, err := s.reserve(at, cmp.Or(granted, 1000), n)
		return fmt.Sprint(outcomeInGroup(err), " ", last)
	}}
}

// Nodes of a simulated cluster do what those of a Galera cluster do when they die, come back, lag,
// and have not flushed.
func TestSimulatedClustersDoWhatGaleraDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills a cluster several times")
	}
	real, model := newRealCluster(t), newModelCluster()
	names := [2]anonymous{{}, {}}
	all := []int{0, 1, 2}
	up := all
	var done []string
	run := func(deeds ...clusterDeed) {
		t.Helper()
		for _, d := range deeds {
			got, want := names[0].text(d.do(real)), names[1].text(d.do(model))
			done = append(done, d.what+": "+got)
			if got != want {
				t.Fatalf("%s\nGalera says %q, the model %q", strings.Join(done, "\n"), got, want)
			}
			for _, at := range up {
				var got, want string
				for range 500 { // a node applies in a moment what another has committed
					model.apply()
					if got, want = names[0].text(real.held(at)), names[1].text(model.held(at)); got == want {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if got != want {
					t.Fatalf("%s\nnode %d of Galera holds\n%s\n\nof the model\n%s", strings.Join(done, "\n"), at, got, want)
				}
			}
		}
	}
	run(takeOn(0, 5), adoptOn(0), openOn(0, 10), takeOn(0, 5), takeOn(1, 5), adoptOn(2), takeOn(2, 5))
	// Of two who write one row on two nodes, one is first.
	run(clusterDeed{"write one row on 0 and 1", func(s clusterSide) string { return fmt.Sprint(s.write(0, 1)) }})
	// A node goes and comes back. Each time another configuration is the holder.
	up = all[:2]
	run(quietly("kill 2", func(s clusterSide) { s.kill(2) }), takeOn(0, 5), adoptOn(0), openOn(0, 10), takeOn(0, 5), takeOn(1, 7))
	up = all
	run(quietly("2 comes back", func(s clusterSide) { s.join(2) }), takeOn(2, 5), adoptOn(2), openOn(2, 10), takeOn(2, 5), takeOn(0, 5))
	// All die. Two of them lag, and begin again.
	run(quietly("1 and 2 are held up", func(s clusterSide) { s.holdUp(1, 2) }), takeOn(0, 50), takeOn(0, 60), takeOn(0, 70))
	up = all[1:]
	run(quietly("all are killed, and 1 and 2 begin again", func(s clusterSide) { s.killAll(); s.beginFrom(1) }),
		takeOn(1, 5), adoptOn(1), openOn(1, 10), takeOn(1, 5), takeOn(2, 5))
	// Both die. The one that begins again had not flushed at commit: where the system had what was
	// written, nothing is lost; else it has what it had at some moment. Alone it gives nothing.
	for _, how := range []int{2, 0} {
		run(quietly(fmt.Sprint("2 flushes as ", how), func(s clusterSide) { s.flush(2, how) }), takeOn(1, 10), takeOn(1, 20), takeOn(1, 30), takeOn(1, 40))
		real.killAll()
		real.begin(2)
		before, could := model.Group, make(map[string]*modelCluster)
		for seed := range uint64(64) { // what it lost is left to chance
			g := before.Clone()
			g.Random = rand.New(rand.NewPCG(seed, 1))
			m := &modelCluster{g, g.Client("model"), make(map[int]bool)}
			m.killAll()
			m.begin(2)
			m.Nodes[2].Forgets = false
			m.apply()
			could[names[1].text(m.held(2))] = m
		}
		has := names[0].text(real.held(2))
		if model = could[has]; model == nil || how == 2 && len(could) != 1 {
			t.Fatalf("%s\nafter a crash Galera holds\n%s\n\nthe model could hold\n%s", strings.Join(done, "\n"), has, strings.Join(slices.Sorted(maps.Keys(could)), "\n\n"))
		}
		t.Logf("flush %d: it holds one of %d states", how, len(could))
		up = all[2:]
		run(takeOn(2, 5), adoptOn(2))
		if how == 0 {
			break // the other one has more, and does not come back
		}
		up = all[1:]
		run(quietly("1 comes back", func(s clusterSide) { s.join(1) }), adoptOn(2), openOn(2, 10), takeOn(2, 5), takeOn(1, 5))
	}
	t.Log(strings.Join(done, "\n"))
}
