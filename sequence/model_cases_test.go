package sequence_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"seqproxy/sequence/limit"
	"seqproxy/test/mysqltest"
)

// A modelCase is what happens to a group. The simulated nodes and servers answer the same at each
// step, and have the same contents afterwards.
type modelCase struct {
	name  string
	long  bool // only CI tries it
	steps []groupDeed
}

// until is how long a takeover waits for rows: longer than a server waits for a lock, which it
// checks once a second, and shorter than two such waits.
const until = 3500 * time.Millisecond

func deedOn(what string, f func(s groupSide) string) groupDeed { return groupDeed{what, f} }

func quiet(what string, f func(s groupSide)) groupDeed {
	return groupDeed{what, func(s groupSide) string { f(s); return "" }}
}

// takesOver makes a node become the holder. Others apply what it has claimed before they are asked,
// and something else may happen then.
func takesOver(at int, meanwhile ...func(s groupSide)) groupDeed {
	return deedOn(fmt.Sprintf("node %d takes over", at), func(s groupSide) string { return takeOver(s, at, meanwhile...) })
}

func takeOver(s groupSide, at int, meanwhile ...func(s groupSide)) string {
	return s.of(at, func(g *limit.Group) string {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		g.Nodes = beforeWatch{g.Nodes, func() {
			applyOthers(s, at)
			time.AfterFunc(until, stop)
			for _, f := range meanwhile {
				f(s)
			}
		}}
		made, err := g.TakeOver(ctx, "photos", limit.Holder{})
		made.SeenOn = nil // addresses differ
		return fmt.Sprintf("%s %+v", outcomeInGroup(err), made)
	})
}

func applyOthers(s groupSide, at int) {
	for i := range modelledNodes {
		if i != at {
			s.apply(i)
		}
	}
}

// opensAWindow makes the holder go further. With shown the others apply that before they are asked.
func opensAWindow(at int, shown bool) groupDeed { return opensAWindowFor(at, 10, shown) }

func opensAWindowFor(at int, n uint64, shown bool) groupDeed {
	return deedOn(fmt.Sprintf("node %d opens a window for %d, which the others show: %v", at, n, shown), func(s groupSide) string {
		return s.of(at, func(g *limit.Group) string {
			if shown {
				g.Nodes = beforeWatch{g.Nodes, func() { applyOthers(s, at) }}
			}
			w, err := g.Open(context.Background(), "photos", n, false)
			w.SeenOn = nil // addresses differ
			return fmt.Sprintf("%s %+v", outcomeInGroup(err), w)
		})
	})
}

const caseWindow = 1 << 16 // of the first holder

func reserves(at int, n uint64) groupDeed { return reservesUpTo(at, n, caseWindow) }

func reservesUpTo(at int, n, ceiling uint64) groupDeed {
	return deedOn(fmt.Sprintf("node %d reserves %d up to %d", at, n, ceiling), func(s groupSide) string {
		last, err := s.reserve(at, "photos", ceiling, n)
		return fmt.Sprint(outcomeInGroup(err), " ", last)
	})
}

// unanswered makes a reservation get no answer.
func unanswered(what string, loses func(s groupSide) (mends func())) groupDeed {
	return deedOn("node 0 reserves 7, "+what, func(s groupSide) string {
		var mends func()
		_, err := s.reserve(0, "photos", caseWindow, 7, func() { mends = loses(s) })
		mends()
		return fmt.Sprint("it fails: ", err != nil)
	})
}

// claims makes node 0 claim a term, and get no answer when it commits that.
func claims(done bool) groupDeed {
	return deedOn(fmt.Sprintf("node 0 claims term 5, its commit is done: %v", done), func(s groupSide) string {
		inHand, mends := s.loses(0, done)
		what := s.of(0, func(g *limit.Group) string {
			var once sync.Once
			err := g.Store.Transact(context.Background(), func(tx limit.Tx) error {
				if _, err := tx.Lock(context.Background()); err != nil {
					return err
				}
				err := tx.Claim(context.Background(), limit.Holder{ID: g.Chosen.Holder, Term: 5})
				once.Do(inHand)
				return err
			})
			return fmt.Sprint("it fails: ", err != nil)
		})
		mends()
		return what
	})
}

// begun is a group whose first node is the holder, with a window that the others show.
func begun(more ...groupDeed) []groupDeed {
	return append([]groupDeed{takesOver(0), opensAWindow(0, true), reserves(0, 5), quiet("all apply", func(s groupSide) { applyOthers(s, 0) })}, more...)
}

func sets(at int, id uint64) groupDeed {
	return deedOn(fmt.Sprintf("the row on node %d is set to %d", at, id), func(s groupSide) string { return outcomeInGroup(s.set(at, "photos", id)) })
}

// holding runs steps while a transaction has written the row and not committed it.
func holding(id uint64, commits bool, steps ...groupDeed) groupDeed {
	return deedOn(fmt.Sprintf("somebody writes %d, and commits that: %v", id, commits), func(s groupSide) string {
		ends := s.hold(0, "photos", id)
		var all []string
		for _, d := range steps {
			all = append(all, d.what+": "+d.do(s))
		}
		ends(commits)
		return strings.Join(all, "; ")
	})
}

// reads is a snapshot.
func reads() groupDeed {
	return deedOn("node 0 reads where the row stands", func(s groupSide) string {
		return s.of(0, func(g *limit.Group) string {
			counter, err := g.Store.Counter(context.Background(), "photos", 1)
			return fmt.Sprintf("%s %+v", outcomeInGroup(err), counter)
		})
	})
}

// wants is an INSERT ... SELECT of the row, and an UPDATE of another one.
func wants(end uint64) groupDeed {
	return deedOn(fmt.Sprint("node 0 wants ", end), func(s groupSide) string {
		return s.of(0, func(g *limit.Group) string {
			return outcomeInGroup(g.Store.Want(context.Background(), limit.Holder{ID: g.Chosen.Holder, Term: 1}, "photos", end, 0))
		})
	})
}

func grants(end uint64) groupDeed {
	return deedOn(fmt.Sprint("node 0 is granted ", end), func(s groupSide) string {
		return s.of(0, func(g *limit.Group) string {
			return outcomeInGroup(g.Store.Grant(context.Background(), limit.Holder{ID: g.Chosen.Holder, Term: 1}, "photos", end))
		})
	})
}

// failOver makes node 1 the primary. Node 2 follows it.
func failOver(late bool) groupDeed {
	return quiet(fmt.Sprintf("node 1 becomes the primary, and has received what it has not applied: %v", late), func(s groupSide) {
		s.promote(1, late)
		s.follow(2, 1)
	})
}

var modelCases = []modelCase{
	{name: "a snapshot does not see what is not committed", steps: begun(holding(500, true, reads(), grants(100)), reads(), reserves(0, 5))},
	{name: "a snapshot does not see what was rolled back", long: true, steps: begun(holding(500, false, reads()), reads(), reserves(0, 5))},
	{name: "a reservation waits for who has the row, and gives up: 1205", long: true, steps: begun(holding(500, true, reserves(0, 5)), reserves(0, 5))},
	{name: "a read that locks waits for who has the row: 1205", long: true, steps: begun(holding(500, false, wants(70_000)), wants(70_000))},
	{name: "a takeover waits for who has the row, and keeps its claim: 1205", long: true, steps: []groupDeed{holding(500, true, takesOver(0)), takesOver(0), opensAWindow(0, true)}},
	{name: "a read that locks sees what was committed after its holder claimed", steps: []groupDeed{
		takesOver(0, func(s groupSide) { _ = s.set(0, "photos", 700) }), opensAWindow(0, true), reserves(0, 5),
	}},
	{name: "a takeover that is the victim of a deadlock goes on afterwards: 1213", steps: []groupDeed{
		deedOn("node 0 takes over, and somebody has the row and wants to know the holder", func(s groupSide) string {
			return s.deadlock(0, "photos", 900, func(meanwhile func()) string { return takeOver(s, 0, func(groupSide) { meanwhile() }) })
		}), opensAWindow(0, true), reserves(0, 5),
	}},
	{name: "a reservation does not arrive", long: true, steps: begun(unanswered("which does not arrive", func(s groupSide) func() {
		inHand, mends := s.loses(0, false)
		inHand()
		return mends
	}), reserves(0, 5))},
	{name: "the answer to a reservation is lost", steps: begun(unanswered("whose answer is lost", func(s groupSide) func() {
		inHand, mends := s.loses(0, true)
		inHand()
		return mends
	}), reserves(0, 5))},
	{name: "a commit is lost", long: true, steps: begun(claims(false), reserves(0, 5), takesOver(0))},
	{name: "the answer to a commit is lost", steps: begun(claims(true), reserves(0, 5), takesOver(0))},
	{name: "a server stands still, and does later what it was asked", long: true, steps: begun(
		unanswered("while the server stands still", func(s groupSide) func() { return s.stalls(0) }), reserves(0, 5),
	)},
	{name: "a server is killed, and has what was committed", long: true, steps: begun(
		deedOn("node 0 is killed while somebody has the row", func(s groupSide) string {
			ends := s.hold(0, "photos", 500)
			s.restart(0)
			ends(false)
			return ""
		}), reads(), reserves(0, 5),
	)},
	{name: "a replica without the last second takes over", long: true, steps: begun(
		reserves(0, 100), reserves(0, 200), failOver(false), reserves(1, 5), takesOver(1), opensAWindow(1, true), reservesUpTo(1, 5, 2*caseWindow),
	)},
	{name: "a replicated write comes late", steps: begun(
		sets(0, 5000), failOver(true), takesOver(1), opensAWindow(1, true), reservesUpTo(1, 5, 2*caseWindow),
		quiet("it applies what it has received", func(s groupSide) { s.applyLate(1) }),
		reservesUpTo(1, 5, 2*caseWindow), takesOver(1), opensAWindow(1, true), reservesUpTo(1, 5, 3*caseWindow),
	)},
	{name: "a node comes back from the dead", steps: begun(
		quiet("node 0 is cut off", func(s groupSide) { s.cut(0, true) }), failOver(false), takesOver(1), opensAWindow(1, true), reservesUpTo(1, 5, 2*caseWindow),
		quiet("node 0 is back", func(s groupSide) { s.cut(0, false) }), reserves(0, 5), opensAWindowFor(0, caseWindow, false), reserves(0, 5),
		quiet("node 0 follows", func(s groupSide) { s.follow(0, 1); s.apply(0) }), reserves(0, 5), reservesUpTo(1, 5, 2*caseWindow),
	)},
}

// Each kind of server behaves as the simulation assumes.
func TestServersDoInEachCaseWhatTheSimulationSays(t *testing.T) {
	t.Parallel()
	real := newRealGroup(t)
	for _, c := range modelCases {
		if c.long && testing.Short() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			real.t = t
			rows := map[string]uint64{"photos": 0, "albums": 70, "end": math.MaxUint64}
			real.begin(rows)
			model := newModelGroup(real, maps.Clone(rows))
			var done []string
			for _, d := range c.steps {
				got, want := d.do(real), d.do(model)
				if strings.HasPrefix(got, "failed") && strings.HasPrefix(want, "failed") {
					got = want // a server has no connection then, or no right to write
				}
				done = append(done, d.what+": "+got)
				if got != want {
					t.Fatalf("%s\nservers say %q, the model %q", strings.Join(done, "\n"), got, want)
				}
				for at := range modelledNodes {
					var got, want string
					for range 500 { // a stopped server does it in a moment
						if got, want = real.contents(at), model.contents(at); got == want {
							break
						}
						time.Sleep(10 * time.Millisecond)
					}
					if got != want {
						t.Fatalf("node %d holds\n%s\n\nsimulated\n%s\n\nafter\n%s", at, got, want, strings.Join(done, "\n"))
					}
				}
			}
			t.Log(strings.Join(done, "\n"))
		})
	}
}

func (r *realGroup) hold(at int, name string, id uint64) (ends func(commits bool)) {
	r.t.Helper()
	conn := r.begins(at, fmt.Sprintf("UPDATE app.sequence SET id = %d WHERE name = '%s'", id, name))
	return func(commits bool) {
		text := map[bool]string{true: "COMMIT", false: "ROLLBACK"}[commits]
		if _, err := conn.ExecContext(r.t.Context(), text); err != nil && commits { // else the server was killed
			r.t.Fatal(err)
		}
		_ = conn.Close()
	}
}

// begins begins a transaction and writes in it.
func (r *realGroup) begins(at int, texts ...string) *sql.Conn {
	r.t.Helper()
	conn, err := r.pools[at].Conn(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, text := range append([]string{"BEGIN"}, texts...) {
		if _, err := conn.ExecContext(r.t.Context(), text); err != nil {
			r.t.Fatalf("%s: %v", text, err)
		}
	}
	return conn
}

// deadlock: a server chooses as its victim the transaction that has written less.
func (r *realGroup) deadlock(at int, name string, id uint64, f func(meanwhile func()) string) (what string) {
	r.t.Helper()
	texts := []string{fmt.Sprintf("UPDATE app.sequence SET id = %d WHERE name = '%s'", id, name)}
	for range 50 {
		texts = append(texts, "UPDATE app.sequence SET id = id + 1 WHERE name = 'albums'")
	}
	for range 50 {
		texts = append(texts, "UPDATE app.sequence SET id = id - 1 WHERE name = 'albums'")
	}
	conn := r.begins(at, texts...)
	defer conn.Close() //nolint:errcheck // it has committed
	before := r.v.Retries()
	var waits sync.WaitGroup
	waits.Go(func() { what = f(func() {}) })
	eventually(r.t, "the other one waits for the row", func() bool {
		time.Sleep(120 * time.Millisecond) // InnoDB has no news for a client that asks more often
		var waiting int
		err := r.pools[at].QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'").Scan(&waiting)
		return err == nil && waiting > 0
	})
	for _, text := range []string{"SELECT * FROM app.sequence_holder FOR UPDATE", "COMMIT"} {
		if _, err := conn.ExecContext(r.t.Context(), text); err != nil {
			r.t.Errorf("%s: %v", text, err)
		}
	}
	waits.Wait()
	if r.v.Retries() == before {
		r.t.Error("there was no deadlock")
	}
	return what
}

func (r *realGroup) loses(at int, done bool) (inHand, mends func()) {
	inHand = r.links[at].Cut
	if done {
		inHand = r.links[at].LoseAnswers
	}
	return inHand, r.links[at].Mend
}

func (r *realGroup) stalls(at int) (mends func()) {
	r.t.Helper()
	goOn := mysqltest.StandStill(r.t, r.Nodes[at].PID())
	r.patience = 300 * time.Millisecond
	return func() {
		goOn()
		r.patience = 0
	}
}

func (r *realGroup) restart(at int) {
	r.t.Helper()
	if err := r.Nodes[at].Kill(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.Nodes[at].Restart(); err != nil {
		r.t.Fatal(err)
	}
}

func (m modelGroup) hold(at int, name string, id uint64) (ends func(commits bool)) {
	return m.Hold(at, name, id)
}

func (m modelGroup) deadlock(at int, name string, id uint64, f func(meanwhile func()) string) string {
	ends := m.Hold(at, name, id)
	return f(func() { ends(true) })
}

func (m modelGroup) loses(_ int, done bool) (inHand, mends func()) {
	next := func() { m.actor.Lose, m.actor.Unsent = m.actor.Steps()+1, !done }
	next()
	return func() {}, func() { m.actor.Lose = 0 }
}

func (m modelGroup) stalls(at int) (mends func()) {
	_, mends = m.loses(at, true)
	return mends
}

func (m modelGroup) restart(at int) {
	m.Crash(at)
	m.Restart(at)
}
