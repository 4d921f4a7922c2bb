package sequence_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/store"
	"seqproxy/test/mysqltest"
)

func TestMain(m *testing.M) {
	chooseTestsOfKind()
	mysqltest.Main(m, mysqltest.CheckLeaks())
}

// place is a schema of its own on a server.
type place struct {
	server *mysqltest.Server
	schema string
	db     *sql.DB // root, in schema, with the server's default settings
}

// newPlace makes a schema on the shared server, without a sequence table.
func newPlace(t testing.TB) place {
	t.Helper()
	return placeOn(t, mysqltest.Shared(t))
}

func placeOn(t testing.TB, s *mysqltest.Server) place {
	t.Helper()
	schema := s.Schema(t)
	return place{server: s, schema: schema, db: s.DB(t, schema)}
}

// withTable makes the table of DESIGN, with rows name -> last number given.
func (p place) withTable(t testing.TB, rows map[string]uint64) place {
	t.Helper()
	p.exec(t, fmt.Sprintf(store.CreateTable, "`sequence`"))
	for name, id := range rows {
		p.exec(t, "INSERT INTO sequence (name, id) VALUES (?, ?)", triedRow(name), id)
	}
	if kindOfTests != "" && len(rows) > 0 {
		for _, text := range sequence.Schema(p.schema, "sequence") {
			p.exec(t, text)
		}
		for name := range rows {
			p.exec(t, "INSERT INTO sequence_options (name, kind) VALUES (?, ?)", triedRow(name), triedKind(t).String())
		}
	}
	return p
}

// trailing is a blank where the default collation ignores trailing blanks.
func (p place) trailing() string {
	if p.server.IsMariaDB() {
		return " "
	}
	return ""
}

// withAll makes all tables by hand, with rows name -> last number given.
func (p place) withAll(t testing.TB, rows map[string]uint64) place {
	t.Helper()
	for _, text := range sequence.Schema(p.schema, "sequence") {
		p.exec(t, text)
	}
	return p.withTable(t, rows)
}

// forbidden makes a proxy create no table.
func forbidden(o *sequence.Options) { o.CreateTable = false }

func (p place) exec(t testing.TB, text string, args ...any) {
	t.Helper()
	if _, err := p.db.Exec(text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// kill ends the server without warning.
func (p place) kill(t testing.TB) {
	t.Helper()
	// The test's own connections end in order, so that only the proxy's are cut.
	p.db.SetMaxIdleConns(0)
	p.db.SetMaxIdleConns(2)
	if err := p.server.Kill(); err != nil {
		t.Fatal(err)
	}
}

func (p place) restart(t testing.TB) {
	t.Helper()
	if err := p.server.Restart(); err != nil {
		t.Fatal(err)
	}
}

// id reads the row.
func (p place) id(t testing.TB, name string) (id uint64) {
	t.Helper()
	if err := p.db.QueryRow("SELECT id FROM sequence WHERE name = ?", triedRow(name)).Scan(&id); err != nil {
		t.Fatalf("read row %q: %v", name, err)
	}
	return id
}

func (p place) options() sequence.Options {
	return sequence.Options{Servers: []sequence.ServerOptions{{Addr: p.server.Addr(), User: "root", Database: p.schema}}}
}

// usualPatience is the allocate timeout of tests that are not about it. The default is missed on a
// busy machine.
const usualPatience = 15 * time.Second

// open makes Sequences that are closed at the end of the test.
func (p place) open(t testing.TB, change ...func(*sequence.Options)) *sequence.Sequences {
	t.Helper()
	return openWith(t, p.options(), change...)
}

// openWith is open with the options of any servers.
func openWith(t testing.TB, o sequence.Options, change ...func(*sequence.Options)) *sequence.Sequences {
	t.Helper()
	o.CreateTable, o.AllocateTimeout = true, cmp.Or(o.AllocateTimeout, usualPatience)
	quick(&o)
	for _, f := range change {
		f(&o)
	}
	sequence.LogSteps(&o)
	s, err := sequence.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		_ = s.Close(ctx) // the server may have been killed
		checkSums(t, s)
		if cached := s.Stats().Cached; cached != 0 {
			t.Errorf("%d numbers are cached after the end, want none", cached)
		}
	})
	return s
}

// checkSums fails the test unless each reserved number is given, cached, or unused for a reason.
func checkSums(t testing.TB, s *sequence.Sequences) {
	t.Helper()
	if st := s.Stats(); st.Given+st.Cached+st.Unused.Sum() != st.Reserved {
		t.Errorf("%d numbers were reserved, of which %d were given, %d are cached, and these unused: %v", st.Reserved, st.Given, st.Cached, st.Unused)
	}
	for _, st := range s.BySequence() {
		if st.Given+st.Cached+st.Unused.Sum() != st.Reserved {
			t.Errorf("%s: %d numbers were reserved, of which %d were given, %d are cached, and these unused: %v",
				st.Name, st.Reserved, st.Given, st.Cached, st.Unused)
		}
	}
}

// quick makes a proxy of a test ask and give up sooner. It keeps the bound on a server's answer,
// which a busy machine needs.
func quick(o *sequence.Options) {
	sequence.SetUsualTiming(o)
	sequence.ChangeTiming(o, func(t *sequence.Timing) {
		t.Follow, t.FollowRarely = 100*time.Millisecond, time.Second
		t.Beat, t.Stale, t.Tenure = 500*time.Millisecond, 5*time.Second, 4*time.Second
		t.Flush = 2 * time.Second
		t.Lack = 2 * time.Second
	})
}

// seldomHearing keeps a proxy from learning of changes within a few seconds, apart from its own.
func seldomHearing(o *sequence.Options) {
	sequence.ChangeTiming(o, func(t *sequence.Timing) {
		t.Follow, t.FollowRarely = 4*time.Second, 4*time.Second
		t.Stale, t.Tenure = 15*time.Second, 10*time.Second
	})
}

func cacheSize(n uint64) func(*sequence.Options) {
	return func(o *sequence.Options) { o.CacheSize = n }
}

// steadySize reserves n at a time at any rate.
func steadySize(n uint64) func(*sequence.Options) {
	return func(o *sequence.Options) { o.CacheSize, o.OutageCover = n, time.Nanosecond }
}

func patience(d time.Duration) func(*sequence.Options) {
	return func(o *sequence.Options) { o.AllocateTimeout = d }
}

// mustTake fails the test if there is no number. In a test of a kind it returns the counter.
func mustTake(t testing.TB, s *sequence.Sequences, name string, n uint64) uint64 {
	t.Helper()
	if n > 1 && !takesSeveral(t) {
		return oneByOne(t, s, name, n)
	}
	if kindOfTests != "" { // a text is no number that Take could return
		run, err := s.TakeRun(context.Background(), []byte(name), n)
		if err != nil {
			t.Fatalf("TakeRun(%q, %d): %v", name, n, err)
		}
		return triedCounter(t, s, name, run.First)
	}
	first, err := s.Take(context.Background(), []byte(name), n)
	if err != nil {
		t.Fatalf("Take(%q, %d): %v", name, n, err)
	}
	return first
}

// eventually waits for the effect of a background reservation.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	within(t, 30*time.Second, what, ok)
}

// within is eventually with a longer limit.
func within(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen within %v: %s", limit, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// endsSoon returns what f does, or an error if that takes very long.
func endsSoon(f func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- f() }()
	select {
	case err := <-answer:
		return err
	case <-time.After(30 * time.Second):
		return errors.New("it waits for ever")
	}
}

// settled waits until no reservation of name is in flight.
func settled(t testing.TB, s *sequence.Sequences, name string) {
	t.Helper()
	eventually(t, "reservation of "+name+" ends", func() bool {
		c := sequence.Inside(s).Cache(name)
		return c.Exists() && !c.Reserving()
	})
}

// round is that of longRounds.
const round = 6 * time.Second

// longRounds leaves no member out that answers late, as on a busy machine.
func longRounds(o *sequence.Options) {
	sequence.ChangeTiming(o, func(t *sequence.Timing) { t.Round, t.Stale, t.Tenure = round, 20*time.Second, 10*time.Second })
}

// refusedWith waits until try is refused with a text that has every part. On a busy machine the
// error may have another cause at first.
func refusedWith(t testing.TB, try func() error, parts ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("an error that contains %q", parts), func() bool {
		err := try()
		if err == nil {
			t.Fatalf("got no error, want one that contains %q", parts)
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Log(err)
				return false
			}
		}
		return true
	})
}

// wantText fails unless err's text has every part.
func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got error %v, want it to contain %q", err, part)
		}
	}
}
