package sequence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// user makes an account with rights in the place's schema and returns what logs in as it.
func (p place) user(t testing.TB, rights string) func(*Options) {
	t.Helper()
	name := fmt.Sprintf("u%08x", rand.Uint32())
	p.exec(t, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY 'hush-hush'", name))
	t.Cleanup(func() { p.exec(t, fmt.Sprintf("DROP USER '%s'@'%%'", name)) })
	if rights != "" {
		p.exec(t, fmt.Sprintf("GRANT %s ON `%s`.* TO '%s'@'%%'", rights, p.schema, name))
	}
	return func(o *Options) { o.Servers[0].User, o.Servers[0].Password = name, "hush-hush" }
}

func TestOrdinaryRightsAndOneConnectionAreEnough(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, p.user(t, "SELECT, INSERT, UPDATE, DELETE, CREATE"), steadySize(4), func(o *Options) {
		o.CreateTable, o.Servers[0].MaxConns = true, 1
	})
	mustCreate(t, s, CreateOptions{Name: "photos"})
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
	mustCreate(t, s, CreateOptions{Name: "albums", Cache: 5})
	mustTake(t, s, "albums", 1)
	if _, err := s.Drop(context.Background(), []byte("photos"), false); err != nil {
		t.Errorf("Drop: %v", err)
	}
	if infos, err := s.List(context.Background()); err != nil || len(infos) != 1 {
		t.Errorf("List = %+v, %v; want albums", infos, err)
	}
}

func TestReservingNeedsOnlySelectAndUpdate(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, p.user(t, "SELECT, UPDATE"))
	if got := mustTake(t, s, "photos", 1); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
	var unavailable *UnavailableError
	_, err := s.Create(context.Background(), CreateOptions{Name: "albums", Cache: 5})
	if !errors.As(err, &unavailable) {
		t.Errorf("CREATE without the right: got %v, want an UnavailableError", err)
	}
	wantText(t, err, "albums", "denied")
	if _, err = s.Drop(context.Background(), []byte("photos"), false); !errors.As(err, &unavailable) {
		t.Errorf("DROP without the right: got %v, want an UnavailableError", err)
	}
	if got := mustTake(t, s, "photos", 1); got != 2 {
		t.Errorf("after the refused DROP got %d, want 2", got)
	}
}

func TestTableThatTheUserMayNotSeeIsToldAsSuch(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, p.user(t, ""), patience(time.Second))
	_, err := s.Take(context.Background(), []byte("photos"), 1)
	if !errors.Is(err, ErrUnfit) {
		t.Errorf("got %v, want ErrUnfit", err)
	}
	wantText(t, err, "may not see it", "GRANT")
}

func TestServerIsReachedByItsSocket(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, func(o *Options) { o.Servers[0].Network, o.Servers[0].Addr = "unix", p.server.Socket() })
	if got := mustTake(t, s, "photos", 1); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}

func TestOptionsTableThatVanishesIsNoticed(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	s := p.open(t, steadySize(10))
	mustCreate(t, s, CreateOptions{Name: "photos", Cache: 2})
	last := mustTake(t, s, "photos", 1)
	settled(t, s, "photos")
	p.exec(t, "DROP TABLE sequence_options")
	for range 50 {
		n := mustTake(t, s, "photos", 1)
		if n <= last {
			t.Fatalf("got %d after %d", n, last)
		}
		last = n
	}
}
