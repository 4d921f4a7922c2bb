package sequence_test

import (
	"context"
	"database/sql"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/link"
	"seqproxy/test/mysqltest"
)

// A server that was restarted, or that ends idle connections, has closed those that a proxy keeps.
// The proxy's clean stop succeeds all the same, and leaves no gap.
func TestCloseDoesNotMindConnectionsThatAreClosedAlready(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	link := mysqltest.NewLink(t, p.server.Addr())
	const conns = 4
	s := p.open(t, steadySize(20), func(o *sequence.Options) { o.Servers[0].Addr, o.Servers[0].MaxConns = link.Addr(), conns })
	mustTake(t, s, "photos", 1)
	sequence.Inside(s).StopFollowing() // a later query would notice
	defer sequence.Inside(s).FollowAgain()
	pool := sequence.Inside(s).First().Pool()
	var kept []*sql.Conn
	for range conns {
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, conn)
	}
	for _, conn := range kept {
		if err := conn.Close(); err != nil { // this returns it to the pool
			t.Fatal(err)
		}
	}
	if idle := pool.Stats().Idle; idle != conns {
		t.Fatalf("%d connections are kept, want %d", idle, conns)
	}
	link.Cut()
	link.Mend()
	if err := s.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if id := p.id(t, "photos"); id != 1 {
		t.Errorf("the row is at %d, want 1: the numbers were given back", id)
	}
	var registered int
	if err := p.db.QueryRow("SELECT COUNT(*) FROM sequence_proxy").Scan(&registered); err != nil || registered != 0 {
		t.Errorf("%d proxies are registered, %v, want none", registered, err)
	}
}

// A caller leaves at the very moment when its reservation succeeds, which closes the connection. No
// other caller gets it, whose statement would end with an unknown outcome.
func TestAConnectionWhoseCallerLeftAtTheLastMomentIsNobodyElses(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t)
	mustTake(t, s, "photos", 1)
	sequence.Inside(s).StopFollowing() // no other caller takes a connection
	defer sequence.Inside(s).FollowAgain()
	ask := func(ctx context.Context, conn *sql.Conn) {
		t.Helper()
		if _, err := conn.ExecContext(ctx, "DO 1"); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		conn, err := sequence.Inside(s).First().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		unwatched, unwatch, err := link.CloseWhenDone(ctx, conn)
		if err != nil {
			t.Fatal(err)
		}
		ask(unwatched, conn)
		leave()
		unwatch()
		_ = conn.Close() // it may be closed
		if conn, err = sequence.Inside(s).First().Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		ask(t.Context(), conn)
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
