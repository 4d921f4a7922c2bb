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

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
	"seqproxy/test/mysqltest"
	"seqproxy/test/simulation"
)

// The simulated clusters of test/simulation run the same steps as a Galera cluster and a
// replication group. The tests compare their answers, and what each node has.

// clusterSide is a cluster that steps are done on.
type clusterSide interface {
	// of runs f on the cluster as an actor sees it that writes to a node.
	of(at int, f func(g *limit.Group) string) string
	reserve(at int, ceiling, n uint64) (last uint64, err error)
	holdUp(nodes ...int)          // they apply nothing until they are killed or released
	letGo(nodes ...int)           // releases them
	flush(at, how int)            // sets innodb_flush_log_at_trx_commit
	killAll()                     // kills all nodes, at once
	loseReceived(at int)          // a killed node loses what it has not applied
	begin(at int)                 // begins the cluster with one node alone
	beginFrom(first int)          // begins the cluster with a node and those after it
	kill(at int)                  // kills one node
	join(at int)                  // a node comes back
	write(first, second int) bool // both write one row at the same time; the result is whether the second may
	says(at int) string           // what a node reports of itself and of the cluster
	contents(at int) string
}

// realCluster is a cluster of servers.
type realCluster struct {
	t     *testing.T
	nodes []*mysqltest.Server
	v     sequence.Server
	pools []*sql.DB
	locks map[int]*sql.Conn // on nodes that apply nothing
}

func newRealCluster(t *testing.T, nodes []*mysqltest.Server) *realCluster {
	t.Helper()
	r := &realCluster{t: t, nodes: nodes, locks: make(map[int]*sql.Conn)}
	nodes[0].Exec(t, append(sequence.Schema("app", "sequence"), "INSERT INTO app.sequence (name) VALUES ('photos')", "CREATE TABLE app.other (id int PRIMARY KEY AUTO_INCREMENT)")...)
	server := sequence.ServerOptions{User: "root", Database: "app"}
	for _, node := range nodes {
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

// errSecondary: a node that is no primary is not written to.
var errSecondary = errors.New("the node is read only")

// on runs f with a connection to a node, once that takes part in the cluster.
func (r *realCluster) on(at int, f func(conn *sql.Conn, now *link.Choice) error) (err error) {
	eventually(r.t, "a node takes part in the cluster", func() bool {
		is := r.v.Survey(r.t.Context())[at]
		if is.Err != nil {
			return false
		}
		if said, failed := r.v.Nodes()[at].Ask(r.t.Context()); failed == nil && said.Apart == "" && !said.Writable {
			err = errSecondary
			return true
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
		return outcomeInGroup(err) != "failed" // otherwise it stored another configuration meanwhile
	})
	return err
}

func (r *realCluster) of(at int, f func(g *limit.Group) string) (what string) {
	err := r.on(at, func(conn *sql.Conn, now *link.Choice) error {
		if what = f(r.v.Ceilings().Group(conn, now)); strings.HasPrefix(what, "failed") {
			return errors.New(what)
		}
		return nil
	})
	if errors.Is(err, errSecondary) {
		return "failed"
	}
	return what
}

func (r *realCluster) reserve(at int, ceiling, n uint64) (last uint64, err error) {
	err = r.on(at, func(conn *sql.Conn, _ *link.Choice) error {
		if _, err := r.v.ReadRow(r.t.Context(), conn, "photos"); err != nil { // this learns its rule
			return err
		}
		used := r.v.Rules.Of("photos")
		taking := store.Taking{Name: "photos", N: n, Used: used, Share: r.v.Share().By(used), UpTo: limit.UpTo{Grouped: true, Ceiling: ceiling}}
		if err := r.v.LimitTaking(&taking); err != nil {
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

func (r *realCluster) flush(at, how int) {
	r.nodes[at].Exec(r.t, fmt.Sprint("SET GLOBAL innodb_flush_log_at_trx_commit = ", how))
}

func (r *realCluster) killAll() {
	for _, node := range r.nodes {
		if !node.Running() {
			continue
		}
		if err := node.Kill(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// lock keeps a lock on a node until letGo.
func (r *realCluster) lock(at int, texts ...string) {
	conn, err := r.pools[at].Conn(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() }) // the node was killed
	for _, text := range texts {
		if _, err := conn.ExecContext(r.t.Context(), text); err != nil {
			r.t.Fatalf("%s: %v", text, err)
		}
	}
	r.locks[at] = conn
}

func (r *realCluster) letGo(nodes ...int) {
	for _, at := range nodes {
		if _, err := r.locks[at].ExecContext(r.t.Context(), "COMMIT"); err != nil {
			r.t.Fatal(err)
		}
	}
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
	if _, err := r.pools[second].Exec(text); link.HasCode(err, gomysql.ER_OPTION_PREVENTS_STATEMENT) {
		return false // read only
	} else if err != nil {
		r.t.Fatal(err)
	}
	err = tx.Commit()
	if err != nil && !link.IsConflict(err) {
		r.t.Fatal(err)
	}
	return err == nil
}

// readNumbers reads the positions of a table's sequences.
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

func (r *realCluster) contents(at int) string {
	counters, err := readNumbers(r.t.Context(), r.pools[at], "app.sequence")
	if err != nil {
		return err.Error()
	}
	limits, err := r.v.Limits.Read(r.t.Context(), r.pools[at], limit.Scope{All: true})
	if err != nil {
		return err.Error()
	}
	return nodeText(counters, limits)
}

// saysText is the part of a node's report that both sides have to agree on.
func saysText(holder, apart string, writable bool, members int) string {
	return fmt.Sprintf("holder %s, apart %v, writable %v, of %d", holder, apart != "", writable, members)
}

// says asks a node, which sees so many others.
func (r *realCluster) says(at, members int) string {
	said, err := r.v.Nodes()[at].Ask(r.t.Context())
	if err != nil {
		return err.Error()
	}
	return saysText(said.Holder, said.Apart, said.Writable, members)
}

// galeraCluster is a cluster of Galera.
type galeraCluster struct {
	*realCluster
	cluster *mysqltest.Cluster
}

func newGaleraCluster(t *testing.T) galeraCluster {
	t.Helper()
	c := mysqltest.StartGalera(t, modelledNodes)
	return galeraCluster{newRealCluster(t, c.Nodes), c}
}

func (r galeraCluster) holdUp(nodes ...int) {
	for _, at := range nodes {
		r.lock(at, "SET GLOBAL wsrep_desync = ON", "FLUSH TABLES WITH READ LOCK")
	}
}

func (galeraCluster) loseReceived(int)      {} // it keeps nothing that it has not applied
func (r galeraCluster) begin(at int)        { r.cluster.BootstrapOnly(r.t, at) }
func (r galeraCluster) beginFrom(first int) { r.cluster.BootstrapFrom(r.t, first) }

func (r galeraCluster) kill(at int) {
	if err := r.nodes[at].Kill(); err != nil {
		r.t.Fatal(err)
	}
	r.cluster.AwaitRunning(r.t)
}

func (r galeraCluster) join(at int) {
	if err := r.nodes[at].Restart(); err != nil {
		r.t.Fatal(err)
	}
	r.cluster.AwaitRunning(r.t)
}

func (r galeraCluster) says(at int) string {
	_, size, err := r.nodes[at].Component(r.t.Context())
	if err != nil {
		return err.Error()
	}
	return r.realCluster.says(at, size)
}

// replicationGroup is one of MySQL's group replication.
type replicationGroup struct {
	*realCluster
	group *mysqltest.Group
}

func newReplicationGroup(t *testing.T, single bool) replicationGroup {
	t.Helper()
	g := mysqltest.StartReplicationGroup(t, modelledNodes, "--loose-group-replication-single-primary-mode="+map[bool]string{true: "ON", false: "OFF"}[single],
		// A primary then does not wait until it has applied what the old one committed.
		"--loose-group-replication-consistency=EVENTUAL", "--loose-group-replication-member-expel-timeout=0", "--replica-parallel-workers=1")
	return replicationGroup{newRealCluster(t, g.Nodes), g}
}

// holdUp makes them wait for a reader of a table that was altered. They may still be written to.
func (r replicationGroup) holdUp(nodes ...int) {
	for _, at := range nodes {
		r.lock(at, "BEGIN", "SELECT * FROM app.other")
	}
	for i, node := range r.nodes {
		if slices.Contains(nodes, i) || !node.Running() {
			continue
		}
		if _, err := r.pools[i].Exec("ALTER TABLE app.other COMMENT = 'another'"); err == nil {
			return
		} else if !link.HasCode(err, gomysql.ER_OPTION_PREVENTS_STATEMENT) {
			r.t.Fatal(err)
		}
	}
	r.t.Fatal("no node can be written to")
}

// killAll first lets each node receive what is committed. Otherwise it may lose that.
func (r replicationGroup) killAll() {
	for j, from := range r.nodes {
		for i, to := range r.nodes {
			if !from.Running() || !to.Running() {
				continue
			}
			eventually(r.t, "a node has received what another has committed", func() bool {
				var committed string
				if err := r.pools[j].QueryRow("SELECT @@global.gtid_executed").Scan(&committed); err != nil {
					r.t.Fatal(err)
				}
				var has bool
				err := r.pools[i].QueryRow("SELECT GTID_SUBSET(?, CONCAT(@@global.gtid_executed, ',', RECEIVED_TRANSACTION_SET)) "+
					"FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = 'group_replication_applier'", committed).Scan(&has)
				return err == nil && has
			})
		}
	}
	r.realCluster.killAll()
}

func (r replicationGroup) loseReceived(at int) {
	if err := r.nodes[at].Restart(); err != nil {
		r.t.Fatal(err)
	}
	r.nodes[at].Exec(r.t, "RESET REPLICA ALL FOR CHANNEL 'group_replication_applier'")
}

func (r replicationGroup) start(at int) {
	if r.nodes[at].Running() {
		return
	}
	if err := r.nodes[at].Restart(); err != nil {
		r.t.Fatal(err)
	}
}

func (r replicationGroup) begin(at int) {
	r.start(at)
	r.group.BootstrapGroup(r.t, at)
}

func (r replicationGroup) beginFrom(first int) {
	r.begin(first)
	for i := first + 1; i < len(r.nodes); i++ {
		r.join(i)
	}
}

func (r replicationGroup) kill(at int) {
	if err := r.nodes[at].Kill(); err != nil {
		r.t.Fatal(err)
	}
	r.await(at)
}

// await waits until the members agree on who they are. besides is a member that is no node here, or
// -1.
func (r replicationGroup) await(besides int) {
	var members []int
	for i := range r.nodes {
		if i != besides && r.state(i) == "ONLINE" {
			members = append(members, i)
		}
	}
	for _, i := range members {
		r.group.AwaitOnline(r.t, i, len(members))
	}
}

// state returns what a node reports of itself as a member.
func (r replicationGroup) state(at int) (state string) {
	if !r.nodes[at].Running() {
		return ""
	}
	if err := r.pools[at].QueryRow("SELECT MEMBER_STATE FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid").Scan(&state); err != nil {
		return err.Error()
	}
	return state
}

func (r replicationGroup) join(at int) {
	r.start(at)
	r.group.Rejoin(r.t, at)
	eventually(r.t, "the node is a member", func() bool { return r.state(at) == "ONLINE" })
	r.await(-1)
}

func (r replicationGroup) says(at int) string {
	var online int
	if err := r.pools[at].QueryRow("SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'").Scan(&online); err != nil {
		return err.Error()
	}
	return r.realCluster.says(at, online)
}

// modelCluster is a simulated cluster.
type modelCluster struct {
	*simulation.Group
	actor *simulation.Actor
	lags  map[int]bool // nodes that apply nothing
}

func newModelCluster(g *simulation.Group) *modelCluster {
	g.Highest = math.MaxUint64
	return &modelCluster{g, g.Client("model"), make(map[int]bool)}
}

// apply makes all nodes apply what is committed, except those that holdUp stopped.
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

func (m *modelCluster) letGo(nodes ...int) {
	for _, at := range nodes {
		delete(m.lags, at)
	}
	m.apply()
}

func (m *modelCluster) loseReceived(at int) { m.LoseReceived(at) }

func (m *modelCluster) says(at int) string {
	members, said := 0, m.Standing(at)
	for i := range m.Nodes {
		if m.IsMember(at) && m.IsMember(i) {
			members++
		}
	}
	return saysText(said.Holder, said.Apart, said.Writable, members)
}

func (m *modelCluster) flush(at, how int) {
	m.apply()
	m.Nodes[at].Forgets = how == 0 // the system keeps what was only written
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

func (m *modelCluster) contents(at int) string { return nodeText(m.Nodes[at].Holds()) }

// configuration matches a holder's name on either side.
var configuration = regexp.MustCompile(`(Galera [0-9a-f-]+, )?configuration [0-9a-f-]+( at \d+)?|replication group [0-9a-f-]+, view \d+:\d+`)

// anonymous names the holders of one side in the order in which they were met.
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

// clusterDeed is a step, and its result.
type clusterDeed struct {
	what  string
	do    func(s clusterSide) string
	takes uint64 // so many numbers
}

func quietly(what string, f func(s clusterSide)) clusterDeed {
	return clusterDeed{what: what, do: func(s clusterSide) string { f(s); return "" }}
}

func takeOverOn(at int) clusterDeed {
	return clusterDeed{what: fmt.Sprint("take over on ", at), do: func(s clusterSide) string {
		return s.of(at, func(g *limit.Group) string {
			made, err := g.TakeOver(context.Background(), "photos", limit.Holder{})
			made.SeenOn = nil // addresses differ
			return fmt.Sprintf("%s %+v", outcomeInGroup(err), made)
		})
	}}
}

func openOn(at int, n uint64) clusterDeed {
	return clusterDeed{what: fmt.Sprintf("open on %d for %d", at, n), do: func(s clusterSide) string {
		return s.of(at, func(g *limit.Group) string {
			w, err := g.Open(context.Background(), "photos", n, false)
			w.SeenOn = nil // addresses differ
			return fmt.Sprintf("%s %+v", outcomeInGroup(err), w)
		})
	}}
}

// takeOn reserves up to what is granted there.
func takeOn(at int, n uint64) clusterDeed {
	return clusterDeed{takes: n, what: fmt.Sprintf("take %d on %d", n, at), do: func(s clusterSide) string {
		granted := uint64(0)
		s.of(at, func(g *limit.Group) string {
			limits, _ := g.Store.Record(context.Background(), limit.Scope{All: true})
			for _, l := range limits.Limits {
				granted = max(granted, l.Granted)
			}
			return ""
		})
		last, err := s.reserve(at, cmp.Or(granted, 1000), n)
		return fmt.Sprint(outcomeInGroup(err), " ", last)
	}}
}

// writeOn writes one row on two nodes at the same time.
func writeOn(first, second int) clusterDeed {
	return clusterDeed{what: fmt.Sprintf("write one row on %d and %d", first, second), do: func(s clusterSide) string { return fmt.Sprint(s.write(first, second)) }}
}

// clusterPair is a cluster of servers and a simulated one.
type clusterPair struct {
	t     *testing.T
	real  clusterSide
	model *modelCluster
	names [2]anonymous
	up    []int // nodes that run
	done  []string
	given map[uint64]bool
}

func newClusterPair(t *testing.T, real clusterSide, model *simulation.Group) *clusterPair {
	t.Helper()
	return &clusterPair{t: t, real: real, model: newModelCluster(model), names: [2]anonymous{{}, {}}, up: []int{0, 1, 2}, given: make(map[uint64]bool)}
}

// run does steps on both, and compares their answers and contents.
func (p *clusterPair) run(deeds ...clusterDeed) {
	p.t.Helper()
	for _, d := range deeds {
		got, want := p.names[0].text(d.do(p.real)), p.names[1].text(d.do(p.model))
		if strings.HasPrefix(got, "failed") && strings.HasPrefix(want, "failed") {
			got = want // a server has no connection then
		}
		p.done = append(p.done, d.what+": "+got)
		if got != want {
			p.t.Fatalf("%s\nthe servers say %q, the model %q", strings.Join(p.done, "\n"), got, want)
		}
		if last := uint64(0); d.takes > 0 {
			if _, err := fmt.Sscanf(got, "done %d", &last); err == nil {
				for n := last - d.takes + 1; n <= last; n++ {
					if p.given[n] {
						p.t.Fatalf("%s\n%d comes twice", strings.Join(p.done, "\n"), n)
					}
					p.given[n] = true
				}
			}
		}
		for _, at := range p.up {
			p.same(fmt.Sprintf("node %d holds", at), func() string { return p.real.contents(at) }, func() string { return p.model.contents(at) })
			p.same(fmt.Sprintf("node %d says", at), func() string { return p.real.says(at) }, func() string { return p.model.says(at) })
		}
	}
}

// same compares two reports until they are equal: a node applies in a moment what another has
// committed.
func (p *clusterPair) same(what string, real, model func() string) {
	p.t.Helper()
	var got, want string
	for range 500 {
		p.model.apply()
		if got, want = p.names[0].text(real()), p.names[1].text(model()); got == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Fatalf("%s\n%s\n%s\n\nof the model\n%s", strings.Join(p.done, "\n"), what, got, want)
}

// goesOn makes a node that was written to before the holder, and takes numbers.
func goesOn(at int) []clusterDeed {
	return []clusterDeed{takeOn(at, 5), takeOverOn(at), openOn(at, 10), takeOn(at, 5)}
}

// Nodes of a simulated cluster do what those of a Galera cluster do when they die, come back, lag,
// and have not flushed.
func TestSimulatedClustersDoWhatGaleraDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills a cluster several times")
	}
	p := newClusterPair(t, newGaleraCluster(t), simulation.NewGroup(modelledNodes, true, 1, "photos"))
	all := p.up
	p.run(takeOn(0, 5), takeOverOn(0), openOn(0, 10), takeOn(0, 5), takeOn(1, 5), takeOverOn(2), takeOn(2, 5))
	// Of two writers of one row on two nodes, one is first.
	p.run(writeOn(0, 1))
	// A node goes and comes back. Each time another configuration is the holder.
	p.up = all[:2]
	p.run(quietly("kill 2", func(s clusterSide) { s.kill(2) }), takeOn(0, 5), takeOverOn(0), openOn(0, 10), takeOn(0, 5), takeOn(1, 7))
	p.up = all
	p.run(quietly("2 comes back", func(s clusterSide) { s.join(2) }), takeOn(2, 5), takeOverOn(2), openOn(2, 10), takeOn(2, 5), takeOn(0, 5))
	// All die. Two of them lag, and begin again.
	p.run(quietly("1 and 2 are held up", func(s clusterSide) { s.holdUp(1, 2) }), takeOn(0, 50), takeOn(0, 60), takeOn(0, 70))
	p.up = all[1:]
	p.run(quietly("all are killed, and 1 and 2 begin again", func(s clusterSide) { s.killAll(); s.beginFrom(1) }),
		takeOn(1, 5), takeOverOn(1), openOn(1, 10), takeOn(1, 5), takeOn(2, 5))
	// Both die. The one that begins again had not flushed at commit: where the system kept what was
	// written, nothing is lost; otherwise the node has its state of some moment. Alone it gives
	// nothing.
	for _, how := range []int{2, 0} {
		p.run(quietly(fmt.Sprint("2 flushes as ", how), func(s clusterSide) { s.flush(2, how) }), takeOn(1, 10), takeOn(1, 20), takeOn(1, 30), takeOn(1, 40))
		p.real.killAll()
		p.real.begin(2)
		before, could := p.model.Group, make(map[string]*modelCluster)
		for seed := range uint64(64) { // what it lost is left to chance
			g := before.Clone()
			g.Random = rand.New(rand.NewPCG(seed, 1))
			m := &modelCluster{g, g.Client("model"), make(map[int]bool)}
			m.killAll()
			m.begin(2)
			m.Nodes[2].Forgets = false
			m.apply()
			could[p.names[1].text(m.contents(2))] = m
		}
		has := p.names[0].text(p.real.contents(2))
		if p.model = could[has]; p.model == nil || how == 2 && len(could) != 1 {
			t.Fatalf("%s\nafter a crash Galera holds\n%s\n\nthe model could hold\n%s", strings.Join(p.done, "\n"), has, strings.Join(slices.Sorted(maps.Keys(could)), "\n\n"))
		}
		t.Logf("flush %d: it holds one of %d states", how, len(could))
		p.up = all[2:]
		p.run(takeOn(2, 5), takeOverOn(2))
		if how == 0 {
			break // the other one has more, and does not come back
		}
		p.up = all[1:]
		p.run(quietly("1 comes back", func(s clusterSide) { s.join(1) }), takeOverOn(2), openOn(2, 10), takeOn(2, 5), takeOn(1, 5))
	}
	t.Log(strings.Join(p.done, "\n"))
}

// The same for MySQL's group replication with a single primary.
func TestSimulatedClustersDoWhatAReplicationGroupWithAPrimaryDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills a group several times")
	}
	t.Parallel()
	p := newClusterPair(t, newReplicationGroup(t, true), simulation.NewReplicationGroup(modelledNodes, true, 1, "photos"))
	all := p.up
	p.run(goesOn(0)...)
	p.run(takeOn(1, 5), writeOn(0, 1))
	// The primary dies. The next one is the first of the others, and stays it.
	p.up = all[1:]
	p.run(quietly("kill 0", func(s clusterSide) { s.kill(0) }))
	p.run(goesOn(1)...)
	p.up = all
	p.run(quietly("0 comes back", func(s clusterSide) { s.join(0) }))
	p.run(goesOn(1)...)
	p.run(takeOn(0, 5))
	// The next primary has not applied what the old one committed, and gives nothing of that.
	p.run(quietly("0 and 2 are held up", func(s clusterSide) { s.holdUp(0, 2) }), takeOn(1, 50), takeOn(1, 60))
	p.up = []int{0, 2}
	p.run(quietly("kill 1", func(s clusterSide) { s.kill(1) }), takeOn(0, 5), takeOverOn(0),
		quietly("they are let go", func(s clusterSide) { s.letGo(0, 2) }))
	p.run(goesOn(0)...)
	p.up = all
	p.run(quietly("1 comes back", func(s clusterSide) { s.join(1) }))
	p.run(goesOn(0)...)
	p.crash(0, 2, 1, false)
	p.up = all
	p.run(quietly("0 comes back", func(s clusterSide) { s.join(0) }))
	p.run(goesOn(2)...)
	p.crash(2, 0, 1, true) // 2 has more, and does not come back
	t.Log(strings.Join(p.done, "\n"))
}

// The same for group replication in which all nodes are primaries.
func TestSimulatedClustersDoWhatAReplicationGroupOfPrimariesDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills a group several times")
	}
	t.Parallel()
	p := newClusterPair(t, newReplicationGroup(t, false), simulation.NewReplicationGroup(modelledNodes, false, 1, "photos"))
	all := p.up
	p.run(goesOn(0)...)
	p.run(takeOn(1, 5), takeOverOn(2), takeOn(2, 5), writeOn(0, 1))
	// A node that lags takes no number that another one has taken.
	p.run(quietly("1 is held up", func(s clusterSide) { s.holdUp(1) }), takeOn(0, 7), takeOn(1, 5), takeOn(2, 5),
		quietly("it is let go", func(s clusterSide) { s.letGo(1) }), takeOn(1, 5))
	// Nor does it where it lags in the next configuration.
	p.run(quietly("1 is held up", func(s clusterSide) { s.holdUp(1) }), takeOn(0, 7), takeOn(2, 7))
	p.up = all[1:]
	p.run(quietly("kill 0", func(s clusterSide) { s.kill(0) }), takeOn(1, 5), takeOverOn(1),
		quietly("it is let go", func(s clusterSide) { s.letGo(1) }))
	p.run(goesOn(1)...)
	p.run(takeOn(2, 5))
	p.up = all
	p.run(quietly("0 comes back", func(s clusterSide) { s.join(0) }))
	p.run(goesOn(0)...)
	p.crash(0, 2, 1, false)
	p.up = all
	p.run(quietly("0 comes back", func(s clusterSide) { s.join(0) }))
	p.run(goesOn(2)...)
	p.crash(2, 0, 1, true) // 2 has more, and does not come back
	t.Log(strings.Join(p.done, "\n"))
}

// crash makes all nodes of a replication group die at once, while written, which is written to, has
// applied what the others have only received. again begins again, alone, and other comes back.
func (p *clusterPair) crash(written, again, other int, loses bool) {
	p.t.Helper()
	p.run(quietly(fmt.Sprintf("%d and %d are held up", again, other), func(s clusterSide) { s.holdUp(again, other) }),
		takeOn(written, 50), takeOn(written, 60), takeOn(written, 70))
	p.up = []int{again}
	p.run(quietly(fmt.Sprintf("all are killed, what was received is lost: %v, and %d begins again", loses, again), func(s clusterSide) {
		s.killAll()
		if loses {
			s.loseReceived(again)
			s.loseReceived(other)
		}
		s.begin(again)
	}), takeOn(again, 5), takeOverOn(again)) // alone it gives nothing
	p.up = append(p.up, other)
	p.run(quietly(fmt.Sprint(other, " comes back"), func(s clusterSide) { s.join(other) }))
	p.run(goesOn(again)...)
	p.run(takeOn(other, 5))
}
