package sequence_test

import (
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
	"sync"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/mysqld"
	"seqproxy/sequence"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
	"seqproxy/test/mysqltest"
	"seqproxy/test/simulation"
)

// The simulated nodes of test/simulation do without SQL what [holderStore] and [others] do with it,
// and replicate as servers do. This file runs the same steps on both, and compares the answers, and
// what each node has afterwards.

// groupSide is a group that steps are done on: of servers, or simulated.
type groupSide interface {
	// of runs f on the group as an actor sees it that writes to a node.
	of(at int, f func(g *limit.Group) string) string
	reserve(at int, name string, ceiling, n uint64, before ...func()) (last uint64, err error)
	set(at int, name string, id uint64) error
	drop(at int, name string) error
	standing(at int) *limit.Standing
	apply(at int)              // a replica applies what its source has committed
	promote(at int, late bool) // late: it has received what it has not applied yet
	applyLate(at int)
	follow(at, source int)
	readOnly(at int)
	flush(at int, yes bool)
	cut(at int, yes bool) // whether it can be reached

	// hold writes a row in a transaction, which the returned function ends.
	hold(at int, name string, id uint64) (ends func(commits bool))
	// deadlock is hold by a transaction that then wants what f has locked, and commits. A side
	// without locks commits when f says that it has claimed.
	deadlock(at int, name string, id uint64, f func(claimed func()) string) string
	// loses makes the next step on a node get no answer, until it is mended: the node has not
	// received it, or it was done. A commit is the next step once it is in hand.
	loses(at int, done bool) (inHand func(), mends func())
	stalls(at int) (mends func()) // the node is stopped
	restart(at int)               // it is killed, and starts again
}

// modelledNodes is how many nodes a group has.
const modelledNodes = 3

// realGroup is a primary and two replicas, whose replication runs only on demand.
type realGroup struct {
	t *testing.T
	*mysqltest.Group
	pools  []*sql.DB
	links  []*mysqltest.Link
	source []int  // the source of each node; -1: none
	closed []bool // nodes that are read only
	// Nodes that do not flush at commit. The test opens no new connection to write to them.
	forgets []bool
	v       sequence.Server
	chosen  []*link.Choice // each node as it would be chosen
	// How long a reservation is waited for; 0: as long as it takes.
	patience time.Duration
}

// modelledAccount cannot write where a node is read only.
const modelledAccount = "modelled"

func newRealGroup(t *testing.T) *realGroup {
	t.Helper()
	r := &realGroup{t: t, Group: mysqltest.StartGroup(t, modelledNodes)}
	right := "SLAVE MONITOR"
	if !r.Nodes[0].IsMariaDB() {
		right = "REPLICATION CLIENT"
	}
	for _, node := range r.Nodes {
		node.Exec(t, "SET sql_log_bin = 0", "CREATE USER "+modelledAccount, "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON app.* TO "+modelledAccount,
			"GRANT "+right+" ON *.* TO "+modelledAccount)
		r.links = append(r.links, mysqltest.NewLink(t, node.Addr()))
		r.pools = append(r.pools, node.DB(t, ""))
	}
	return r
}

func (r *realGroup) exec(at int, texts ...string) {
	r.t.Helper()
	r.Nodes[at].Exec(r.t, texts...)
}

func (r *realGroup) replica() string { return r.Nodes[0].Binary().Replica() }

// begin gives all nodes exactly these rows, and makes node 0 the primary.
func (r *realGroup) begin(rows map[string]uint64) {
	r.t.Helper()
	reset := []string{"RESET BINARY LOGS AND GTIDS"}
	if r.Nodes[0].IsMariaDB() {
		reset = []string{"RESET MASTER", "SET GLOBAL gtid_slave_pos = ''"}
	}
	r.source, r.closed = make([]int, modelledNodes), make([]bool, modelledNodes)
	r.forgets = make([]bool, modelledNodes)
	for i := range r.Nodes {
		r.source[i] = -1
		r.links[i].Mend()
		r.exec(i, append([]string{
			"STOP " + r.replica(), "RESET " + r.replica() + " ALL", "SET GLOBAL read_only = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 1",
			"SET sql_log_bin = 0", "DROP DATABASE IF EXISTS app",
		}, reset...)...)
	}
	texts := sequence.Schema("app", "sequence")
	for name, id := range rows {
		texts = append(texts, fmt.Sprintf("INSERT INTO app.sequence (name, id) VALUES ('%s', %d)", name, id))
	}
	r.exec(0, texts...)
	for i := 1; i < modelledNodes; i++ {
		r.exec(i, mysqld.FollowStatement(r.Nodes[0].Server))
		r.readOnly(i)
		r.source[i] = 0
		r.apply(i)
	}
	server := sequence.ServerOptions{User: modelledAccount, Database: "app"}
	for _, link := range r.links {
		server.Nodes = append(server.Nodes, sequence.Node{Addr: link.Addr()})
	}
	o := sequence.Options{Servers: []sequence.ServerOptions{server}}
	quick(&o)
	sequence.ChangeTiming(&o, func(t *sequence.Timing) { t.Redial, t.Conflict = time.Nanosecond, time.Millisecond })
	s, err := sequence.New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			r.t.Error(err)
		}
	})
	r.v = sequence.Inside(s).First()
	r.chosen = nil
	for _, is := range r.v.Survey(r.t.Context()) {
		if is.Err != nil {
			r.t.Fatal(is.Err)
		}
		r.chosen = append(r.chosen, is.Choice())
	}
}

// on runs f with a connection to a node from the time when it was chosen and writable.
func (r *realGroup) on(at int, f func(conn *sql.Conn, now *link.Choice) error) error {
	if r.forgets[at] {
		r.flush(at, true)
		defer r.flush(at, false)
	}
	if r.closed[at] {
		r.exec(at, "SET GLOBAL read_only = 0")
		defer r.exec(at, "SET GLOBAL read_only = 1")
	}
	now := r.chosen[at]
	if r.v.Current() != now {
		r.v.Settle(now)
	}
	conn, err := r.v.Conn(r.t.Context())
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it may be of no use
	if r.v.Current() != now {
		return link.ErrMoved
	}
	if r.closed[at] {
		r.exec(at, "SET GLOBAL read_only = 1")
	}
	return f(conn, now)
}

func (r *realGroup) of(at int, f func(g *limit.Group) string) (what string) {
	err := r.on(at, func(conn *sql.Conn, now *link.Choice) error {
		g := r.v.Ceilings().Group(conn, now)
		g.Nodes = eachOnce{g.Nodes, r.v.Store, now}
		what = f(g)
		return nil
	})
	if err != nil {
		return outcomeInGroup(err)
	}
	return what
}

// eachOnce looks at each node once, one after the other: nothing changes meanwhile.
type eachOnce struct {
	limit.Nodes
	*store.Store
	now *link.Choice
}

func (o eachOnce) Watch(ctx context.Context, of limit.Scope, start func(address string) *limit.Witness, ended func(*limit.Witness) bool) {
	enough := false
	for _, n := range o.Store.Nodes() {
		if n == o.now.Node {
			continue
		}
		w := start(n.Addr)
		if !enough {
			said, err := n.Ask(ctx)
			w.Looked((*limit.Standing)(&said), err)
		}
		if !enough && w.Identified() {
			limits, err := o.Limits.Read(ctx, n.Pool(), of)
			if err != nil {
				w.Err = err
			} else {
				w.Shown(limits)
			}
		}
		enough = ended(w) || enough
	}
}

func (r *realGroup) reserve(at int, name string, ceiling, n uint64, before ...func()) (last uint64, err error) {
	err = r.on(at, func(conn *sql.Conn, _ *link.Choice) error {
		if _, err := r.v.ReadRow(r.t.Context(), conn, name); err != nil { // this learns its rule
			return err
		}
		used := r.v.Rules.Of(name)
		taking := store.Taking{Name: name, N: n, Used: used, Share: r.v.Share().By(used), UpTo: limit.UpTo{Grouped: true, Ceiling: ceiling}}
		if err := r.v.LimitTaking(&taking); err != nil {
			return errors.Join(r.v.OutcomeOf(err), err)
		}
		for _, f := range before {
			f()
		}
		ctx := r.t.Context()
		if r.patience > 0 {
			short, stop := context.WithTimeout(ctx, r.patience)
			defer stop()
			ctx = short
		}
		did := r.v.Take(ctx, conn, &taking)
		if did.Taken {
			last = did.Last
			return nil
		}
		return errors.Join(did.Outcome, did.Err)
	})
	return last, err
}

func (r *realGroup) set(at int, name string, id uint64) error {
	return r.on(at, func(conn *sql.Conn, _ *link.Choice) error {
		_, err := conn.ExecContext(r.t.Context(), "INSERT INTO "+r.v.Table.Sequence+" (name, id) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = VALUES(id)", name, id)
		return err
	})
}

func (r *realGroup) drop(at int, name string) error {
	return r.on(at, func(conn *sql.Conn, _ *link.Choice) error {
		_, err := conn.ExecContext(r.t.Context(), "DELETE FROM "+r.v.Table.Sequence+" WHERE name = ?", name)
		return err
	})
}

func (r *realGroup) standing(at int) *limit.Standing {
	said, err := r.v.Nodes()[at].Ask(r.t.Context())
	if err != nil {
		return nil
	}
	said.Unflushed = "" // only a cluster differs in it
	return (*limit.Standing)(&said)
}

func (r *realGroup) apply(at int) {
	r.t.Helper()
	if of := r.source[at]; of >= 0 {
		r.Mend(r.t, at)
		r.CatchUp(r.t, at, of)
		r.Cut(r.t, at)
	}
}

func (r *realGroup) promote(at int, late bool) {
	r.t.Helper()
	if !late {
		r.Promote(r.t, at)
	} else {
		r.PromoteLate(r.t, at, r.source[at])
	}
	r.source[at], r.closed[at] = -1, false
}

func (r *realGroup) applyLate(at int) {
	r.t.Helper()
	r.ApplyLate(r.t, at)
}

func (r *realGroup) follow(at, source int) {
	r.t.Helper()
	r.Follow(r.t, at, source)
	r.Cut(r.t, at)
	r.source[at], r.closed[at] = source, true
}

func (r *realGroup) readOnly(at int) {
	r.exec(at, "SET GLOBAL read_only = 1")
	r.closed[at] = true
}

func (r *realGroup) flush(at int, yes bool) {
	r.exec(at, fmt.Sprint("SET GLOBAL innodb_flush_log_at_trx_commit = ", map[bool]int{true: 1}[yes]))
	r.forgets[at] = !yes
}

func (r *realGroup) cut(at int, yes bool) {
	if yes {
		r.links[at].Cut()
	} else {
		r.links[at].Mend()
	}
}

// contents returns the contents of a node.
func (r *realGroup) contents(at int) string {
	r.t.Helper()
	counters := make(map[string]uint64)
	rows, err := r.pools[at].Query("SELECT name, id FROM app.sequence")
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var name string
		var id uint64
		if err := rows.Scan(&name, &id); err != nil {
			r.t.Fatal(err)
		}
		counters[name] = id
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	limits, err := r.v.Limits.Read(r.t.Context(), r.pools[at], limit.Scope{All: true})
	if err != nil {
		r.t.Fatal(err)
	}
	return nodeText(counters, limits)
}

// modelGroup is a simulated group, as an actor reaches it.
type modelGroup struct {
	*simulation.Group
	actor *simulation.Actor
}

func newModelGroup(r *realGroup, rows map[string]uint64) modelGroup {
	g := simulation.NewGroup(modelledNodes, false, 1, "photos")
	g.Highest, g.Random = math.MaxUint64, nil
	m := modelGroup{g, g.Client("model")}
	for i, is := range r.chosen {
		g.Nodes[i].ID = is.Identity
	}
	_ = g.Set(m.actor, 0, rows)
	for g.ApplyAll() {
	}
	return m
}

func (m modelGroup) of(at int, f func(g *limit.Group) string) string { return f(m.As(m.actor, at)) }

func (m modelGroup) reserve(at int, name string, ceiling, n uint64, before ...func()) (uint64, error) {
	for _, f := range before {
		f()
	}
	return m.Reserve(m.actor, at, name, ceiling, n)
}

func (m modelGroup) set(at int, name string, id uint64) error {
	return m.Set(m.actor, at, map[string]uint64{name: id})
}

func (m modelGroup) drop(at int, name string) error { return m.Drop(m.actor, at, name) }

func (m modelGroup) standing(at int) *limit.Standing {
	if m.actor.Cut[at] {
		return nil
	}
	return m.Standing(at)
}

func (m modelGroup) apply(at int) {
	for m.Apply(at) {
	}
}

func (m modelGroup) promote(at int, late bool) {
	n := 0
	if late {
		n = m.Lag(at)
	}
	m.Promote(at, n)
}

func (m modelGroup) applyLate(at int)       { m.apply(at) }
func (m modelGroup) follow(at, source int)  { m.Follow(at, source) }
func (m modelGroup) readOnly(at int)        { m.Nodes[at].ReadOnly = true }
func (m modelGroup) flush(at int, yes bool) { m.Nodes[at].Forgets = !yes }
func (m modelGroup) cut(at int, yes bool)   { m.actor.Cut[at] = yes }
func (m modelGroup) contents(at int) string { return nodeText(m.Nodes[at].Holds()) }

// nodeText returns the contents of a node, for comparison.
func nodeText(counters map[string]uint64, record limit.Record) string {
	var all []string
	for name, id := range counters {
		all = append(all, fmt.Sprintf("row %s %d", name, id))
	}
	return strings.Join(append(slices.Sorted(slices.Values(all)), recordText(record)...), "\n")
}

func recordText(record limit.Record) (all []string) {
	for _, h := range record.Holders {
		all = append(all, fmt.Sprintf("holder %+v", h))
	}
	for _, l := range record.Limits {
		all = append(all, fmt.Sprintf("limit %+v", l))
	}
	slices.Sort(all)
	return all
}

// outcomeInGroup is the part of an error that both sides have to agree on.
func outcomeInGroup(err error) string {
	lost, stranger := new(limit.SeenError), new(limit.NoCopyError)
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &lost):
		return fmt.Sprintf("seen on %d of %d, newer %+v", lost.Seen, lost.Need, lost.Newer)
	case errors.As(err, &stranger):
		return "no copy of " + stranger.Holder
	case errors.Is(err, limit.ErrOvertaken):
		return "overtaken"
	case errors.Is(err, limit.ErrNotHolder), errors.Is(err, store.OutcomeNotHolder):
		return "not the holder"
	case errors.Is(err, store.OutcomeAtCeiling), simulation.IsAtCeiling(err):
		return "at the ceiling"
	case errors.Is(err, limit.ErrNoRoom), errors.Is(err, store.OutcomeNoRoom):
		return "no room"
	case link.HasCode(err, gomysql.ER_LOCK_WAIT_TIMEOUT), simulation.IsLocked(err):
		return "conflict, it is locked"
	case link.IsConflict(err), simulation.IsConflict(err):
		return "conflict"
	case errors.Is(err, sequence.ErrUnknown), simulation.IsNoRow(err):
		return "unknown"
	}
	return "failed"
}

// beforeWatch runs a function before the other nodes are asked what they show.
type beforeWatch struct {
	limit.Nodes
	first func()
}

func (n beforeWatch) Watch(ctx context.Context, of limit.Scope, start func(string) *limit.Witness, ended func(*limit.Witness) bool) {
	n.first()
	n.Nodes.Watch(ctx, of, start, ended)
}

// groupDeed is a step on a group, and its result.
type groupDeed struct {
	what string
	do   func(s groupSide) string
}

// groupScript chooses steps at random, by the model's contents.
type groupScript struct {
	rng     *rand.Rand
	model   modelGroup
	primary int
	after   int  // how many steps come before another node becomes the primary
	late    bool // it has received what it has not applied yet
	left    bool // the old primary lives on
	alone   bool // only one node is written to, and no other is asked
	done    int
}

func (c *groupScript) node() int {
	at := c.rng.IntN(modelledNodes)
	if c.alone || c.rng.IntN(4) > 0 || c.model.actor.Cut[at] {
		return c.primary
	}
	return at
}

// errUndone makes a transaction roll back.
var errUndone = errors.New("rolled back")

// next returns the next step.
func (c *groupScript) next(ctx context.Context) groupDeed {
	c.done++
	if c.done == c.after {
		return c.failOver()
	}
	rng, at := c.rng, c.node()
	name := []string{"photos", "albums", "end", "late", "late", "none"}[rng.IntN(6)]
	if rng.IntN(3) > 0 {
		name = "photos"
	}
	counters, limits := c.model.Nodes[at].Holds()
	slices.SortFunc(limits.Limits, func(a, b limit.Limit) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	position, n := counters[name], 1+uint64(rng.IntN(5))
	top := limits.Holder()
	if rng.IntN(4) == 0 {
		top.Term = uint64(rng.IntN(4))
	}
	var recorded limit.Limit
	for _, l := range limits.Limits {
		if l.Name == name && l.Giver == c.model.Nodes[at].ID {
			recorded = l
		}
	}
	what := fmt.Sprintf(" %s on node %d, term %d", name, at, top.Term)
	top.Term = max(top.Term, 1)
	mine := limit.Holder{ID: c.model.Nodes[at].ID, Term: top.Term}
	inGroup := func(what string, f func(g *limit.Group) string) groupDeed {
		return groupDeed{what, func(s groupSide) string { return s.of(at, f) }}
	}
	// Some replicas apply what there is before they are asked.
	watched := func(what string, f func(g *limit.Group) string) groupDeed {
		var applying []int
		for i := range modelledNodes {
			if i != c.primary && (c.done == 1 || rng.IntN(3) > 0) {
				applying = append(applying, i)
			}
		}
		return groupDeed{fmt.Sprintf("%s, shown on %v", what, applying), func(s groupSide) string {
			return s.of(at, func(g *limit.Group) string {
				g.Nodes = beforeWatch{g.Nodes, func() {
					for _, i := range applying {
						s.apply(i)
					}
				}}
				return f(g)
			})
		}}
	}
	x, often := rng.IntN(34), c.alone || rng.IntN(3) == 0
	if c.alone {
		x = []int{2, 2, 5, 5, 8, 9, 20, 20, 20, 26}[rng.IntN(10)]
		switch {
		case c.done < 3:
			x = 7 + c.done // a claim, and what it installs
		case name == "none":
			name = "photos"
		}
	} else if c.done < 5 { // a row without a limit, and two that get none
		name, x, at = "late", 26, 0
		if c.done > 2 {
			x, mine = 2, limit.Holder{ID: c.model.Nodes[0].ID, Term: uint64(5 - c.done)}
			position = counters[name] + 1000*uint64(c.done-3)
		}
	} else if c.done == 1 { // the first time all nodes are up
		x = 10
	}
	switch {
	case x == 0:
		scope := []limit.Scope{{}, {Name: name}, {All: true}}[rng.IntN(3)]
		return inGroup(fmt.Sprintf("read %+v", scope)+what, func(g *limit.Group) string {
			limits, err := g.Store.Record(ctx, scope)
			return fmt.Sprint(outcomeInGroup(err), recordText(limits))
		})
	case x == 1:
		return inGroup("counter"+what, func(g *limit.Group) string {
			counter, err := g.Store.Counter(ctx, name, n)
			if !counter.Fits {
				counter.Width = 0 // it means nothing
			}
			return fmt.Sprintf("%s %+v", outcomeInGroup(err), counter)
		})
	case x < 5:
		end := position + uint64(rng.IntN(3000))
		stands := position + uint64(rng.IntN(3)) - min(position, 1)
		return inGroup(fmt.Sprintf("want %d from %d", end, stands)+what, func(g *limit.Group) string {
			return outcomeInGroup(g.Store.Want(ctx, mine, name, end, stands))
		})
	case x < 8:
		end := recorded.Wanted + uint64(rng.IntN(3)) - min(recorded.Wanted, 1)
		return inGroup(fmt.Sprintf("grant %d", end)+what, func(g *limit.Group) string { return outcomeInGroup(g.Store.Grant(ctx, mine, name, end)) })
	case x == 8 && often:
		claimed := limit.Holder{ID: mine.ID, Term: top.Term + uint64(rng.IntN(2)), Complete: rng.IntN(2) == 0}
		undone := rng.IntN(4) == 0
		return inGroup(fmt.Sprintf("claim %+v, undone %v", claimed, undone)+what, func(g *limit.Group) string {
			var seen limit.Record
			err := g.Store.Transact(ctx, func(tx limit.Tx) (err error) {
				if seen, err = tx.Lock(ctx); err != nil {
					return err
				}
				if err := tx.Claim(ctx, claimed); err != nil || !undone {
					return err
				}
				return errUndone
			})
			return fmt.Sprint(outcomeInGroup(err), recordText(seen))
		})
	case x == 9 && often:
		b := &limit.Beginning{Holder: mine.ID, Term: top.Term, Open: rng.IntN(2) == 0, Wanted: make(map[string]uint64)}
		for _, l := range limits.Limits {
			b.Wanted[l.Name] = max(b.Wanted[l.Name], l.Wanted+uint64(rng.IntN(2)*rng.IntN(500)))
		}
		return inGroup(fmt.Sprintf("install %+v", *b)+what, func(g *limit.Group) string {
			sequences := 0
			err := g.Store.Transact(ctx, func(tx limit.Tx) (err error) {
				if sequences, err = tx.Install(ctx, b); err != nil {
					return err
				}
				return tx.Complete(ctx, mine)
			})
			return fmt.Sprint(outcomeInGroup(err), sequences)
		})
	case x < 12:
		over := limit.Holder{}
		if rng.IntN(4) == 0 {
			over = limit.Holder{ID: c.model.Nodes[rng.IntN(modelledNodes)].ID, Term: top.Term + uint64(rng.IntN(2))}
		}
		return watched(fmt.Sprintf("take over from %+v", over)+what, func(g *limit.Group) string {
			made, err := g.TakeOver(ctx, name, over)
			made.SeenOn = nil // addresses differ
			return fmt.Sprintf("%s %+v", outcomeInGroup(err), made)
		})
	case x < 18:
		closed := rng.IntN(3) == 0
		return watched(fmt.Sprintf("open for %d, closed %v", n, closed)+what, func(g *limit.Group) string {
			w, err := g.Open(ctx, name, n, closed)
			w.SeenOn = nil // addresses differ
			return fmt.Sprintf("%s %+v", outcomeInGroup(err), w)
		})
	case x == 18:
		return watched("still holds"+what, func(g *limit.Group) string { return outcomeInGroup(g.StillHolds(ctx)) })
	case x < 26:
		ceiling := max(recorded.Granted, 10)
		if rng.IntN(4) == 0 {
			ceiling = max(position+uint64(rng.IntN(6)), 10)
		}
		return groupDeed{fmt.Sprintf("reserve %d up to %d", n, ceiling) + what, func(s groupSide) string {
			last, err := s.reserve(at, name, ceiling, n)
			return fmt.Sprint(outcomeInGroup(err), last)
		}}
	case x < 28 && name != "none":
		if name == "late" && !c.alone && c.done > 2 {
			return groupDeed{"drop" + what, func(s groupSide) string { return outcomeInGroup(s.drop(at, name)) }}
		}
		id := position + uint64(rng.IntN(200)) - min(position, 100)
		if name == "end" {
			id = math.MaxUint64 - uint64(rng.IntN(2)*100)
		}
		return groupDeed{fmt.Sprintf("set to %d", id) + what, func(s groupSide) string { return outcomeInGroup(s.set(at, name, id)) }}
	case x == 28:
		return groupDeed{fmt.Sprintf("node %d says of itself", at), func(s groupSide) string { return fmt.Sprintf("%+v", s.standing(at)) }}
	case x == 29:
		some, yes := rng.IntN(modelledNodes), rng.IntN(2) == 0
		yes = yes || some == c.primary // a node that does not answer is not chosen
		return groupDeed{fmt.Sprintf("node %d flushes: %v", some, yes), func(s groupSide) string {
			s.flush(some, yes)
			return ""
		}}
	case x == 30:
		some, yes := rng.IntN(modelledNodes), rng.IntN(6) == 0
		yes = yes && some != c.primary
		return groupDeed{fmt.Sprintf("node %d cannot be reached: %v", some, yes), func(s groupSide) string {
			s.cut(some, yes)
			return ""
		}}
	case x == 31 && c.late && c.done > c.after:
		c.late = false
		return groupDeed{fmt.Sprintf("node %d applies what comes late", c.primary), func(s groupSide) string {
			s.applyLate(c.primary)
			return ""
		}}
	}
	some := rng.IntN(modelledNodes)
	return groupDeed{fmt.Sprintf("node %d applies", some), func(s groupSide) string {
		if some != c.primary {
			s.apply(some)
		}
		return ""
	}}
}

// failOver makes a replica the primary.
func (c *groupScript) failOver() groupDeed {
	before := c.primary
	c.primary = 1
	// The other replica follows it, unless its replication would depend on late commits.
	follows := !c.late && c.model.Lag(2) <= c.model.Lag(1)
	return groupDeed{fmt.Sprintf("node 1 becomes the primary, late %v, the old one lives on %v, node 2 follows it %v", c.late, c.left, follows), func(s groupSide) string {
		if !c.left {
			s.readOnly(before)
		}
		s.cut(1, false)
		s.promote(1, c.late)
		if follows {
			s.follow(2, 1)
		}
		return ""
	}}
}

// Random steps give the same answers on servers and simulated nodes, and the same contents: while
// replicas lag, one of them becomes the primary, applies late what it has received, and nodes do
// not flush or cannot be reached.
func TestSimulatedNodesDoWhatServersDo(t *testing.T) {
	t.Parallel()
	real := newRealGroup(t)
	outcomes := make(map[string]int)
	seeds := uint64(9)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		rows := map[string]uint64{"photos": 0, "albums": 70, "end": math.MaxUint64}
		real.begin(rows)
		c := &groupScript{rng: rand.New(rand.NewPCG(seed, 7)), model: newModelGroup(real, maps.Clone(rows)), after: 25, late: seed%3 == 0, left: seed%2 == 0}
		var done []string
		for range 60 {
			d := c.next(t.Context())
			got, want := d.do(real), d.do(c.model)
			if strings.HasPrefix(got, "failed") && strings.HasPrefix(want, "failed") {
				got = want // a server has no connection then, or no right to write
			}
			done = append(done, d.what+": "+got)
			what, _, _ := strings.Cut(d.what, " ")
			outcome := outcomeKind.FindString(got)
			outcomes[strings.TrimSpace(what+" "+outcome)]++
			if got != want {
				t.Fatalf("seed %d:\n%s\nservers say %q, the model %q", seed, strings.Join(done, "\n"), got, want)
			}
			for at := range modelledNodes {
				if got, want := real.contents(at), c.model.contents(at); got != want {
					t.Fatalf("seed %d: node %d holds\n%s\n\nsimulated\n%s\n\nafter\n%s", seed, at, got, want, strings.Join(done, "\n"))
				}
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(outcomes)) {
		t.Log(outcomes[what], what)
	}
	for _, what := range []string{"take done", "open done", "reserve done", "reserve not the holder", "reserve at the ceiling", "still seen", "want done", "grant done"} {
		if outcomes[what] < 3 && !testing.Short() {
			t.Errorf("%q came %d times: the steps show little", what, outcomes[what])
		}
	}
}

// outcomeKind is the beginning of a text of [outcomeInGroup].
var outcomeKind = regexp.MustCompile(`^(done|seen|no copy|overtaken|not the holder|at the ceiling|no room|unknown|failed)`)

// Two steps at the same time on one node have the answers and contents of one order or another:
// whatever the server locks, whichever snapshot it reads, and even if it fails one because of the
// other.
func TestStepsOnANodeAtTheSameTimeAreAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	real := newRealGroup(t)
	turned, conflicts := 0, 0
	for seed := range uint64(4) {
		rows := map[string]uint64{"photos": 0, "albums": 70, "end": math.MaxUint64}
		real.begin(rows)
		c := &groupScript{rng: rand.New(rand.NewPCG(seed, 9)), model: newModelGroup(real, maps.Clone(rows)), alone: true}
		var done []string
		for range 60 {
			both := [2]groupDeed{c.next(t.Context()), c.next(t.Context())}
			var got [2]string
			var wg sync.WaitGroup
			for i, d := range both {
				wg.Go(func() { got[i] = d.do(real) })
			}
			wg.Wait()
			stored := real.contents(0)
			done = append(done, fmt.Sprintf("%s: %s, and %s: %s", both[0].what, got[0], both[1].what, got[1]))
			var after *simulation.Group
			var could []string
			lose := [2]int{1, 1}
			for i := range got {
				if strings.HasPrefix(got[i], "conflict") {
					got[i], lose[i] = "conflict", 3
				}
			}
			const steps = 8
			for order := range 1 << steps { // which of them does the next step
				for lost := range lose[0] * lose[1] { // which step of each is not done; 0: all are
					if after != nil {
						break
					}
					m := c.model.Clone()
					var want [2]string
					var actors [2]*simulation.Actor
					for i, d := range both {
						actors[i] = m.NewActor("model", func(a *simulation.Actor) error {
							want[i] = d.do(modelGroup{m, a})
							return nil
						})
						actors[i].Lose, actors[i].Unsent = []int{lost % lose[0], lost / lose[0]}[i], true
					}
					for i := range steps {
						actors[order>>i&1].Resume()
					}
					for i, a := range actors {
						a.Run()
						if a.Lose > 0 && strings.HasPrefix(want[i], "failed") {
							want[i] = "conflict"
						} else if a.Lose > 0 {
							want[i] = "it has no such step"
						}
					}
					if lost == 0 && (order == 0 || order == 1<<steps-1) {
						could = append(could, fmt.Sprintf("%q and\n%s", want, nodeText(m.Nodes[0].Holds())))
					}
					if got == want && nodeText(m.Nodes[0].Holds()) == stored {
						after = m
						if order&1 == 1 {
							turned++
						}
						if lost > 0 {
							conflicts++
						}
					}
				}
			}
			if after == nil {
				t.Fatalf("seed %d:\n%s\nthe server holds\n%s\n\nin one order\n%s", seed, strings.Join(done, "\n"), stored, strings.Join(could, "\n\nin the other\n"))
			}
			c.model.Group, c.model.actor = after, after.Client("model")
		}
	}
	t.Logf("the second of two was first %d times, and one failed because of the other %d times", turned, conflicts)
}
