package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
	"seqproxy/test/mysqltest"
	"seqproxy/test/transcript"
)

// everything is the title of the step that shows periodic questions.
const everything = "again and again"

// TestTranscripts compares what proxies send to sequence servers with testdata/transcripts, which
// -update writes.
func TestTranscripts(t *testing.T) {
	transcript.SystemServer(t, mysqltest.Shared(t))
	var all sync.WaitGroup
	for name, scenario := range map[string]func(t *testing.T, r *recorder){
		"connecting": recordConnecting, "again": recordAgain, "definitions": recordDefinitions, "numbers": recordNumbers,
		"moved": recordMoved, "kinds": recordKinds, "restart": recordRestart, "order": recordOrder, "rules": recordRules, "two_proxies": recordTwoProxies,
		"tickets": recordTickets, "import": recordImport, "blocks": recordBlocks, "steps": recordSteps, "change": recordChange, "group": recordGroup,
	} {
		all.Go(func() { // most of the time is waiting for periodic questions
			t.Run(name, func(t *testing.T) {
				r := newRecorder(t)
				scenario(t, r)
				transcript.Compare(t, name, r.out.String())
			})
		})
	}
	all.Wait()
}

// place is a schema on the shared server.
func (r *recorder) place() place {
	r.t.Helper()
	p := newPlace(r.t)
	r.names.Know(p.schema, "app")
	return p
}

// single is a proxy on a schema that has rows of sequences.
func (r *recorder) single(rows map[string]uint64, change ...func(*sequence.Options)) (place, *sequence.Sequences) {
	r.t.Helper()
	p := r.place().withTable(r.t, rows)
	return p, r.proxy("A", p.options(), append([]func(*sequence.Options){steadySize(10)}, change...)...)
}

// take is a step that takes n numbers, and records which.
func (r *recorder) take(s *sequence.Sequences, title string, n uint64, want uint64) {
	r.t.Helper()
	r.step(title, func() {
		if got := mustTake(r.t, s, "photos", n); got != want {
			r.t.Errorf("%s: got %d, want %d", title, got, want)
		}
	})
}

// do is a step that must succeed.
func (r *recorder) do(title string, f func(ctx context.Context) error) {
	r.t.Helper()
	r.step(title, func() {
		if err := f(r.t.Context()); err != nil {
			r.t.Errorf("%s: %v", title, err)
		}
	})
}

// refuse is a step that must fail with err.
func (r *recorder) refuse(title string, err error, f func(ctx context.Context) error) {
	r.t.Helper()
	r.step(title, func() {
		if got := f(r.t.Context()); !errors.Is(got, err) {
			r.t.Errorf("%s: got %v, want %v", title, got, err)
		}
	})
}

func (r *recorder) alter(s *sequence.Sequences, title string, a sequence.Alteration) {
	r.t.Helper()
	r.step(title, func() { mustAlter(r.t, s, "photos", a) })
}

var photos = []byte("photos")

func recordConnecting(t *testing.T, r *recorder) {
	r.asks = true
	empty := r.place()
	r.do("the first connection to an empty schema", r.proxy("A", empty.options()).Usable)
	poor := r.place()
	b := r.proxy("B", poor.options(), poor.user(t, "SELECT, INSERT, UPDATE, DELETE"), patience(50*time.Millisecond))
	r.step("to an empty schema, by an account that may not create tables", func() {
		if err := b.Usable(t.Context()); err == nil {
			t.Error("it is usable")
		}
	})
	made := r.place().withAll(t, nil)
	c := r.proxy("C", made.options(), made.user(t, "SELECT, INSERT, UPDATE, DELETE"), forbidden)
	r.do("to tables that were made by hand, by such an account", c.Usable)
	d := r.proxy("D", made.options(), forbidden)
	r.step("seqproxy check -connect", func() {
		for _, server := range d.Examine(t.Context(), nil) {
			if server.Err != nil {
				t.Error(server.Err)
			}
		}
	})
}

func recordAgain(t *testing.T, r *recorder) {
	_, s := r.single(map[string]uint64{"photos": 0})
	r.take(s, "a proxy takes its first number", 1, 1)
	r.step(everything, func() { time.Sleep(2*sequence.Inside(s).Timing().Beat + sequence.Inside(s).Timing().Follow) })
	r.do("the proxy ends", s.Close)
}

func recordDefinitions(t *testing.T, r *recorder) {
	_, s := r.single(nil)
	create := func(o sequence.CreateOptions) func(context.Context) error {
		o.Name = "photos"
		return func(ctx context.Context) error { _, err := s.Create(ctx, o); return err }
	}
	r.do("CREATE SEQUENCE", create(sequence.CreateOptions{}))
	r.refuse("CREATE SEQUENCE, of one that exists", sequence.ErrExists, create(sequence.CreateOptions{}))
	r.do("CREATE SEQUENCE IF NOT EXISTS", create(sequence.CreateOptions{IfNotExists: true}))
	r.do("DESCRIBE", func(ctx context.Context) error { _, _, err := s.Describe(ctx, photos); return err })
	r.do("SHOW SEQUENCES", func(ctx context.Context) error { _, err := s.List(ctx); return err })
	r.do("the columns that own sequences", func(ctx context.Context) error { _, err := s.LoadOwners(ctx); return err })
	r.do("CREATE OR REPLACE SEQUENCE with options", create(sequence.CreateOptions{
		OrReplace: true, Increment: 5, Min: 10, Max: 1000, Start: 20, Cache: 7, Cycle: true, Comment: "keys of people", OwnedBy: define.Column{Schema: "app", Table: "people", Column: "id"}, JSONSafe: true, Cover: 60,
	}))
	r.do("DROP SEQUENCE", func(ctx context.Context) error { _, err := s.Drop(ctx, photos, false); return err })
	r.refuse("DROP SEQUENCE, of one that is not there", sequence.ErrUnknown, func(ctx context.Context) error { _, err := s.Drop(ctx, photos, false); return err })
	r.do("CREATE SEQUENCE, of one that was dropped", create(sequence.CreateOptions{}))
}

func recordNumbers(t *testing.T, r *recorder) {
	p, s := r.single(map[string]uint64{"photos": 0})
	r.take(s, "the first number of a proxy", 1, 1)
	r.take(s, "a number from memory", 1, 2)
	r.take(s, "more than half of what is in memory: the next segment is fetched ahead", 5, 3)
	r.take(s, "a counted block that is larger than a segment", 25, 8)
	r.do("numbers of a name that does not exist", func(ctx context.Context) error {
		if _, err := s.Take(ctx, []byte("nobody"), 1); !errors.Is(err, sequence.ErrUnknown) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	r.do("FLUSH", func(ctx context.Context) error { return s.Flush(ctx, photos) })
	r.do("the ticket UPDATE by 1", func(ctx context.Context) error { _, err := s.Advance(ctx, photos, 1); return err })
	r.do("the ticket UPDATE by 3", func(ctx context.Context) error { _, err := s.Advance(ctx, photos, 3); return err })
	r.step("the row was set back by hand: it is repaired", func() {
		before := p.id(t, "photos")
		p.exec(t, "UPDATE sequence SET id = 3 WHERE name = 'photos'")
		eventually(t, "the row is raised", func() bool { return p.id(t, "photos") >= before })
		mustTake(t, s, "photos", 40)
	})
	r.do("the proxy ends", s.Close)
}

func recordMoved(t *testing.T, r *recorder) {
	_, s := r.single(map[string]uint64{"photos": 0})
	r.take(s, "the first number", 1, 1)
	setval := func(n uint64, used bool) func(context.Context) error {
		return func(ctx context.Context) error { _, _, err := s.SetValue(ctx, photos, n, used); return err }
	}
	r.do("SETVAL(photos, 500)", setval(500, true))
	r.do("SETVAL(photos, 600, 0)", setval(600, false))
	r.do("SETVAL(photos, 20), which is behind", setval(20, true))
	r.do("a key that the client chose, in memory", func(ctx context.Context) error {
		mustTake(t, s, "photos", 1)
		return s.Avoid(ctx, photos, []uint64{604})
	})
	r.do("a key that the client chose, above the counter", func(ctx context.Context) error { return s.Avoid(ctx, photos, []uint64{5000}) })
	r.do("the column holds higher keys", func(ctx context.Context) error { _, err := s.Raise(ctx, photos, 9000); return err })
	r.do("the column holds lower keys", func(ctx context.Context) error { _, err := s.Raise(ctx, photos, 8000); return err })
}

func recordKinds(t *testing.T, r *recorder) {
	_, s := r.single(nil, func(o *sequence.Options) { o.WorkerID = ref(uint64(3)) })
	r.names.Number("<year>", `(@\d{4})#`)
	r.names.Number("<tick>", `\b(\d{11,14})\b`)
	for _, clause := range []string{"BIT_REVERSED", "FORMAT 'PO-{yyyy}-{n:6}' RESET YEARLY", "SNOWFLAKE", "UUID"} {
		name := strings.ToLower(strings.Fields(clause)[0])
		r.step("CREATE SEQUENCE "+clause, func() { mustCreate(t, s, sequence.CreateOptions{Name: name, Kind: kindOf(t, clause)}) })
		r.do("its first key", func(ctx context.Context) error { _, err := s.TakeRun(ctx, []byte(name), 1); return err })
		r.do("DROP SEQUENCE", func(ctx context.Context) error { _, err := s.Drop(ctx, []byte(name), false); return err })
	}
	r.do("the proxy ends", s.Close)
}

func recordRestart(t *testing.T, r *recorder) {
	_, s := r.single(map[string]uint64{"photos": 0})
	r.take(s, "the first number", 1, 1)
	r.alter(s, "ALTER SEQUENCE ... RESTART WITH 1000", sequence.Alteration{Restart: ref(uint64(1000))})
	r.take(s, "the first number after that", 1, 1000)
	r.refuse("ALTER SEQUENCE ... RESTART WITH 5, which is behind", define.ErrBadOption, func(ctx context.Context) error {
		_, err := s.Alter(ctx, photos, sequence.Alteration{Restart: ref(uint64(5))})
		return err
	})
	r.alter(s, "ALTER SEQUENCE ... RESTART WITH 5 FORCE", down(5))
	r.take(s, "the first number after that too", 1, 5)
}

func recordOrder(t *testing.T, r *recorder) {
	_, s := r.single(nil)
	r.step("CREATE SEQUENCE ORDER", func() { mustCreate(t, s, sequence.CreateOptions{Name: "photos", Order: true}) })
	r.take(s, "the first number", 1, 1)
	r.take(s, "the next two", 2, 2)
	r.alter(s, "ALTER SEQUENCE NOORDER", sequence.Alteration{Order: ref(false)})
	r.take(s, "a number of a segment", 1, 4)
	r.alter(s, "ALTER SEQUENCE ORDER, while numbers are in memory", sequence.Alteration{Order: ref(true)})
	r.step("a number in order again", func() { mustTake(t, s, "photos", 1) })
}

func recordRules(t *testing.T, r *recorder) {
	_, s := r.single(nil)
	r.step("CREATE SEQUENCE INCREMENT 10 MAXVALUE 150 CYCLE", func() { mustCreate(t, s, sequence.CreateOptions{Name: "photos", Increment: 10, Max: 150, Cycle: true}) })
	r.take(s, "the first number", 1, 1)
	r.take(s, "up to the end", 14, 11)
	r.take(s, "from the beginning", 1, 1)
	r.alter(s, "ALTER SEQUENCE INCREMENT 1 MAXVALUE 200 NOCYCLE", sequence.Alteration{Increment: ref(uint64(1)), Max: ref(uint64(200)), Cycle: ref(false)})
	r.alter(s, "ALTER SEQUENCE MINVALUE, START, CACHE, COMMENT", sequence.Alteration{Min: ref(uint64(1)), Start: ref(uint64(2)), Cache: ref(uint64(20)), Comment: ref("it's")})
	r.alter(s, "ALTER SEQUENCE OWNED BY", sequence.Alteration{OwnedBy: &define.Column{Schema: "app", Table: "people", Column: "id"}, OwnerMax: ref(uint64(255))})
	r.alter(s, "ALTER SEQUENCE JSON SAFE, OUTAGE COVER", sequence.Alteration{JSONSafe: ref(true), Cover: ref(uint64(30))})
	r.do("SETVAL near the end", func(ctx context.Context) error { _, _, err := s.SetValue(ctx, photos, 195, true); return err })
	r.step("the sequence runs out", func() {
		if _, err := s.Take(t.Context(), photos, 20); !errors.Is(err, sequence.ErrExhausted) {
			t.Errorf("got %v, want that it has run out", err)
		}
		settled(t, s, "photos")
	})
}

func recordTwoProxies(t *testing.T, r *recorder) {
	p := r.place().withTable(t, map[string]uint64{"photos": 0})
	a, b := r.proxy("A", p.options(), steadySize(10)), r.proxy("B", p.options(), steadySize(10))
	r.take(a, "A takes a number", 1, 1)
	r.take(b, "B takes a number", 1, 11)
	r.alter(a, "A: ALTER SEQUENCE CACHE 5", sequence.Alteration{Cache: ref(uint64(5))})
	r.step("A: RESTART ... FORCE is refused beside B", func() { wantRefused(t, a, "photos", sequence.Inside(b).ID()) })
	r.do("A: the list of proxies", func(ctx context.Context) error { _, err := sequence.Inside(a).Proxies(ctx); return err })
	r.alter(a, "A: ALTER SEQUENCE ORDER, for which B gives up what it holds", sequence.Alteration{Order: ref(true)})
	r.do("B ends", b.Close)
}

func recordTickets(t *testing.T, r *recorder) {
	p, s := r.single(nil)
	for _, text := range ticketSQL {
		p.exec(t, fmt.Sprintf(text, "InnoDB"))
	}
	apps := ticketApps()
	for _, table := range []string{"tickets64InnoDB", "ids_photosInnoDB"} {
		app := apps[slices.IndexFunc(apps, func(a ticketApp) bool { return a.table == table })]
		for _, which := range []string{"the first", "another"} {
			r.do(which+" number of "+table, func(context.Context) error { _, err := app.cached(s, p.schema); return err })
		}
	}
	r.do("the proxy ends", s.Close)
}

func recordImport(t *testing.T, r *recorder) {
	p, s := r.single(nil)
	p.exec(t, "CREATE TABLE tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) NOT NULL DEFAULT '', UNIQUE KEY (stub)) ENGINE=InnoDB")
	p.exec(t, "REPLACE INTO tickets64 (stub) VALUES ('a')")
	pool, err := sql.Open("mysql", "root@tcp("+r.tap("import", "S1", p.server.Addr())+")/"+p.schema+"?interpolateParams=true")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close() //nolint:errcheck // the test is over
	over := p
	over.db = pool
	o := importOf(p, "tickets64", "photos")
	o.From = "app.tickets64"
	r.step("import of a ticket table", func() { mustImport(t, over, s, o) })
	r.take(s, "a number of the sequence that was made", 1, 3)
	r.step("the same import again", func() { mustImport(t, over, s, o) })
}

// several is a proxy of several members, which are new, but for rows.
func (r *recorder) several(n int, rows func(i int) map[string]uint64, change ...func(*sequence.Options)) (fleet, *sequence.Sequences) {
	r.t.Helper()
	f, o := make(fleet, n), sequence.Options{Tuning: sequence.Tuning{NoDirectWriters: true}}
	for i := range f {
		f[i] = r.place().withTable(r.t, rows(i))
		o.Servers = append(o.Servers, f[i].options().Servers...)
	}
	s := r.proxy("A", o, append([]func(*sequence.Options){steadySize(10)}, change...)...)
	if how, _ := sequence.Inside(s).Interleave(); how == sequence.InterleaveBlock {
		f.divide(r.t, s)
	}
	sequence.Inside(s).LastMember("photos", n-1) // else any member is the first
	return f, s
}

func recordBlocks(t *testing.T, r *recorder) {
	_, s := r.several(3, func(int) map[string]uint64 { return nil }, blocks(10))
	r.step("CREATE SEQUENCE", func() { createOn(t, s, "photos") })
	r.take(s, "the first number", 1, 1)
	r.take(s, "numbers of the next member", 8, 2)
	r.alter(s, "ALTER SEQUENCE COMMENT", sequence.Alteration{Comment: ref("of three")})
	r.do("SETVAL(photos, 500)", func(ctx context.Context) error { _, _, err := s.SetValue(ctx, photos, 500, true); return err })
	r.do("a key that the client chose", func(ctx context.Context) error { return s.Avoid(ctx, photos, []uint64{5000}) })
	r.do("the sequence servers", func(ctx context.Context) error { _, err := s.SequenceServers(ctx); return err })
	r.step("CREATE SEQUENCE, of another one", func() { createOn(t, s, "albums") })
	// Of a cached sequence, the first server that knows it decides what the others are asked.
	r.do("DROP SEQUENCE", func(ctx context.Context) error { _, err := s.Drop(ctx, []byte("albums"), false); return err })
}

func recordSteps(t *testing.T, r *recorder) {
	_, s := r.several(3, func(i int) map[string]uint64 { return map[string]uint64{"photos": uint64(i + 1)} }, inSteps)
	r.take(s, "the first number", 1, 4)
	for _, which := range []string{"second", "third", "first"} {
		r.step("numbers of the "+which+" member", func() { mustTake(t, s, "photos", 8) })
	}
	r.do("the ticket UPDATE by 3", func(ctx context.Context) error { _, err := s.Advance(ctx, photos, 3); return err })
}

func recordChange(t *testing.T, r *recorder) {
	first, second := r.place().withTable(t, map[string]uint64{"photos": 1234}), r.place()
	s := r.proxy("A", first.options(), steadySize(10), blocks(10), func(o *sequence.Options) { o.NoDirectWriters = true })
	more := second.options().Servers[0]
	more.Addr, more.MaxConns = r.tap("A", "S2", more.Addr), 1
	if err := sequence.Inside(s).Add(more); err != nil {
		t.Fatal(err)
	}
	sequence.Inside(s).LastMember("photos", 1)
	r.take(s, "a number of the only server", 1, 1235)
	// Between the first member that obeys and the last one the follower may meet the plan, and
	// bring it to the others, or not.
	var obey map[string]bool
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		switch {
		case step == change.Accepted && obey == nil:
			obey = make(map[string]bool)
			if err := sequence.Inside(s).Following().Acquire(t.Context()); err != nil {
				t.Error(err)
			}
		case step == sequence.PlanInForce && obey != nil:
			if obey[address] = true; len(obey) == 2 {
				obey = nil
				sequence.Inside(s).FollowAgain()
			}
		}
		return nil
	})
	change := func(title string, c sequence.PlanChange) {
		r.do(title, func(ctx context.Context) error { _, err := s.ChangePlan(ctx, c); return err })
	}
	change("ADD SEQUENCE SERVER S2", sequence.PlanChange{Add: more.Addr})
	r.step("numbers of both", func() { mustTake(t, s, "photos", 9); mustTake(t, s, "photos", 9) })
	change("REMOVE SEQUENCE SERVER S2", sequence.PlanChange{Remove: more.Addr})
	r.step("numbers of the only one again", func() { mustTake(t, s, "photos", 9); mustTake(t, s, "photos", 9) })
}

func recordGroup(t *testing.T, r *recorder) {
	e := startEstate(t, 2, "photos")
	e.Nodes[0].Exec(t, sequence.Schema("app", "sequence")...)
	s := r.proxy("A", sequence.Options{Servers: []sequence.ServerOptions{e.server()}}, steadySize(10))
	e.CatchUp(t, 1, 0)
	r.step("the first number: S1 is made the holder, and the first ceiling is recorded on S2", func() { mustTake(t, s, "photos", 1) })
	r.step("numbers below the ceiling", func() { mustTake(t, s, "photos", 9) })
	r.step("numbers above the ceiling", func() { mustTake(t, s, "photos", 2000) })
	r.do("SETVAL above the ceiling", func(ctx context.Context) error { _, _, err := s.SetValue(ctx, photos, 300_000, true); return err })
	r.alter(s, "ALTER SEQUENCE COMMENT", sequence.Alteration{Comment: ref("of a group")})
	e.CatchUp(t, 1, 0)
	r.registered = true // a heartbeat on S2 is as good
	r.step("S1 is lost, and S2 is the primary", func() {
		if err := e.Nodes[0].Kill(); err != nil {
			t.Fatal(err)
		}
		r.lost("S1")
		e.Promote(t, 1)
		mustTake(t, s, "photos", 300)
	})
}
