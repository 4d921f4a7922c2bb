package sequence_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// readOnlyStart is a way to start a server on which nobody may write, whatever the rights.
type readOnlyStart struct{ option, finding string }

// readOnlyStarts are those of a server.
func readOnlyStarts(s *mysqltest.Server) []readOnlyStart {
	all := []readOnlyStart{{"--innodb-read-only", "innodb_read_only"}}
	if s.IsMariaDB() {
		return append(all, readOnlyStart{"--innodb-force-recovery=6", "innodb_read_only"})
	}
	return append(all, readOnlyStart{"--super-read-only", "it is read only"}, readOnlyStart{"--innodb-force-recovery=1", "innodb_force_recovery"})
}

// A server that was started so that nobody may write is refused at once, with that as the reason.
// It is used when that is over.
func TestServerThatWasStartedReadOnlyIsRefusedUntilItIsWritable(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0})
	// in use, and with a table to register in
	s := p.open(t, patience(time.Minute), steadySize(2))
	last := mustTake(t, s, "photos", 1)
	for _, way := range readOnlyStarts(p.server) {
		if err := p.server.RestartWith(way.option); err != nil {
			t.Fatal(err)
		}
		for what, s := range map[string]*sequence.Sequences{"in use": s, "new": p.open(t, patience(time.Minute))} {
			var err error
			for begin := time.Now(); err == nil; {
				if _, err = s.Take(context.Background(), []byte("photos"), 1); time.Since(begin) > 30*time.Second {
					t.Fatalf("%s, %s: numbers without end", way.option, what)
				}
			}
			if !errors.Is(err, sequence.ErrUnfit) {
				t.Errorf("%s, %s: got %v, want ErrUnfit", way.option, what, err)
			}
			wantText(t, err, "read only", way.finding, "name the primary", p.server.Addr())
		}
		if err := p.server.RestartWith(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the writable server is used", func() bool {
			next, err := s.Take(context.Background(), []byte("photos"), 1)
			if err == nil && next <= last {
				t.Fatalf("%s: got %d after %d", way.option, next, last)
			}
			last = max(last, next)
			return err == nil
		})
	}
}

// The account may write to a server that was made read only. A proxy does that once for each
// connection, and not with each attempt.
func TestAServerThatWasMadeReadOnlyIsWrittenToNoMore(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(2))
	mustTake(t, s, "photos", 1)
	settled(t, s, "photos")
	sequence.Inside(s).Waits(2 * time.Second)
	p.exec(t, "SET GLOBAL read_only = 1")
	before, failed := p.id(t, "photos"), 0
	eventually(t, "many attempts fail", func() bool {
		if _, err := s.Take(context.Background(), []byte("photos"), 1); err != nil {
			failed++
		}
		return failed >= 300
	})
	if moved := p.id(t, "photos") - before; moved > 8 {
		t.Errorf("the row has moved by %d, want no more than its connections reserve", moved)
	}
}

// An ORDER sequence was altered on the new primary, and the old one has replicated that. A proxy
// with a connection to the old one gives no number of it.
func TestAnOrderSequenceThatWasAlteredOnAServerMadeReadOnlyGivesNothing(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withAll(t, nil)
	s := p.open(t)
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Order: true})
	mustTake(t, s, "photos", 1)
	mustTake(t, s, "photos", 1)
	p.exec(t, "SET GLOBAL read_only = 1")
	p.exec(t, "UPDATE sequence_options SET version = version + 1 WHERE name = 'photos'")
	if n, err := s.Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %d, %v, want ErrUnfit", n, err)
	}
}

// The primary of a group becomes read only while proxies have connections to it, in each way that
// servers have, and the other node is promoted: numbers continue there.
func TestAPrimaryThatBecomesReadOnlyIsLeft(t *testing.T) {
	e := startEstate(t, 2, "photos")
	e.Nodes[0].Exec(t, "CREATE USER seq@'%' IDENTIFIED BY 'hush-hush'", "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON app.* TO seq@'%'")
	e.CatchUp(t, 1, 0)
	all := &given{}
	plain := e.join(t, "plain", all, steadySize(10), func(o *sequence.Options) { o.Servers[0].User, o.Servers[0].Password = "seq", "hush-hush" })
	super := e.join(t, "super", all, steadySize(10))

	primary := 0
	moves := func(how string, makeReadOnly, over func(*mysqltest.Server)) {
		t.Helper()
		plain.take(t, "plain", "photos", 25)
		super.take(t, "super", "photos", 25)
		other, before := 1-primary, plain.logs.FilterMessage("sequence node changed").Len()
		e.CatchUp(t, other, primary)
		makeReadOnly(e.Nodes[primary])
		e.Promote(t, other)
		for range 10 {
			plain.take(t, "plain", "photos", 10)
			super.take(t, "super", "photos", 10)
		}
		if plain.logs.FilterMessage("sequence node changed").Len() == before {
			t.Errorf("%s: no change is logged, want one", how)
		}
		over(e.Nodes[primary])
		e.Follow(t, primary, other)
		e.CatchUp(t, primary, other)
		primary = other
	}
	nothing := func(*mysqltest.Server) {}
	moves("read_only", func(s *mysqltest.Server) { s.Exec(t, "SET GLOBAL read_only = 1") }, nothing)
	if !e.Nodes[0].IsMariaDB() {
		moves("super_read_only", func(s *mysqltest.Server) { s.Exec(t, "SET GLOBAL super_read_only = 1") },
			func(s *mysqltest.Server) { s.Exec(t, "SET GLOBAL super_read_only = 0") })
	}
	for _, way := range readOnlyStarts(e.Nodes[0]) {
		restart := func(options ...string) func(*mysqltest.Server) {
			return func(s *mysqltest.Server) {
				if err := s.RestartWith(options...); err != nil {
					t.Fatal(err)
				}
			}
		}
		moves(way.option, restart(way.option), restart())
	}
}
