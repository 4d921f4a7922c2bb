package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// user makes an account with rights in the place's schema and returns the option to log in as it.
func (p place) user(t testing.TB, rights string) func(*sequence.Options) {
	t.Helper()
	name := fmt.Sprintf("u%08x", rand.Uint32())
	p.exec(t, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY 'hush-hush'", name))
	t.Cleanup(func() { p.exec(t, fmt.Sprintf("DROP USER '%s'@'%%'", name)) })
	if rights != "" {
		p.exec(t, fmt.Sprintf("GRANT %s ON `%s`.* TO '%s'@'%%'", rights, p.schema, name))
	}
	return func(o *sequence.Options) { o.Servers[0].User, o.Servers[0].Password = name, "hush-hush" }
}

// grant gives an account of user rights on one table.
func (p place) grant(t testing.TB, as func(*sequence.Options), rights, table string) {
	t.Helper()
	o := sequence.Options{Servers: make([]sequence.ServerOptions, 1)}
	as(&o)
	p.exec(t, fmt.Sprintf("GRANT %s ON `%s`.%s TO '%s'@'%%'", rights, p.schema, table, o.Servers[0].User))
}

func TestOrdinaryRightsAndOneConnectionAreEnough(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, p.user(t, "SELECT, INSERT, UPDATE, DELETE, CREATE"), steadySize(4), func(o *sequence.Options) {
		o.CreateTable, o.Servers[0].MaxConns = true, 1
	})
	mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
	for want := uint64(1); want <= 20; want++ {
		if got := mustTake(t, s, "photos", 1); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	settled(t, s, "photos")
	p.exec(t, "UPDATE sequence SET id = 0") // a rewind is mended on the same connection
	for range 20 {
		if got := mustTake(t, s, "photos", 1); got <= 20 {
			t.Fatalf("got %d again", got)
		}
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "albums", Cache: 5})
	mustTake(t, s, "albums", 1)
	if _, err := s.Drop(context.Background(), []byte("photos"), false); err != nil {
		t.Errorf("Drop: %v", err)
	}
	if infos, err := s.List(context.Background()); err != nil || len(infos) != 1 {
		t.Errorf("List = %+v, %v; want albums", infos, err)
	}
}

func TestReservingNeedsOnlySelectAndUpdate(t *testing.T) {
	p := newPlace(t).withAll(t, map[string]uint64{"photos": 0})
	as := p.user(t, "SELECT, UPDATE")
	p.grant(t, as, "INSERT, DELETE", "sequence_proxy")
	s := p.open(t, as)
	if got := mustTake(t, s, "photos", 1); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
	var unavailable *sequence.UnavailableError
	_, err := s.Create(context.Background(), sequence.CreateOptions{Name: "albums", Cache: 5})
	if !errors.As(err, &unavailable) {
		t.Errorf("CREATE without the right: got %v, want an UnavailableError", err)
	}
	wantText(t, err, "albums", "denied", "; to mend it: GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `"+p.schema+"`.* TO the user")
	if _, err = s.Drop(context.Background(), []byte("photos"), false); !errors.As(err, &unavailable) {
		t.Errorf("DROP without the right: got %v, want an UnavailableError", err)
	}
	if got := mustTake(t, s, "photos", 1); got != 2 {
		t.Errorf("after the refused DROP got %d, want 2", got)
	}
}

func TestAReservationWithoutTheRightSaysWhatToGrant(t *testing.T) {
	p := newPlace(t).withAll(t, map[string]uint64{"photos": 0})
	as := p.user(t, "SELECT, INSERT")
	p.grant(t, as, "UPDATE, DELETE", "sequence_proxy")
	s := p.open(t, as, patience(3*time.Second))
	refusedWith(t, func() error {
		_, err := s.Take(context.Background(), []byte("photos"), 1)
		if !errors.As(err, new(*sequence.UnavailableError)) {
			t.Errorf("got %v, want an UnavailableError", err)
		}
		return err
	}, "photos", "UPDATE command denied", "; to mend it: GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `"+p.schema+"`.* TO the user")
}

func TestTableThatTheUserMayNotSeeIsToldAsSuch(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, p.user(t, ""), patience(20*time.Second))
	_, err := s.Take(context.Background(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %v, want ErrUnfit", err)
	}
	wantText(t, err, "may not see it", "GRANT")
}

func TestServerThatLogsStatementsIsServed(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t, "--log-bin=binlog", "--binlog-format=STATEMENT")).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(5))
	for want := uint64(1); want <= 20; want++ {
		if got := mustTake(t, s, "photos", 1); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "albums", Start: 10, Cache: 5})
	if got := mustTake(t, s, "albums", 1); got != 10 {
		t.Errorf("got %d, want 10", got)
	}
	if _, err := s.Drop(context.Background(), []byte("albums"), false); err != nil {
		t.Errorf("Drop: %v", err)
	}
	if made := mustCreate(t, s, sequence.CreateOptions{Name: "albums"}); !made.Raised {
		t.Errorf("Create says %+v, want it raised", made)
	}
	closeNow(t, s)
}

func TestServerIsReachedByItsSocket(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, func(o *sequence.Options) { o.Servers[0].Network, o.Servers[0].Addr = "unix", p.server.Socket() })
	if got := mustTake(t, s, "photos", 1); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}

func TestOptionsTableThatVanishesIsNoticed(t *testing.T) {
	p := newPlace(t).withAll(t, nil)
	s := p.open(t, steadySize(10), forbidden)
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Cache: 2})
	h := newGivenEver()
	take := func(s *sequence.Sequences, n int) error {
		for range n {
			n, err := s.Take(t.Context(), []byte("photos"), 1)
			if err != nil {
				return err
			}
			h.add(t, "photos", n)
		}
		return nil
	}
	if err := take(s, 1); err != nil {
		t.Fatal(err)
	}
	settled(t, s, "photos")
	p.exec(t, "DROP TABLE sequence_options")
	s.Tune(sequence.Tuning{CacheSize: 10, OutageCover: time.Nanosecond, AllocateTimeout: time.Second})
	if err := take(s, 1000); err == nil {
		t.Error("numbers are given for ever although the table of options is gone")
	}
	late := p.open(t)
	if err := take(late, 20); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %v, want ErrUnfit", err)
	}
	p.withAll(t, nil)
	eventually(t, "it goes on", func() bool { return take(late, 20) == nil })
	eventually(t, "the first proxy goes on", func() bool { return take(s, 20) == nil })
}

func TestSchemaIsCreatedWithItsTable(t *testing.T) {
	p := newPlace(t)
	p.exec(t, "DROP DATABASE "+p.schema)
	without := p.open(t, patience(20*time.Second), forbidden)
	if _, err := without.List(context.Background()); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("without create_table: got %v, want ErrUnfit", err)
	}
	s := p.open(t, func(o *sequence.Options) { o.CreateTable = true })
	mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
	if got := mustTake(t, s, "photos", 1); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}

func TestSchemaThatMayNotBeCreatedIsToldWithWhatToGrant(t *testing.T) {
	p := newPlace(t)
	p.exec(t, "DROP DATABASE "+p.schema)
	s := p.open(t, p.user(t, ""), patience(time.Minute), func(o *sequence.Options) { o.CreateTable = true })
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second) // waiting does not help
	defer stop()
	_, err := s.Take(ctx, []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %v, want ErrUnfit", err)
	}
	wantText(t, err, "denied", "CREATE DATABASE `"+p.schema+"`", "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `"+p.schema+"`.* TO the user", "[sequence]", "configuration file")

	// With the schema it works.
	p.exec(t, "CREATE DATABASE "+p.schema)
	s = p.open(t, p.user(t, "SELECT, INSERT, UPDATE, DELETE, CREATE"), func(o *sequence.Options) { o.CreateTable = true })
	mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
	mustTake(t, s, "photos", 1)
}

// An account with rights on only the one table does not see the options table, and would miss
// tombstones: a name that was dropped elsewhere would begin again at 1.
func TestTombstonesAreNotOverlookedForWantOfRights(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"albums": 0})
	a := p.open(t)
	mustCreate(t, a, sequence.CreateOptions{Name: "photos"})
	given := mustTake(t, a, "photos", 1)
	if _, err := a.Drop(context.Background(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}

	as := p.user(t, "")
	p.grant(t, as, "SELECT, INSERT, UPDATE, DELETE", "sequence")
	b := p.open(t, as, patience(20*time.Second))
	if _, err := b.Create(context.Background(), sequence.CreateOptions{Name: "photos"}); err == nil {
		if again := mustTake(t, b, "photos", 1); again <= given {
			t.Fatalf("got %d, which was given before", again)
		}
	} else {
		if !errors.Is(err, sequence.ErrUnfit) {
			t.Errorf("got %v, want ErrUnfit", err)
		}
		wantText(t, err, "sequence_options", "GRANT SELECT")
	}
}

// Once the tables exist the right to make them may be revoked, and a fail-over still works.
func TestAGroupFailsOverWithoutTheRightToMakeTables(t *testing.T) {
	e := startEstate(t, 2, "photos")
	e.Nodes[0].Exec(t, "CREATE USER seq@'%' IDENTIFIED BY 'hush-hush'", "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON app.* TO seq@'%'")
	e.CatchUp(t, 1, 0)
	as := func(o *sequence.Options) { o.Servers[0].User, o.Servers[0].Password = "seq", "hush-hush" }
	given := mustTake(t, e.join(t, "before", nil, as).Sequences, "photos", 1)
	e.Nodes[0].Exec(t, "REVOKE CREATE ON app.* FROM seq@'%'")
	e.CatchUp(t, 1, 0)
	e.Nodes[0].Exec(t, "SET GLOBAL read_only = 1")
	e.Promote(t, 1)
	if next := mustTake(t, e.join(t, "after", nil, as).Sequences, "photos", 1); next <= given {
		t.Errorf("got %d after %d", next, given)
	}
}
