package sequence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/sequence"
	"seqproxy/sequence/link"
	"seqproxy/test/mysqltest"
)

// importOf is an import of a table into a sequence.
func importOf(p place, table, into string) sequence.TicketImport {
	return sequence.TicketImport{Database: p.schema, Table: table, Sequence: into, From: p.schema + "." + table}
}

// importInto makes an import over a separate connection.
func importInto(p place, s *sequence.Sequences, o sequence.TicketImport) (sequence.TicketsImported, error) {
	conn, err := p.db.Conn(context.Background())
	if err != nil {
		return sequence.TicketsImported{}, err
	}
	defer conn.Close() //nolint:errcheck // its session was changed, and nobody needs it again
	defer conn.Raw(func(any) error { return driver.ErrBadConn })
	return s.ImportTickets(context.Background(), conn, o)
}

func mustImport(t testing.TB, p place, s *sequence.Sequences, o sequence.TicketImport) sequence.TicketsImported {
	t.Helper()
	done, err := importInto(p, s, o)
	if err != nil {
		t.Fatalf("import of %s into %s: %v", o.Table, o.Sequence, err)
	}
	return done
}

// numbers records what was given. It is safe for concurrent use.
type numbers struct {
	t    *testing.T
	mu   sync.Mutex
	seen map[uint64]string // by whom
}

func newNumbers(t *testing.T) *numbers { return &numbers{t: t, seen: make(map[uint64]string)} }

// take takes n numbers, which nobody else may have got.
func (g *numbers) take(by string, n int, f func() (uint64, error)) (last uint64) {
	for range n {
		id, err := f()
		for link.IsConflict(err) { // InnoDB's, which applications try again
			id, err = f()
		}
		g.mu.Lock()
		if err != nil {
			g.t.Errorf("%s: %v", by, err)
		} else if other := g.seen[id]; other != "" || id == 0 {
			g.t.Errorf("%d was given twice, by %q and %q", id, other, by)
		}
		g.seen[id] = by
		g.mu.Unlock()
		last = id
	}
	return last
}

func TestAnImportedTableNeverMeetsItsSequence(t *testing.T) {
	p := placeOn(t, mysqltest.StartUnsynced(t)).withTickets(t)
	for _, app := range ticketApps() {
		t.Run(app.table, func(t *testing.T) {
			given, name := newNumbers(t), "of_"+app.table
			c, err := p.db.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close() //nolint:errcheck // the test is over
			direct := func() (uint64, error) { return app.direct(c) }
			last := given.take("direct, before", 5, direct)

			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						given.take("direct, meanwhile", 1, direct)
					}
				}
			})
			for range 2 { // at the same time too
				wg.Go(func() {
					s := p.open(t, steadySize(5))
					if done, err := importInto(p, s, importOf(p, app.table, name)); err != nil || done.Next <= last {
						t.Errorf("got %+v, %v, want a sequence above %d", done, err, last)
					}
					given.take("sequence", 25, func() (uint64, error) { return s.Take(context.Background(), []byte(name), 1) })
				})
			}
			eventually(t, "both have their numbers", func() bool {
				given.mu.Lock()
				defer given.mu.Unlock()
				n := 0
				for _, by := range given.seen {
					if by == "sequence" {
						n++
					}
				}
				return n == 50 || t.Failed()
			})
			close(stop)
			wg.Wait()

			s := p.open(t, steadySize(5))
			done := mustImport(t, p, s, importOf(p, app.table, name))
			if done.Created || done.Raised {
				t.Errorf("again: got %+v, want that it is there", done)
			}
			if id := given.take("direct, after", 5, direct); id <= done.Last {
				t.Errorf("direct: got %d, want a number above the sequence's end %d", id, done.Last)
			}

			// A table that was emptied begins again. The next import mends that.
			p.exec(t, "TRUNCATE "+app.table)
			if done := mustImport(t, p, s, importOf(p, app.table, name)); !done.Raised {
				t.Errorf("after TRUNCATE: got %+v, want that it was raised", done)
			}
			if id, err := app.direct(c); err != nil || id <= done.Last {
				t.Errorf("direct, after TRUNCATE and an import: got %d, %v, want a number above %d", id, err, done.Last)
			}
			given.take("sequence, after TRUNCATE", 5, func() (uint64, error) { return s.Take(context.Background(), []byte(name), 1) })
		})
	}
}

// mortal ends an import at one of the statements that it sends to the table's server, counted from
// LOCK TABLES on, like kill -9: later ones are not sent.
type mortal struct {
	driver.Connector
	at    int  // the statement
	after bool // it is run, and its answer is lost; else it is not even sent
	kill  context.CancelFunc
	saw   func(text string)

	sent int
	dead bool
}

func (m *mortal) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := m.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &mortalConn{c.(link.DriverConn), m}, nil
}

type mortalConn struct {
	link.DriverConn
	m *mortal
}

// run runs a statement, unless the import has ended.
func (c *mortalConn) run(text string, send func() error) error {
	m := c.m
	if m.dead {
		return driver.ErrBadConn
	}
	if m.saw != nil {
		m.saw(text)
	}
	if strings.HasPrefix(text, "LOCK TABLES") || m.sent > 0 {
		m.sent++
	}
	end := m.sent > 0 && m.sent == m.at
	var err error
	if !end || m.after {
		err = send()
	}
	if end {
		m.dead = true
		m.kill()
		return errors.Join(driver.ErrBadConn, c.DriverConn.Close())
	}
	return err
}

func (c *mortalConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.run(text, func() (err error) {
		r, err = c.DriverConn.ExecContext(ctx, text, args)
		return err
	})
	return r, err
}

func (c *mortalConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.run(text, func() (err error) {
		r, err = c.DriverConn.QueryContext(ctx, text, args)
		return err
	})
	return r, err
}

func openMortal(t *testing.T, p place, m *mortal) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(p.server.DSN(p.schema))
	if err != nil {
		t.Fatal(err)
	}
	cfg.InterpolateParams = true // each statement is sent at once
	if m.Connector, err = mysql.NewConnector(cfg); err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(m)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// importKilled makes an import that is killed at a statement. killed is false if it was complete
// before.
func importKilled(t *testing.T, p place, s *sequence.Sequences, o sequence.TicketImport, at int, after bool) (killed bool) {
	t.Helper()
	ctx, kill := context.WithCancel(context.Background())
	defer kill()
	m := &mortal{at: at, after: after, kill: kill}
	db := openMortal(t, p, m)
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it is dead
	if _, err := s.ImportTickets(ctx, conn, o); (err != nil) != m.dead {
		t.Fatalf("killed at %d: %v, and the import says %v", at, m.dead, err)
	}
	return m.dead
}

// killedApps have a row for each stub, and one for each number.
func killedApps() (apps []ticketApp) {
	for _, app := range ticketApps() {
		if app.table == "tickets64InnoDB" || app.table == "ids_photosMyISAM" {
			apps = append(apps, app)
		}
	}
	return apps
}

// killings calls f for each statement that an import is killed before or after, until it is
// complete.
func killings(t *testing.T, f func(t *testing.T, app *ticketApp, name string, at int, after bool) (killed bool)) {
	for _, app := range killedApps() {
		for _, after := range []bool{false, true} {
			killed, at := true, 0
			for killed && !t.Failed() {
				at++
				name := fmt.Sprintf("%s_%t_%d", app.table, after, at)
				t.Run(name, func(t *testing.T) { killed = f(t, &app, name, at, after) })
			}
			if at < 6 && !t.Failed() {
				t.Errorf("%s: an import has %d statements, want at least 5", app.table, at-1)
			}
		}
	}
}

func TestAnImportThatIsKilledGivesNoNumberTwice(t *testing.T) {
	p := placeOn(t, mysqltest.StartUnsynced(t)).withTickets(t)
	killings(t, func(t *testing.T, app *ticketApp, name string, at int, after bool) bool {
		p.exec(t, "TRUNCATE "+app.table)
		given, s := newNumbers(t), p.open(t, steadySize(5))
		c, err := p.db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // the test is over
		direct := func() (uint64, error) { return app.direct(c) }
		taken := func() (uint64, error) { return s.Take(context.Background(), []byte(name), 1) }
		given.take("direct, before", 3, direct)
		killed := importKilled(t, p, s, importOf(p, app.table, name), at, after)
		if _, _, err := s.Describe(context.Background(), []byte(name)); err == nil {
			given.take("sequence, of an import that was killed", 3, taken)
		} else if !killed {
			t.Fatal(err)
		}
		given.take("direct, after the kill", 3, direct)
		done := mustImport(t, p, s, importOf(p, app.table, name))
		given.take("sequence", 7, taken)
		if id := given.take("direct, after all", 3, direct); id <= done.Last {
			t.Errorf("direct: got %d, want a number above the sequence's end %d", id, done.Last)
		}
		return killed
	})
}

// A second table joins the sequence of another one. Both gave the same numbers before; no number
// that the sequence or a table gives afterwards was given by the other before, or will be.
func TestAnImportIntoASequenceThatIsThereMayBeKilled(t *testing.T) {
	p := placeOn(t, mysqltest.StartUnsynced(t)).withTickets(t)
	refusals := 0
	killings(t, func(t *testing.T, app *ticketApp, name string, at int, after bool) bool {
		p.exec(t, "TRUNCATE "+app.table)
		p.exec(t, "TRUNCATE ids_photosInnoDB")
		p.exec(t, "INSERT INTO ids_photosInnoDB VALUES (2)")
		s := p.open(t, steadySize(5))
		first, second := importOf(p, "ids_photosInnoDB", name), importOf(p, app.table, name)
		mustImport(t, p, s, first)
		c, err := p.db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // the test is over
		before := make(map[uint64]bool)
		direct := func() (id uint64) {
			id, err := app.direct(c)
			if err != nil {
				t.Fatal(err)
			}
			before[id] = true
			return id
		}
		for range 9 {
			direct()
		}
		before[mustTake(t, s, name, 1)] = true
		killed := importKilled(t, p, s, second, at, after)
		def, state, err := s.Describe(context.Background(), []byte(name))
		if err != nil {
			t.Fatal(err)
		}
		unsaid := direct() > state.Limit && !strings.Contains(def.Comment, second.From)
		done, err := importInto(p, s, second)
		if err != nil && unsaid {
			refusals++
			wantText(t, err, "names no import", "DROP SEQUENCE `"+name+"`", second.Table+"=NAME")
			if _, err := s.Drop(context.Background(), []byte(name), false); err != nil {
				t.Fatal(err)
			}
			mustImport(t, p, s, first)
			done, err = importInto(p, s, second)
		} else if unsaid {
			t.Errorf("got %+v, though nobody knows who has raised the counter", done)
		}
		if err != nil {
			t.Fatal(err)
		}
		fresh := p.open(t, steadySize(5))
		for range 20 {
			if id := mustTake(t, fresh, name, 1); before[id] || id > done.Last {
				t.Errorf("the sequence gives %d, which was given before or is above its end %d", id, done.Last)
			}
		}
		if id := direct(); id <= done.Last {
			t.Errorf("direct: got %d, want a number above the sequence's end %d", id, done.Last)
		}
		if again := mustImport(t, p, s, second); again.Created || again.Raised {
			t.Errorf("again: got %+v, want that it is there", again)
		}
		return killed
	})
	if refusals == 0 {
		t.Error("no import was killed between the raised counter and the comment")
	}
}

// Flickr's two servers give the odd and the even numbers. One is imported while the other one
// serves, then the other one.
func TestTheTablesOfTwoTicketServersBecomeOneSequence(t *testing.T) {
	var places []place
	for _, offset := range []string{"1", "2"} {
		places = append(places, placeOn(t, mysqltest.StartUnsynced(t, "--auto-increment-increment=2", "--auto-increment-offset="+offset)).withTickets(t))
	}
	s := places[0].open(t, steadySize(5))
	for _, app := range killedApps() {
		t.Run(app.table, func(t *testing.T) {
			given, name := newNumbers(t), "of_"+app.table
			var conns []*sql.Conn
			for _, p := range places {
				c, err := p.db.Conn(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close() //nolint:errcheck // the test is over
				conns = append(conns, c)
			}
			all := func(when string, imported bool) (above uint64) {
				for i, c := range conns {
					given.take(fmt.Sprintf("server %d, %s", i, when), 5, func() (uint64, error) { return app.direct(c) })
				}
				if !imported {
					return 0
				}
				return given.take("sequence, "+when, 5, func() (uint64, error) { return s.Take(context.Background(), []byte(name), 1) })
			}
			all("before", false)
			if done := mustImport(t, places[0], s, importOf(places[0], app.table, name)); !done.Created || done.Next%2 != 1 || done.Last%2 != 1 {
				t.Errorf("the first: got %+v, want a sequence of odd numbers", done)
			}
			all("after the first", true)
			o := importOf(places[1], app.table, name)
			o.From += " at another"
			for i, want := range []sequence.TicketsImported{{Raised: true}, {}} {
				done := mustImport(t, places[1], s, o)
				if done.Created || done.Raised != want.Raised || i == 1 && done.Next == 0 {
					t.Errorf("the second, %d: got %+v, want %+v", i, done, want)
				}
			}
			all("after both", true)
			// Both tables count above the sequence, which may give the even numbers too.
			one := uint64(1)
			if _, err := s.Alter(context.Background(), []byte(name), sequence.Alteration{Increment: &one}); err != nil {
				t.Fatal(err)
			}
			last := all("with all numbers", true)
			if next := given.take("sequence, with all numbers", 1, func() (uint64, error) { return s.Take(context.Background(), []byte(name), 1) }); next != last+1 {
				t.Errorf("INCREMENT BY 1: got %d after %d", next, last)
			}
		})
	}
}

func TestAnImportIsRefusedWhereItCouldRepeatNumbers(t *testing.T) {
	p := placeOn(t, mysqltest.StartUnsynced(t)).withTickets(t)
	s := p.open(t)
	p.exec(t, "CREATE TABLE small (id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 65000")
	p.exec(t, "CREATE TABLE full (id TINYINT AUTO_INCREMENT PRIMARY KEY)")
	p.exec(t, "INSERT INTO full VALUES (127)")
	p.exec(t, "CREATE TABLE noisy (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
	p.exec(t, "CREATE TRIGGER loud BEFORE INSERT ON noisy FOR EACH ROW SET @a = 1")
	p.exec(t, "CREATE TABLE numbered (id BIGINT AUTO_INCREMENT PRIMARY KEY, stub INT NOT NULL UNIQUE)")
	p.exec(t, "CREATE TABLE passed (id BIGINT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 5000")
	p.exec(t, "CREATE TABLE fits (id BIGINT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 200")
	mustCreate(t, s, sequence.CreateOptions{Name: "endless"})
	mustCreate(t, s, sequence.CreateOptions{Name: "short", Max: 4000, Comment: "imported from `other`.`passed`, `" + p.schema + "`.`passed_by`"})
	for _, test := range []struct {
		table, name string
		want        []string
	}{
		{"small", "new", []string{"counter is at 65000 of 65535", "MODIFY"}},
		{"full", "new", []string{"127 of 127"}},
		{"noisy", "new", []string{"trigger, loud"}},
		{"numbered", "new", []string{"no row yet", "take a number"}},
		{"nowhere", "new", []string{"does not exist"}},
		{"fits", "endless", []string{"no room above", "ALTER SEQUENCE `endless` MAXVALUE"}},
		{"passed", "short", []string{"5000", "above 4000", "names no import"}},
	} {
		o := importOf(p, test.table, test.name)
		done, err := importInto(p, s, o)
		if err == nil {
			t.Errorf("%s into %s: got %+v, want an error", test.table, test.name, done)
			continue
		}
		wantText(t, err, test.want...)
		o.DryRun, o.Next = true, map[string]uint64{"small": 65000, "full": 127, "passed": 5000}[test.table]
		if done, err = importInto(p, s, o); err == nil && test.table != "numbered" {
			// whose row a dry run does not write
			t.Errorf("%s into %s, a dry run: got %+v, want an error", test.table, test.name, done)
		}
	}
	if _, _, err := s.Describe(context.Background(), []byte("new")); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("a sequence that was refused: got %v, want ErrUnknown", err)
	}
	for table, want := range map[string]uint64{"fits": 201, "passed": 5001, "small": 65001} {
		result, err := p.db.Exec("INSERT INTO " + table + " VALUES (NULL)")
		if err != nil {
			t.Fatal(err)
		}
		if id, _ := result.LastInsertId(); uint64(id) != want {
			t.Errorf("%s was refused, and gives %d next, want %d", table, id, want)
		}
		var rows int
		if err := p.db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&rows); err != nil || rows != 1 {
			t.Errorf("%s was refused, and has %d rows, %v, want 1", table, rows, err)
		}
	}
	// With an end that leaves room it is right.
	end := uint64(1_000_000)
	if _, err := s.Alter(context.Background(), []byte("endless"), sequence.Alteration{Max: &end}); err != nil {
		t.Fatal(err)
	}
	if done := mustImport(t, p, s, importOf(p, "fits", "endless")); !done.Raised || done.Next <= 201 || done.Last != end {
		t.Errorf("got %+v, want a sequence that was raised above 201", done)
	}
	p.exec(t, "SET GLOBAL read_only = 1")
	defer p.exec(t, "SET GLOBAL read_only = 0")
	if _, err := importInto(p, s, importOf(p, "fits", "endless")); err == nil {
		t.Error("a server that is read only was written to")
	} else {
		wantText(t, err, "read only")
	}
}

// Several sequence servers divide the numbers below the table's counter. Steps they cannot divide.
func TestATicketTableBecomesASequenceOfSeveralServers(t *testing.T) {
	f := newFleet(t, 3)
	s := f.open(t, blocks(10), steadySize(10))
	for _, app := range killedApps() {
		p := f[0].withTickets(t)
		given := newNumbers(t)
		c, err := p.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // the test is over
		direct := func() (uint64, error) { return app.direct(c) }
		given.take("direct, before", 5, direct)
		done := mustImport(t, p, s, importOf(p, app.table, app.table))
		given.take("sequence", 50, func() (uint64, error) { return s.Take(context.Background(), []byte(app.table), 1) })
		if id := given.take("direct, after", 5, direct); !done.Created || id <= done.Last {
			t.Errorf("got %d after %+v, want a number above the end of a new sequence", id, done)
		}
		p.exec(t, "TRUNCATE "+app.table)
		if done := mustImport(t, p, s, importOf(p, app.table, app.table)); !done.Raised {
			t.Errorf("after TRUNCATE: got %+v, want that it was raised", done)
		}
		given.take("sequence", 50, func() (uint64, error) { return s.Take(context.Background(), []byte(app.table), 1) })
		p.exec(t, "DROP TABLE tickets64InnoDB, tickets64MyISAM, id_tempInnoDB, id_tempMyISAM, ids_photosInnoDB, ids_photosMyISAM")
	}

	other := placeOn(t, mysqltest.StartUnsynced(t, "--auto-increment-increment=3"))
	other.exec(t, "CREATE TABLE ids (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
	if done, err := importInto(other, s, importOf(other, "ids", "thirds")); !errors.Is(err, sequence.ErrSeveral) {
		t.Errorf("a table that counts by three, with blocks of 10: got %+v, %v, want ErrSeveral", done, err)
	}
	result, err := other.db.Exec("INSERT INTO ids VALUES (NULL)")
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := result.LastInsertId(); id != 4 {
		t.Errorf("a table that was refused gives %d, want 4", id)
	}
}

// A wait for the table is short, because direct applications wait behind it. An import tries again.
func TestAnImportWaitsForATableThatIsLocked(t *testing.T) {
	p := newPlace(t).withTickets(t)
	c, err := p.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // the test is over
	for _, text := range []string{"BEGIN", "SELECT * FROM ids_photosInnoDB"} {
		if _, err := c.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	locks := 0
	db := openMortal(t, p, &mortal{saw: func(text string) {
		if !strings.HasPrefix(text, "LOCK TABLES") {
			return
		}
		if locks++; locks == 2 {
			if _, err := c.ExecContext(t.Context(), "COMMIT"); err != nil {
				t.Error(err)
			}
		}
	}})
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test is over
	if done, err := p.open(t).ImportTickets(t.Context(), conn, importOf(p, "ids_photosInnoDB", "photos")); err != nil || !done.Created || locks != 2 {
		t.Errorf("got %+v, %v at the lock number %d, want a sequence at the second", done, err, locks)
	}
}
