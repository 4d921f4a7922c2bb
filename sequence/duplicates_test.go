package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/store"
	"seqproxy/test/mysqltest"
)

// The tests of this file show, for each protective setting, the duplicate that happens without it,
// and then that it does not happen here.

// naive is the reservation as one would write it first: it believes every answer.
func naive(t *testing.T, conn *sql.Conn, name string, n uint64) (first uint64) {
	t.Helper()
	ctx := context.Background()
	if _, err := conn.ExecContext(ctx, "UPDATE sequence SET id = LAST_INSERT_ID(id + ?) WHERE name = ?", n, name); err != nil {
		t.Fatalf("naive reservation: %v", err)
	}
	var last uint64
	if err := conn.QueryRowContext(ctx, "SELECT LAST_INSERT_ID()").Scan(&last); err != nil {
		t.Fatalf("naive reservation: %v", err)
	}
	return last - n + 1
}

// naiveConn is a connection of a client that sets nothing but these statements.
func (p place) naiveConn(t *testing.T, statements ...string) *sql.Conn {
	t.Helper()
	conn, err := p.db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range statements {
		if _, err := conn.ExecContext(context.Background(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// laxServer has the defaults of old installations.
func laxServer(t *testing.T, args ...string) place {
	t.Helper()
	return placeOn(t, mysqltest.Start(t, append([]string{"--sql-mode=", "--autocommit=0"}, args...)...))
}

func TestIntColumnWithLaxModeDoesNotRepeatNumbers(t *testing.T) {
	p := laxServer(t)
	p.exec(t, "CREATE TABLE sequence (name varchar(50) PRIMARY KEY, id INT UNSIGNED NOT NULL) ENGINE=InnoDB")
	p.exec(t, "INSERT INTO sequence VALUES ('old', 4294967290), ('photos', 4294967290)")
	p.exec(t, "COMMIT")

	conn := p.naiveConn(t, "SET autocommit = 1")
	naive(t, conn, "old", 10)
	if first, second := naive(t, conn, "old", 10), naive(t, conn, "old", 10); first != second {
		t.Fatalf("the naive way got %d and %d, and so shows no duplicate", first, second)
	}

	s := p.open(t)
	seen := map[uint64]bool{}
	for range 5 {
		n := mustTake(t, s, "photos", 1)
		if seen[n] || n > 4294967295 {
			t.Fatalf("got %d, twice or beyond the column", n)
		}
		seen[n] = true
	}
	if first, err := s.Take(context.Background(), []byte("photos"), 1); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("after the column's maximum got %d, %v; want ErrExhausted", first, err)
	}
}

func TestServerWithAutocommitOffDoesNotRepeatNumbers(t *testing.T) {
	p := laxServer(t).withTable(t, map[string]uint64{"old": 0, "photos": 0})
	p.exec(t, "COMMIT")

	var got [2]uint64
	for i := range got {
		conn := p.naiveConn(t)
		got[i] = naive(t, conn, "old", 10)
		// The client crashes: its transaction is rolled back.
		_ = conn.Raw(func(any) error { return sql.ErrConnDone })
		p.exec(t, "ROLLBACK")
		_ = conn.Close()
		p.db.SetMaxIdleConns(0) // its connection is gone for good
		p.db.SetMaxIdleConns(2)
	}
	if got[0] != got[1] {
		t.Fatalf("the naive way got %d and %d, and so shows no duplicate", got[0], got[1])
	}

	s := p.open(t)
	first := mustTake(t, s, "photos", 1)
	p.kill(t)
	p.restart(t)
	other := p.open(t)
	if second := mustTake(t, other, "photos", 1); second <= first {
		t.Errorf("after a crash another proxy got %d, want more than %d", second, first)
	}
}

// The end of a transaction begins another one, in which the next reservation would never be
// committed.
func TestServerWithCompletionTypeChainDoesNotRepeatNumbers(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t, "--completion-type=CHAIN")).withTable(t, map[string]uint64{"old": 0})

	var got [2]uint64
	for i := range got {
		conn := p.naiveConn(t, "BEGIN", "COMMIT")
		got[i] = naive(t, conn, "old", 10)
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK AND NO CHAIN"); err != nil {
			// The client crashes.
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	if got[0] != got[1] {
		t.Fatalf("the naive way got %d and %d, and so shows no duplicate", got[0], got[1])
	}

	s := p.open(t, func(o *sequence.Options) { o.Servers[0].MaxConns = 1 })
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Cache: 10})
	mustTake(t, s, "photos", 1) // from here on all tables exist
	if _, ok, err := s.SetValue(t.Context(), []byte("photos"), 100, true); !ok || err != nil {
		t.Fatalf("SETVAL: %v, %v", ok, err)
	}
	first := mustTake(t, s, "photos", 1)
	p.kill(t)
	p.restart(t)
	other := p.open(t)
	if second := mustTake(t, other, "photos", 1); second <= first {
		t.Errorf("after a crash another proxy got %d, want more than %d", second, first)
	}
}

func TestRowThatVanishedDoesNotRepeatNumbers(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})

	conn := p.naiveConn(t)
	first := naive(t, conn, "photos", 10)
	p.exec(t, "DELETE FROM sequence")
	if second := naive(t, conn, "photos", 10); second != first {
		t.Fatalf("the naive way got %d and %d, and so shows no duplicate", first, second)
	}

	p.exec(t, "INSERT INTO sequence VALUES ('photos', 100)")
	s := p.open(t, steadySize(2))
	mustTake(t, s, "photos", 2)
	settled(t, s, "photos")
	p.exec(t, "DELETE FROM sequence")
	var err error
	for range 10 {
		if _, err = s.Take(context.Background(), []byte("photos"), 2); err != nil {
			break
		}
	}
	if !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	wantText(t, err, "photos")

	// Made again from 0, as from an old dump: this proxy still knows better.
	p.exec(t, "INSERT INTO sequence VALUES ('Photos"+p.trailing()+"', 0)")
	eventually(t, "the new row is seen", func() bool {
		exists, err := s.Exists(context.Background(), []byte("PHOTOS"))
		return err == nil && exists
	})
	if n := mustTake(t, s, "PHOTOS", 1); n <= 102 {
		t.Errorf("the row made again under another spelling gave %d, want more than 102", n)
	}
}

func TestServerThatFlushesOncePerSecondIsRefused(t *testing.T) {
	p := laxServer(t, "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-log-at-timeout=1000", "--autocommit=1")
	p.withTable(t, map[string]uint64{"old": 0, "photos": 0})
	p.exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	p.exec(t, "UPDATE sequence SET id = id + 1") // on disk
	relaxed := p.open(t, steadySize(10), func(o *sequence.Options) { o.Durability = sequence.DurabilityRelaxed })
	mustTake(t, relaxed, "photos", 1) // it is registered, which is on disk
	settled(t, relaxed, "photos")
	sequence.Inside(relaxed).StopFollowing() // else the row may be raised before this test sees it
	defer sequence.Inside(relaxed).FollowAgain()
	p.exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")

	// The server also writes its log for reasons of its own, about once per second. Then nothing
	// is lost in the crash, and another one is tried.
	var before uint64
	for attempt := 1; ; attempt++ {
		before = mustTake(t, relaxed, "photos", 10)
		settled(t, relaxed, "photos")
		first := naive(t, p.naiveConn(t), "old", 10)
		p.kill(t)
		p.restart(t)
		second, row := naive(t, p.naiveConn(t), "old", 10), p.id(t, "photos")
		if second <= first && row < before+9 {
			break
		}
		if attempt == 10 {
			t.Fatalf("across the crash the naive way got %d and %d, and the row is at %d after %d was given: nothing was lost",
				first, second, row, before+9)
		}
	}
	// The proxy that remembers what it gave notices, even in relaxed mode.
	last := before + 9
	for range 30 {
		n := mustTake(t, relaxed, "photos", 1)
		if n <= last {
			t.Fatalf("got %d after %d across the crash", n, last)
		}
		last = n
	}
	if got := rewinds(relaxed); got == 0 {
		t.Error("no rewind was counted")
	}

	strict := p.open(t)
	_, err := strict.Take(context.Background(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %v, want ErrUnfit", err)
	}
	wantText(t, err, "innodb_flush_log_at_trx_commit", "SET GLOBAL", p.server.Addr())
	p.exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	eventually(t, "the mended server is used", func() bool {
		_, err := strict.Take(context.Background(), []byte("photos"), 1)
		return err == nil
	})
}

// A server recovers by its binary log, which MariaDB does not flush unless it is told to.
func TestAServerThatDoesNotFlushAtCommitIsWarnedOfOnceForEachSetting(t *testing.T) {
	p := placeOn(t, mysqltest.StartUnsynced(t, "--log-bin=binlog", "--server-id=3", "--sync-binlog=0")).withTable(t, map[string]uint64{"photos": 0})
	core, logs := observer.New(zap.WarnLevel)
	s := p.open(t, func(o *sequence.Options) { o.Logger = zap.New(core) })
	mustTake(t, s, "photos", 1)
	wantWarned := func(how, value, remedy string) {
		t.Helper()
		warned := logs.FilterMessage("reservations not durable").All()
		logs.TakeAll()
		if len(warned) == 0 && value == "" {
			return
		}
		if len(warned) != 1 || warned[0].ContextMap()["value"] != value || warned[0].ContextMap()["remedy"] != remedy || warned[0].ContextMap()["node"] != p.server.Addr() {
			t.Errorf("%s: got %v, want one line about %q", how, warned, value)
		}
	}
	wantWarned("the first connection", "sync_binlog = 0", "SET GLOBAL sync_binlog = 1")

	// A later connection finds other settings, as after a restart of the server.
	v := sequence.Inside(s).First()
	for _, later := range []struct{ set, value, remedy string }{
		{"innodb_flush_log_at_trx_commit = 2", "innodb_flush_log_at_trx_commit = 2, sync_binlog = 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL sync_binlog = 1"},
		{"sync_binlog = 1", "innodb_flush_log_at_trx_commit = 2", "SET GLOBAL innodb_flush_log_at_trx_commit = 1"},
		{set: "innodb_flush_log_at_trx_commit = 1"},
		{"innodb_flush_log_at_trx_commit = 2", "innodb_flush_log_at_trx_commit = 2", "SET GLOBAL innodb_flush_log_at_trx_commit = 1"},
	} {
		p.exec(t, "SET GLOBAL "+later.set)
		conn, err := v.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := v.CheckAgain(t.Context(), conn); err != nil {
				t.Error(err)
			}
		}
		_ = conn.Close()
		wantWarned(later.set, later.value, later.remedy)
	}
}

func TestTriggerThatKeepsTheRowBackIsNoticed(t *testing.T) {
	for name, body := range map[string]string{
		"below":     "SET NEW.id = LEAST(NEW.id, 50)",
		"unchanged": "SET NEW.id = OLD.id",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t).withTable(t, map[string]uint64{"old": 45, "photos": 45})
			p.exec(t, "CREATE TRIGGER keep BEFORE UPDATE ON sequence FOR EACH ROW "+body)
			conn := p.naiveConn(t)
			naive(t, conn, "old", 10)
			if first, second := naive(t, conn, "old", 10), naive(t, conn, "old", 10); first != second {
				t.Fatalf("the naive way got %d and %d, and so shows no duplicate", first, second)
			}
			s := p.open(t)
			if n, err := s.Take(context.Background(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
				t.Errorf("got %d, %v; want ErrUnfit", n, err)
			}
		})
	}
}

func TestTriggerThatOnlyWatchesDoesNoHarm(t *testing.T) {
	// The OK packet's insert id is then 0.
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 45})
	p.exec(t, "CREATE TABLE audit (serial bigint AUTO_INCREMENT PRIMARY KEY, id bigint unsigned)")
	p.exec(t, "INSERT INTO audit VALUES (7000, 0)")
	p.exec(t, "CREATE TRIGGER watch AFTER UPDATE ON sequence FOR EACH ROW INSERT INTO audit (id) VALUES (NEW.id)")
	s := p.open(t, steadySize(3))
	for want := uint64(46); want < 66; want++ {
		if got := mustTake(t, s, "photos", 1); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
}

func TestUnfitTablesAreRefusedWithTheStatementThatMendsThem(t *testing.T) {
	for _, c := range []struct {
		name, create string
		insert       bool
		mend         string // runs after the refusal; "": nothing to run
		parts        []string
	}{
		{
			"MyISAM", "CREATE TABLE sequence (name varchar(50) PRIMARY KEY, id bigint unsigned) ENGINE=MyISAM", true,
			"ALTER TABLE %s ENGINE=InnoDB",
			[]string{"MyISAM", "ENGINE=InnoDB"},
		},
		{
			"no key", "CREATE TABLE sequence (name varchar(50) NOT NULL, id bigint unsigned) ENGINE=InnoDB", true,
			"ALTER TABLE %s ADD PRIMARY KEY (`name`)",
			[]string{"unique key", "ADD PRIMARY KEY (`name`)"},
		},
		{
			"key on a prefix", "CREATE TABLE sequence (name varchar(50) NOT NULL, id bigint unsigned, UNIQUE (name(3))) ENGINE=InnoDB", true,
			"ALTER TABLE %s ADD PRIMARY KEY (`name`)",
			[]string{"unique key"},
		},
		{
			"key on two columns", "CREATE TABLE sequence (name varchar(50), id bigint unsigned, PRIMARY KEY (name, id)) ENGINE=InnoDB", true,
			"",
			[]string{"unique key"},
		},
		{
			"DOUBLE", "CREATE TABLE sequence (name varchar(50) PRIMARY KEY, id double) ENGINE=InnoDB", true,
			"ALTER TABLE %s MODIFY `id` BIGINT UNSIGNED NOT NULL DEFAULT 0",
			[]string{"double", "BIGINT UNSIGNED"},
		},
		{
			"other columns", "CREATE TABLE sequence (a int, b int) ENGINE=InnoDB", false,
			"",
			[]string{"no columns `name` and `id`", "CREATE TABLE"},
		},
		{
			"view", "CREATE VIEW sequence AS SELECT 'photos' AS name, 1 AS id", false,
			"",
			[]string{"VIEW"},
		},
		{
			"NULL", "CREATE TABLE sequence (name varchar(50) PRIMARY KEY, id bigint unsigned) ENGINE=InnoDB; ", true,
			"UPDATE %s SET `id` = 7",
			nil, // made NULL below
		},
		{
			"negative", "CREATE TABLE sequence (name varchar(50) PRIMARY KEY, id bigint) ENGINE=InnoDB", true,
			"UPDATE %s SET `id` = 7",
			nil, // made negative below
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			if c.create != "" {
				p.exec(t, c.create)
			}
			if c.insert {
				p.exec(t, "INSERT INTO sequence (name, id) VALUES ('photos', 5)")
			}
			switch c.name {
			case "NULL":
				p.exec(t, "UPDATE sequence SET id = NULL")
				c.parts = []string{"photos", "NULL", "UPDATE"}
			case "negative":
				p.exec(t, "UPDATE sequence SET id = -5")
				c.parts = []string{"photos", "-5", "UPDATE"}
			}
			s := p.open(t, patience(20*time.Second))
			_, err := s.Take(context.Background(), []byte("photos"), 1)
			if !errors.Is(err, sequence.ErrUnfit) {
				t.Fatalf("got %v, want ErrUnfit", err)
			}
			wantText(t, err, append(c.parts, p.server.Addr())...)
			var unfit *sequence.UnfitError
			if !errors.As(err, &unfit) || unfit.Remedy == "" || unfit.Table != store.NewTable(p.schema, "sequence").Sequence {
				t.Errorf("got %#v, want the table and a remedy", unfit)
			}
			if c.mend == "" {
				return
			}
			p.exec(t, fmt.Sprintf(c.mend, "`sequence`"))
			if c.name == "missing" {
				p.exec(t, "INSERT INTO sequence VALUES ('photos', 5)")
			}
			eventually(t, "the mended table is used", func() bool {
				n, err := s.Take(context.Background(), []byte("photos"), 1)
				return err == nil && n > 5
			})
		})
	}
}

// A primary is demoted while connections to it are open. An account with SUPER may go on writing
// there.
func TestServerThatBecomesReadOnlyIsRefusedOnOpenConnections(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0, "albums": 0, "old": 0})
	for name, as := range map[string]func(*sequence.Options){
		"photos": func(*sequence.Options) {}, // root
		"albums": p.user(t, "SELECT, INSERT, UPDATE, DELETE, CREATE"),
	} {
		s := p.open(t, as, steadySize(2), patience(time.Minute), func(o *sequence.Options) { o.Servers[0].MaxConns = 1 })
		last := mustTake(t, s, name, 1)
		settled(t, s, name)
		p.exec(t, "SET GLOBAL read_only = 1")
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second) // waiting does not help
		defer stop()
		var err error
		for range 10 {
			if last, err = s.Take(ctx, []byte(name), 1); err != nil {
				break
			}
		}
		if !errors.Is(err, sequence.ErrUnfit) {
			t.Errorf("%s: after numbers up to %d got %v, want ErrUnfit", name, last, err)
		}
		wantText(t, err, "read only", p.server.Addr())
		if name == "albums" {
			_, err = s.Create(ctx, sequence.CreateOptions{Name: "new"})
			wantText(t, err, "read only")
			_, err = s.Drop(ctx, []byte("old"), false)
			wantText(t, err, "read only")
		}
		p.exec(t, "SET GLOBAL read_only = 0")
		eventually(t, "the writable server is used", func() bool {
			_, err := s.Take(context.Background(), []byte(name), 1)
			return err == nil
		})
	}
}

func TestReadOnlyServerIsRefusedUntilItIsWritable(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0})
	p.exec(t, "SET GLOBAL read_only = 1")
	s := p.open(t)
	_, err := s.Take(context.Background(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Fatalf("got %v, want ErrUnfit", err)
	}
	wantText(t, err, "read only", p.server.Addr(), "name the primary", "first see that it lacks nothing")
	if unfit := new(sequence.UnfitError); !errors.As(err, &unfit) || unfit.Statement() != "" {
		t.Errorf("%v: got the statement %q, want none: a replica that lags behind must not be made writable by it", err, unfit.Statement())
	}
	if got := p.id(t, "photos"); got != 0 {
		t.Errorf("the row of a read-only server moved to %d", got)
	}
	p.exec(t, "SET GLOBAL read_only = 0")
	eventually(t, "the writable server is used", func() bool {
		_, err := s.Take(context.Background(), []byte("photos"), 1)
		return err == nil
	})
}
