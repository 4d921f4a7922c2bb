package sequence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/link"
	"seqproxy/sequence/stats"
	"seqproxy/test/mysqltest"
)

// ticketSQL are common ticket tables, by engine: Flickr's, one of several stubs, and one for each
// business table.
var ticketSQL = []string{
	"CREATE TABLE tickets64%[1]s (`id` bigint(20) unsigned NOT NULL auto_increment, `stub` char(1) NOT NULL default '', PRIMARY KEY (`id`), " +
		"UNIQUE KEY `stub` (`stub`)) ENGINE=%[1]s",
	"CREATE TABLE id_temp%[1]s (`id` int(11) unsigned NOT NULL AUTO_INCREMENT, `table_name` varchar(20) DEFAULT NULL, PRIMARY KEY (`id`), " +
		"UNIQUE KEY `table_name` (`table_name`)) ENGINE=%[1]s AUTO_INCREMENT=1",
	"CREATE TABLE ids_photos%[1]s (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=%[1]s",
}

var ticketEngines = []string{"InnoDB", "MyISAM"}

// ticketApp takes a number as an application does that uses the server directly, and as the proxy
// does it for one.
type ticketApp struct {
	table  string
	direct func(c *sql.Conn) (uint64, error)
	cached func(s *sequence.Sequences, schema string) (uint64, error)
}

func ticketApps() (apps []ticketApp) {
	exec := func(c *sql.Conn, text string) (uint64, error) {
		if _, err := c.ExecContext(context.Background(), text); err != nil {
			return 0, err
		}
		var id uint64
		err := c.QueryRowContext(context.Background(), "SELECT LAST_INSERT_ID()").Scan(&id)
		return id, err
	}
	for _, engine := range ticketEngines {
		for table, column := range map[string]string{"tickets64": "stub", "id_temp": "table_name", "ids_photos": ""} {
			table += engine
			if column == "" {
				apps = append(apps, ticketApp{table, func(c *sql.Conn) (uint64, error) {
					return exec(c, "INSERT INTO "+table+" VALUES (NULL)")
				}, func(s *sequence.Sequences, schema string) (uint64, error) {
					t, err := s.TicketTable(schema, table).Insert(context.Background(), nil)
					return t.Number, err
				}})
				continue
			}
			apps = append(apps, ticketApp{table, func(c *sql.Conn) (uint64, error) {
				return exec(c, "REPLACE INTO "+table+" ("+column+") VALUES ('a')")
			}, func(s *sequence.Sequences, schema string) (uint64, error) {
				t, err := s.TicketTable(schema, table).Replace(context.Background(), nil, []byte(column), []byte("a"))
				return t.Number, err
			}})
		}
	}
	return apps
}

func (p place) withTickets(t testing.TB) place {
	t.Helper()
	p.withTable(t, nil)
	for _, engine := range ticketEngines {
		for _, text := range ticketSQL {
			p.exec(t, fmt.Sprintf(text, engine))
		}
	}
	return p
}

// TestTicketsOfProxiesAndOfDirectApplicationsNeverMeet has both take from the same counters at the
// same time.
func TestTicketsOfProxiesAndOfDirectApplicationsNeverMeet(t *testing.T) {
	p := placeOn(t, mysqltest.StartUnsynced(t)).withTickets(t)
	for _, app := range ticketApps() {
		t.Run(app.table, func(t *testing.T) {
			var mu sync.Mutex
			seen := make(map[uint64]string)
			add := func(id uint64, by string) {
				mu.Lock()
				defer mu.Unlock()
				if other := seen[id]; other != "" || id == 0 {
					t.Errorf("%d was given twice, by %q and %q", id, other, by)
				}
				seen[id] = by
			}
			var wg sync.WaitGroup
			for i, size := range []uint64{1, 10} {
				s := p.open(t, steadySize(size))
				wg.Go(func() {
					last := uint64(0)
					for range 40 {
						id, err := app.cached(s, p.schema)
						if err != nil {
							t.Error(err)
							return
						}
						if id <= last {
							t.Errorf("got %d after %d, want rising numbers", id, last)
						}
						last = id
						add(id, fmt.Sprint("proxy ", i))
					}
				})
			}
			for range 2 {
				c, err := p.db.Conn(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					defer c.Close()
					for range 40 {
						id, err := app.direct(c)
						for link.IsConflict(err) { // InnoDB's, which applications try again
							id, err = app.direct(c)
						}
						if err != nil {
							t.Error(err)
							return
						}
						add(id, "direct")
					}
				})
			}
			wg.Wait()
			if len(seen) != 160 {
				t.Errorf("got %d numbers, want 160", len(seen))
			}
		})
	}
}

// TestATicketTableThatTakesTurnsKeepsItsTurn has Flickr's two servers, which give the odd and the
// even numbers.
func TestATicketTableThatTakesTurnsKeepsItsTurn(t *testing.T) {
	server := mysqltest.Start(t, "--auto-increment-increment=2", "--auto-increment-offset=2")
	p := placeOn(t, server).withTickets(t)
	for _, app := range ticketApps() {
		c, err := p.db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[uint64]bool)
		for range 3 {
			s := p.open(t, steadySize(5))
			for range 12 {
				for _, take := range []func() (uint64, error){func() (uint64, error) { return app.cached(s, p.schema) }, func() (uint64, error) { return app.direct(c) }} {
					id, err := take()
					if err != nil || id%2 != 0 || seen[id] {
						t.Fatalf("%s: got %d (seen: %v), %v, want an even number", app.table, id, seen[id], err)
					}
					seen[id] = true
				}
			}
		}
		_ = c.Close()
	}
}

// TestTicketsSurviveKilledServersAndProxies: nobody gives a number again that was reserved before
// kill -9.
func TestTicketsSurviveKilledServersAndProxies(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTickets(t)
	apps := ticketApps()
	seen := make([]map[uint64]bool, len(apps))
	for i := range seen {
		seen[i] = make(map[uint64]bool)
	}
	s := p.open(t, steadySize(7))
	for round := range 3 {
		c, err := p.db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for i, app := range apps {
			for k := range 20 {
				var id uint64
				if (k+round)%4 == 0 {
					id, err = app.direct(c)
				} else {
					id, err = app.cached(s, p.schema)
				}
				if err != nil || seen[i][id] {
					t.Fatalf("round %d, %s: got %d (seen: %v), %v", round, app.table, id, seen[i][id], err)
				}
				seen[i][id] = true
			}
		}
		_ = c.Close()
		p.kill(t)
		// Cached numbers are given while the server is away.
		for i, app := range apps {
			if id, err := app.cached(s, p.schema); err == nil && seen[i][id] {
				t.Errorf("%s: %d was given twice", app.table, id)
			} else if err == nil {
				seen[i][id] = true
			}
		}
		if round == 0 {
			s = p.open(t, steadySize(7)) // the proxy is killed too: nothing is known any more
		}
		p.restart(t)
		for _, engine := range ticketEngines { // as an operator does after a crash
			for _, table := range []string{"tickets64", "id_temp", "ids_photos"} {
				if engine == "MyISAM" {
					p.exec(t, "REPAIR TABLE "+table+engine)
				}
			}
		}
	}
}

// breaking is a connection that breaks after so many statements that write.
type breaking struct {
	link.DriverConn
	after atomic.Int64
	link  *mysqltest.Link
}

func (b *breaking) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	result, err := b.DriverConn.ExecContext(ctx, text, args)
	if strings.HasPrefix(text, "REPLACE") || strings.HasPrefix(text, "INSERT") {
		if b.after.Add(-1) == 0 {
			b.link.Cut()
			// until this side has noticed: then the next statement is not even sent
			time.Sleep(20 * time.Millisecond)
			b.link.Mend()
		}
	}
	return result, err
}

// A reservation of tickets is several statements. Where the connection breaks between two of them,
// the numbers that nobody gets are counted.
func TestWhatABrokenReservationOfTicketsHasTakenIsCounted(t *testing.T) {
	p := newPlace(t).withTickets(t)
	path := mysqltest.NewLink(t, p.server.Addr())
	core, logs := observer.New(zap.DebugLevel)
	s := p.open(t, steadySize(100), func(o *sequence.Options) {
		o.Servers[0].Addr, o.Servers[0].MaxConns, o.Logger = path.Addr(), 1, zap.New(core)
	})
	direct, err := p.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close() //nolint:errcheck // the test is over
	reserved := func() (n uint64) {
		for _, line := range logs.FilterMessage("numbers reserved").All() {
			n += line.ContextMap()["reserved"].(uint64)
		}
		return n
	}
	counted := func() (n uint64) {
		for _, st := range s.BySequence() {
			n += st.Unused[stats.UnusedUnknownCommit]
		}
		return n
	}
	for _, app := range ticketApps() {
		for after, want := range map[int64]uint64{1: 1, 2: 100} {
			if _, err := app.cached(s, p.schema); err != nil { // and there is a connection
				t.Fatal(err)
			}
			cached := sequence.CachedTickets(s.TicketTable(p.schema, app.table))
			cached.Flush()
			begin, err := app.direct(direct)
			if err != nil {
				t.Fatal(err)
			}
			logs.TakeAll()
			before := counted()
			conn, err := sequence.Inside(s).Tickets().Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b := &breaking{link: path}
			b.after.Store(after)
			err = conn.Raw(func(raw any) error {
				taken := raw.(*link.Conn)
				b.DriverConn, taken.DriverConn = taken.DriverConn, b
				return nil
			})
			if err := errors.Join(err, conn.Close()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the connection breaks", func() bool {
				if _, err := app.cached(s, p.schema); err != nil {
					t.Fatal(err)
				}
				return b.after.Load() <= 0
			})
			eventually(t, "no reservation is in flight", func() bool { return !cached.Reserving() })
			end, err := app.direct(direct)
			if err != nil {
				t.Fatal(err)
			}
			gone := end - begin - 1 - reserved()
			if lost := counted() - before; gone == 0 || gone > lost || lost != want {
				t.Errorf("%s, broken after %d statements: %d of the %d numbers were reserved by nobody, counted %d, want %d", app.table, after, gone, end-begin-1, lost, want)
			}
		}
	}

	// The first use of a stub takes a number for its row.
	before := counted()
	table := s.TicketTable(p.schema, "tickets64InnoDB")
	sequence.FlushTickets(table)
	path.LoseAnswers()
	if _, err := table.Replace(t.Context(), nil, []byte("stub"), []byte("a")); err == nil {
		t.Error("a stub got its row though no answer came")
	}
	path.Mend()
	if lost := counted() - before; lost != 1 {
		t.Errorf("counted %d numbers that the row of a stub may have, want 1", lost)
	}
}

func TestATicketSaysWhatTheTableSays(t *testing.T) {
	p := placeOn(t, mysqltest.StartUnsynced(t)).withTickets(t)
	s := p.open(t, steadySize(50), patience(20*time.Second))
	ctx := context.Background()
	stubs := s.TicketTable(p.schema, "tickets64InnoDB")
	for _, c := range []struct {
		stub     string
		replaced bool
	}{{"a", false}, {"a", true}, {"b", false}, {"b", true}, {"a", true}} {
		got, err := stubs.Replace(ctx, nil, []byte("STUB"), []byte(c.stub))
		if err != nil || got.Replaced != c.replaced || !got.Transactional {
			t.Errorf("stub %s: got %+v, %v, want replaced %v", c.stub, got, err, c.replaced)
		}
	}
	if got, err := s.TicketTable(p.schema, "tickets64MyISAM").Replace(ctx, []byte("id"), []byte("stub"), []byte("a")); err != nil || got.Transactional || got.Number == 0 {
		t.Errorf("MyISAM: got %+v, %v, want a number without a transaction", got, err)
	}
	p.exec(t, "CREATE TABLE wide (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL)")
	p.exec(t, "CREATE TABLE pair (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, UNIQUE (a, b))")
	p.exec(t, "CREATE TABLE triggered (id INT AUTO_INCREMENT PRIMARY KEY)")
	p.exec(t, "CREATE TRIGGER tr BEFORE INSERT ON triggered FOR EACH ROW SET NEW.id = NEW.id")
	p.exec(t, "CREATE TABLE plain (id INT PRIMARY KEY)")
	p.exec(t, "CREATE TABLE more (id INT AUTO_INCREMENT PRIMARY KEY, a INT)")
	p.exec(t, "CREATE VIEW seen AS SELECT * FROM ids_photosInnoDB")
	p.exec(t, "CREATE TABLE small (id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY)")
	for what, err := range map[string]error{
		"a stub that is too long": errOf(stubs.Replace(ctx, nil, []byte("stub"), []byte("too long"))),
		"another column":          errOf(stubs.Replace(ctx, nil, []byte("other"), []byte("a"))),
		"another id":              errOf(stubs.Replace(ctx, []byte("number"), []byte("stub"), []byte("a"))),
		"INSERT of stubs":         errOf(stubs.Insert(ctx, nil)),
		"no such table":           errOf(s.TicketTable(p.schema, "nonesuch").Insert(ctx, nil)),
		"a column that must be":   errOf(s.TicketTable(p.schema, "wide").Insert(ctx, []byte("id"))),
		"a key of two columns":    errOf(s.TicketTable(p.schema, "pair").Insert(ctx, []byte("id"))),
		"a trigger":               errOf(s.TicketTable(p.schema, "triggered").Insert(ctx, nil)),
		"no AUTO_INCREMENT":       errOf(s.TicketTable(p.schema, "plain").Insert(ctx, nil)),
		"a value too few":         errOf(s.TicketTable(p.schema, "more").Insert(ctx, nil)),
		"a view":                  errOf(s.TicketTable(p.schema, "seen").Insert(ctx, nil)),
	} {
		if !errors.Is(err, sequence.ErrNoTicket) {
			t.Errorf("%s: got %v, want ErrNoTicket", what, err)
		}
	}
	if got, err := s.TicketTable(p.schema, "more").Insert(ctx, []byte("ID")); err != nil || got.Number != 1 {
		t.Errorf("a table with an optional column: got %+v, %v, want 1", got, err)
	}

	// The end: the column's last number remains, and then everything is the server's.
	small := s.TicketTable(p.schema, "small")
	last := uint64(0)
	for {
		got, err := small.Insert(ctx, nil)
		if errors.Is(err, sequence.ErrNoTicket) {
			break
		}
		if err != nil || got.Number != last+1 {
			t.Fatalf("after %d: got %d, %v", last, got.Number, err)
		}
		last = got.Number
	}
	if last < 250 || last > 254 {
		t.Errorf("the last number: got %d, want 254, or a few less", last)
	}

	// A counter that goes back does not repeat a number.
	rows := s.TicketTable(p.schema, "ids_photosInnoDB")
	seen := make(map[uint64]bool)
	for i := range 120 {
		if i == 60 {
			p.exec(t, "TRUNCATE ids_photosInnoDB")
		}
		got, err := rows.Insert(ctx, nil)
		if err != nil || seen[got.Number] {
			t.Fatalf("got %+v (seen: %v), %v", got, seen[got.Number], err)
		}
		seen[got.Number] = true
	}
	if rewinds(s) == 0 {
		t.Error("nothing was said of a counter that went back")
	}
}

// Who may not see triggers must not take a table for one without: its trigger would not run.
func TestATicketTableIsServedWhereItsTriggersAreSeen(t *testing.T) {
	p := newPlace(t)
	ids := p.schema + "_ids"
	p.exec(t, "CREATE SCHEMA "+ids)
	t.Cleanup(func() { p.exec(t, "DROP SCHEMA "+ids) })
	p.exec(t, "CREATE TABLE "+ids+".plain (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
	p.exec(t, "CREATE TABLE "+ids+".triggered (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
	p.exec(t, "CREATE TRIGGER "+ids+".tr AFTER INSERT ON "+ids+".triggered FOR EACH ROW SET @a = 1")
	const documented = "SELECT, INSERT, DELETE, TRIGGER, LOCK TABLES"
	for _, c := range []struct {
		name, grant string
		served      bool
	}{
		{"what the page says", "GRANT " + documented + " ON IDS.* TO USER", true},
		{"with a wildcard escaped", "GRANT " + documented + " ON `ESCAPED`.* TO USER", true},
		{"everywhere", "GRANT ALL ON *.* TO USER", true},
		{"on the table", "GRANT SELECT, INSERT, DELETE, LOCK TABLES ON IDS.* TO USER; GRANT TRIGGER ON IDS.plain TO USER", true},
		{"by a role", "CREATE ROLE r_IDS; GRANT " + documented + " ON IDS.* TO r_IDS; GRANT r_IDS TO USER; " + p.defaultRole("r_IDS", "USER"), true},
		{"without TRIGGER", "GRANT SELECT, INSERT, DELETE, LOCK TABLES ON IDS.* TO USER", false},
		{"on another table", "GRANT SELECT, INSERT, DELETE, LOCK TABLES ON IDS.* TO USER; GRANT TRIGGER ON IDS.triggered TO USER", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			as, o := p.user(t, "SELECT, INSERT, UPDATE, DELETE, CREATE"), sequence.Options{Servers: make([]sequence.ServerOptions, 1)}
			as(&o)
			user := "'" + o.Servers[0].User + "'@'%'"
			for text := range strings.SplitSeq(strings.NewReplacer("IDS", ids, "ESCAPED", strings.ReplaceAll(ids, "_", `\_`), "USER", user).Replace(c.grant), "; ") {
				p.exec(t, text)
			}
			if strings.Contains(c.grant, "ROLE") {
				t.Cleanup(func() { p.exec(t, "DROP ROLE r_"+ids) })
			}
			core, logs := observer.New(zap.WarnLevel)
			s := p.open(t, as, func(o *sequence.Options) { o.Logger = zap.New(core) })
			if _, err := s.TicketTable(ids, "plain").Insert(t.Context(), nil); (err == nil) != c.served || err != nil && !errors.Is(err, sequence.ErrNoTicket) {
				t.Errorf("a table without a trigger: got %v, want it served: %v", err, c.served)
			}
			if said := fmt.Sprint(logs.All()); !c.served && !strings.Contains(said, "GRANT TRIGGER ON `"+ids+"`.*") {
				t.Errorf("logged %s, want the GRANT", said)
			}
			if _, err := s.TicketTable(ids, "triggered").Insert(t.Context(), nil); !errors.Is(err, sequence.ErrNoTicket) {
				t.Errorf("a table with a trigger: got %v, want ErrNoTicket", err)
			}
		})
	}
}

// defaultRole returns the statement that enables a role of an account.
func (p place) defaultRole(role, account string) string {
	if p.server.IsMariaDB() {
		return "SET DEFAULT ROLE " + role + " FOR " + account
	}
	return "SET DEFAULT ROLE " + role + " TO " + account
}

// TestFlushDropsTheNumbersOfTicketTables flushes by the names that SQL makes of them, and with all
// the others.
func TestFlushDropsTheNumbersOfTicketTables(t *testing.T) {
	p := newPlace(t).withTickets(t)
	s := p.open(t, steadySize(50))
	ctx := context.Background()
	stubs := s.TicketTable(p.schema, "tickets64InnoDB")
	take := func() sequence.Ticket {
		t.Helper()
		got, err := stubs.Replace(ctx, nil, []byte("stub"), []byte("a"))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, name := range [][]byte{[]byte("tickets64InnoDB"), []byte(p.schema + ".tickets64InnoDB"), nil} {
		take()
		before := take()
		var last uint64 // of the segment
		if err := p.db.QueryRowContext(ctx, "SELECT id FROM tickets64InnoDB WHERE stub = 'a'").Scan(&last); err != nil {
			t.Fatal(err)
		}
		p.exec(t, "TRUNCATE tickets64InnoDB") // now there is no stub, and no number
		if err := s.Flush(ctx, name); err != nil {
			t.Fatal(err)
		}
		switch got := take(); {
		case got.Number <= last || before.Number >= last:
			t.Errorf("FLUSH of %q: got %d after %d, want a number above the segment's last, %d", name, got.Number, before.Number, last)
		case got.Replaced:
			t.Errorf("FLUSH of %q: the stub is taken for one that has a row", name)
		}
	}
	if err := s.Flush(ctx, []byte("tickets64")); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("a table that nobody asked for: got %v, want ErrUnknown", err)
	}
}

// An application that uses the table directly locks the stub's row for longer than the proxy's
// connections wait for it. If the first ticket came from the server then, the next ones, from the
// cache, would be below.
func TestTheFirstTicketOfAStubWaitsForThoseWhoHoldItsRow(t *testing.T) {
	p := newPlace(t).withTickets(t)
	p.exec(t, "REPLACE INTO tickets64InnoDB (stub) VALUES ('a')")
	tx, err := p.db.Begin()
	if err == nil {
		_, err = tx.Exec("UPDATE tickets64InnoDB SET stub = 'a' WHERE stub = 'a'")
	}
	if err == nil {
		err = tx.QueryRow("SELECT stub FROM tickets64InnoDB WHERE stub = 'a' FOR UPDATE").Scan(new(string))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := p.open(t, func(o *sequence.Options) { o.AllocateTimeout = 20 * time.Second })
	table := s.TicketTable(p.schema, "tickets64InnoDB")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer tx.Rollback() //nolint:errcheck // what it holds is all there is to it
		for s.Stats().Retries == 0 && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	first, err := table.Replace(t.Context(), nil, []byte("stub"), []byte("a"))
	if err != nil || !first.Replaced {
		t.Errorf("got %+v, %v; want a number, and that the row was there", first, err)
		_ = tx.Rollback()
		return
	}
	<-done
	next, err := table.Replace(t.Context(), nil, []byte("stub"), []byte("a"))
	if err != nil || next.Number != first.Number+1 {
		t.Errorf("got %+v after %d, %v; want the next number", next, first.Number, err)
	}
}

func errOf(_ sequence.Ticket, err error) error { return err }
