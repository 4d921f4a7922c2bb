package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/stats"
	"seqproxy/test/mysqltest"
)

// ledger records every number that anybody gave.
type ledger struct {
	mu    sync.Mutex
	given map[uint64]string
}

// add fails the test if one of n numbers from first on was given before.
func (l *ledger) add(t testing.TB, who string, first, n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given == nil {
		l.given = make(map[uint64]string)
	}
	for number := first; number < first+n; number++ {
		if before, twice := l.given[number]; twice {
			t.Errorf("%d was given to %s and to %s", number, before, who)
		}
		l.given[number] = who
	}
}

// take adds n numbers, taken one by one.
func (l *ledger) take(t testing.TB, who string, s *sequence.Sequences, name string, n int) {
	t.Helper()
	for range n {
		l.add(t, who, mustTake(t, s, name, 1), 1)
	}
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.given)
}

func TestTwoProxiesAndAnApplicationShareOneCounter(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	var book ledger
	var wg sync.WaitGroup
	for proxy := range 2 {
		s := p.open(t, steadySize(20))
		for client := range 4 {
			wg.Go(func() {
				who := fmt.Sprintf("proxy %d client %d", proxy, client)
				last := uint64(0)
				for i := range 1500 {
					n := uint64(1 + i%7)
					first, err := s.Take(context.Background(), []byte("photos"), n)
					if err != nil {
						t.Errorf("%s: %v", who, err)
						return
					}
					if first <= last {
						t.Errorf("%s: got %d after %d, want rising numbers", who, first, last)
					}
					last = first + n - 1
					book.add(t, who, first, n)
				}
			})
		}
	}
	wg.Go(func() {
		conn, err := p.db.Conn(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		for range 300 {
			result, err := conn.ExecContext(context.Background(), "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'")
			if err != nil {
				t.Errorf("application: %v", err)
				return
			}
			id, _ := result.LastInsertId()
			book.add(t, "application", uint64(id), 1)
		}
	})
	wg.Wait()
	if got, want := book.count(), 2*4*5995+300; got != want {
		// 1500 takes of 1 to 7 are 5995 numbers
		t.Errorf("got %d distinct numbers, want %d", got, want)
	}
}

func TestKilledServerNeverMakesADuplicateAndHealsByItself(t *testing.T) {
	server := mysqltest.Start(t)
	p := placeOn(t, server).withTable(t, map[string]uint64{"photos": 0})
	var book ledger
	var wg sync.WaitGroup
	var stop atomic.Bool
	var refused, afterwards atomic.Int64
	var healed atomic.Bool
	for proxy := range 2 {
		s := p.open(t, steadySize(15), patience(50*time.Millisecond))
		for client := range 3 {
			wg.Go(func() {
				last := uint64(0)
				for !stop.Load() {
					first, err := s.Take(context.Background(), []byte("photos"), 2)
					var unavailable *sequence.UnavailableError
					switch {
					case errors.As(err, &unavailable):
						refused.Add(1)
						continue
					case err != nil:
						t.Errorf("got %v, want numbers or an UnavailableError", err)
						return
					case first <= last:
						t.Errorf("got %d after %d, want rising numbers", first, last)
					}
					last = first + 1
					book.add(t, fmt.Sprintf("proxy %d client %d", proxy, client), first, 2)
					if healed.Load() {
						afterwards.Add(1)
					}
				}
			})
		}
	}
	for range 3 {
		time.Sleep(150 * time.Millisecond)
		p.kill(t)
		time.Sleep(150 * time.Millisecond)
		p.restart(t)
	}
	healed.Store(true)
	eventually(t, "numbers are given again after the last restart", func() bool { return afterwards.Load() > 1000 })
	stop.Store(true)
	wg.Wait()
	if refused.Load() == 0 {
		t.Error("no caller ever noticed the outage, so the test shows nothing")
	}
	t.Logf("%d numbers, %d refusals", book.count(), refused.Load())
}

func TestProxyStartsWhileItsServerIsDown(t *testing.T) {
	server := mysqltest.Start(t)
	p := placeOn(t, server).withTable(t, map[string]uint64{"photos": 0})
	p.kill(t)
	s := p.open(t, patience(500*time.Millisecond))
	_, err := s.Take(context.Background(), []byte("photos"), 1)
	var unavailable *sequence.UnavailableError
	if !errors.As(err, &unavailable) {
		t.Fatalf("got %v, want an UnavailableError", err)
	}
	wantText(t, err, "photos", server.Addr(), "refused")
	if _, err := s.Exists(context.Background(), []byte("photos")); !errors.As(err, &unavailable) {
		t.Errorf("Known: got %v, want an UnavailableError: it cannot be known", err)
	}
	if _, err := s.List(context.Background()); !errors.As(err, &unavailable) {
		t.Errorf("List: got %v, want an UnavailableError", err)
	}
	p.restart(t)
	eventually(t, "numbers are given", func() bool {
		_, err := s.Take(context.Background(), []byte("photos"), 1)
		return err == nil
	})
}

func TestNumbersGoOnFromMemoryWhileTheServerIsDown(t *testing.T) {
	server := mysqltest.Start(t)
	p := placeOn(t, server).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(500))
	mustTake(t, s, "photos", 1)
	mustTake(t, s, "PHOTOS", 1)
	settled(t, s, "photos")
	p.kill(t)
	s.Tune(sequence.Tuning{CacheSize: 500, OutageCover: time.Nanosecond, AllocateTimeout: time.Second, CreateTable: true})
	for want := uint64(3); want <= 500; want++ {
		name := []string{"photos", "PHOTOS"}[want%2]
		if got := mustTake(t, s, name, 1); got != want {
			t.Fatalf("in the outage got %d, want %d", got, want)
		}
	}
	_, err := s.Take(context.Background(), []byte("photos"), 1)
	var unavailable *sequence.UnavailableError
	if !errors.As(err, &unavailable) {
		t.Errorf("with nothing left got %v, want an UnavailableError", err)
	}
	if got := s.Stats(); got.Given != 500 || got.Cached != 0 {
		t.Errorf("in the outage Stats says %+v, want 500 given and 0 left", got)
	}
	p.restart(t)
	eventually(t, "the next segment is fetched by itself", func() bool { return s.Stats().Cached > 0 })
	if got := mustTake(t, s, "photos", 1); got <= 500 {
		t.Errorf("after the outage got %d, want more than 500", got)
	}
}

func TestReservationWithUnknownOutcomeIsNeverUsed(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	link := mysqltest.NewLink(t, p.server.Addr())
	s := p.open(t, steadySize(10), patience(5*time.Second), seldomHearing, func(o *sequence.Options) { o.Servers[0].Addr = link.Addr() })
	mustTake(t, s, "photos", 10)
	settled(t, s, "photos")
	mustTake(t, s, "photos", 10)
	settled(t, s, "photos")
	before := p.id(t, "photos")
	cached := s.Stats().Cached

	link.LoseAnswers() // the statement is executed, and its answer is lost
	answer := make(chan uint64, 1)
	go func() {
		defer close(answer)
		answer <- mustTake(t, s, "photos", cached+50)
	}()
	eventually(t, "the answer is lost although the row moved", func() bool { return link.Lost() > 0 && p.id(t, "photos") > before })
	lostUpTo := p.id(t, "photos")
	link.Mend()
	if first := <-answer; first <= lostUpTo {
		t.Errorf("got %d, want more than %d: the lost range may not be used", first, lostUpTo)
	}
	if got := s.Stats().Unused[stats.UnusedUnknownCommit]; got < cached+50 {
		t.Errorf("got %d numbers counted as lost, want %d or more", got, cached+50)
	}
}

func TestRowThatGoesBackIsRaisedAndLogged(t *testing.T) {
	for _, column := range []string{"BIGINT UNSIGNED", "BIGINT", "INT"} {
		t.Run(column, func(t *testing.T) {
			p := newPlace(t).withTable(t, map[string]uint64{"photos": 5000})
			p.exec(t, "ALTER TABLE sequence MODIFY id "+column+" NOT NULL")
			core, logs := observer.New(zap.ErrorLevel)
			s := p.open(t, steadySize(10), func(o *sequence.Options) { o.Logger = zap.New(core) })
			last := mustTake(t, s, "photos", 10) + 9
			settled(t, s, "photos")
			p.exec(t, "UPDATE sequence SET id = 0")
			for range 60 {
				n := mustTake(t, s, "photos", 1)
				if n <= last {
					t.Fatalf("got %d after %d although the row had gone back", n, last)
				}
				last = n
			}
			if got := rewinds(s); got != 1 {
				t.Errorf("got %d rewinds counted, want 1", got)
			}
			if got := logs.FilterField(zap.String("remedy", "REPAIR SEQUENCE `photos`")).Len(); got != 1 {
				t.Errorf("got %d errors logged with the cure, want 1", got)
			}
			if got := logs.FilterField(zap.String("sequence", "photos")).Len(); got != 1 {
				t.Errorf("got %d errors logged about it, want 1", got)
			}
			if got := p.id(t, "photos"); got < last {
				t.Errorf("the row is at %d, want at least %d", got, last)
			}
		})
	}
}

func TestCloseGivesBackOnlyWhereNobodyReservedAfter(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"alone": 0, "shared": 0, "unused": 7})
	s := p.open(t, steadySize(100))
	mustTake(t, s, "alone", 3)
	mustTake(t, s, "shared", 3)
	if _, err := s.Exists(context.Background(), []byte("unused")); err != nil {
		t.Fatal(err)
	}
	settled(t, s, "shared")
	// an application that counts there itself
	p.exec(t, "UPDATE sequence SET id = id + 5 WHERE name = 'shared'")
	if err := s.Close(context.Background()); err != nil {
		t.Fatalf("Close: %v", err)
	}
	for name, want := range map[string]uint64{"alone": 3, "shared": 105, "unused": 7} {
		if got := p.id(t, name); got != want {
			t.Errorf("after Close the row of %q is at %d, want %d", name, got, want)
		}
	}
	if got := s.Stats().Unused[stats.UnusedReturned]; got != 97 {
		t.Errorf("got %d numbers counted as returned, want 97", got)
	}
	// Nothing is lost, nothing is given twice.
	again := p.open(t)
	if got := mustTake(t, again, "alone", 1); got != 4 {
		t.Errorf("the next proxy begins at %d, want 4", got)
	}
	if got := mustTake(t, again, "shared", 1); got != 106 {
		t.Errorf("the next proxy begins at %d, want 106", got)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if _, err := s.Exists(context.Background(), []byte("alone")); !errors.Is(err, sequence.ErrClosed) {
		t.Errorf("Known after Close: got %v, want ErrClosed", err)
	}
	if _, err := s.List(context.Background()); !errors.Is(err, sequence.ErrClosed) {
		t.Errorf("List after Close: got %v, want ErrClosed", err)
	}
	if _, err := s.Create(context.Background(), sequence.CreateOptions{Name: "late"}); !errors.Is(err, sequence.ErrClosed) {
		t.Errorf("Create after Close: got %v, want ErrClosed", err)
	}
	if _, err := s.Drop(context.Background(), []byte("alone"), false); !errors.Is(err, sequence.ErrClosed) {
		t.Errorf("Drop after Close: got %v, want ErrClosed", err)
	}
}

// Callers take numbers all the time while a proxy is closed: it returns those that no caller has,
// and loses none.
func TestCloseGivesBackNothingThatACallerHas(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	var book ledger
	last := uint64(0)
	for round := range 5 {
		s := p.open(t, stateIn(t.TempDir()), steadySize(50), patience(30*time.Second))
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for {
					n, err := s.Take(context.Background(), []byte("photos"), 1)
					if err != nil {
						if !errors.Is(err, sequence.ErrClosed) {
							t.Errorf("got %v, want ErrClosed", err)
						}
						return
					}
					book.add(t, fmt.Sprint("round ", round), n, 1)
				}
			})
		}
		before := book.count()
		eventually(t, "many numbers are given", func() bool { return book.count() > before+500 })
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		callers.Wait()
		if id := p.id(t, "photos"); id != uint64(book.count()) || id <= last {
			t.Errorf("round %d: the row has %d after %d numbers, want all others given back", round, id, book.count())
		}
		last = p.id(t, "photos")
	}
}

func TestCloseWithoutEverConnectingDoesNothing(t *testing.T) {
	s, err := sequence.New(sequence.Options{Servers: []sequence.ServerOptions{{Addr: "127.0.0.1:1", Database: "app"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestLockedRowIsWaitedForAndRetried(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, patience(10*time.Second))
	if _, err := s.Exists(context.Background(), []byte("photos")); err != nil {
		t.Fatal(err)
	}
	tx, err := p.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE sequence SET id = 1000 WHERE name = 'photos'"); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() {
		n, err := s.Take(context.Background(), []byte("photos"), 1)
		if err == nil && n != 1001 {
			err = fmt.Errorf("got %d, want 1001", n)
		}
		answer <- err
	}()
	eventually(t, "the lock wait ends and is retried", func() bool { return s.Stats().Retries > 0 })
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Error(err)
	}
	if got := s.Stats().Unused; got.Sum() != 0 {
		t.Errorf("numbers are counted as unused: %v, want none: the server undid the statement", got)
	}
}

func TestNumbersBeyondTheSignedRangeAndUpToTheVeryLast(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"big": math.MaxInt64 - 1, "end": math.MaxUint64 - 3})
	s := p.open(t)
	for want := uint64(math.MaxInt64); want < math.MaxInt64+3; want++ {
		if got := mustTake(t, s, "big", 1); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	for want := uint64(math.MaxUint64 - 2); want != 0; want++ {
		if got := mustTake(t, s, "end", 1); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	for range 2 {
		if n, err := s.Take(context.Background(), []byte("end"), 1); !errors.Is(err, sequence.ErrExhausted) {
			t.Errorf("after 2^64-1 got %d, %v; want ErrExhausted", n, err)
		}
	}
	infos, err := s.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if infos[1].Name != "end" || infos[1].Next != 0 || infos[1].Cached != 0 {
		t.Errorf("List says %+v, want end with nothing left", infos[1])
	}
}

func TestSmallerColumnIsTheMaximumUntilItIsWidened(t *testing.T) {
	for _, c := range []struct {
		column string
		max    uint64
	}{
		{"TINYINT", 127}, {"SMALLINT UNSIGNED", 65535}, {"INT", math.MaxInt32}, {"BIGINT", math.MaxInt64},
	} {
		t.Run(c.column, func(t *testing.T) {
			p := newPlace(t)
			p.exec(t, "CREATE TABLE sequence (name varchar(50) PRIMARY KEY, id "+c.column+" NOT NULL) ENGINE=InnoDB")
			p.exec(t, "INSERT INTO sequence VALUES ('photos', ?)", c.max-2)
			s := p.open(t)
			for want := c.max - 1; want <= c.max; want++ {
				if got := mustTake(t, s, "photos", 1); got != want {
					t.Fatalf("got %d, want %d", got, want)
				}
			}
			n, err := s.Take(context.Background(), []byte("photos"), 1)
			if !errors.Is(err, sequence.ErrExhausted) {
				t.Fatalf("after the maximum got %d, %v; want ErrExhausted", n, err)
			}
			infos, err := s.List(context.Background())
			if err != nil || len(infos) != 1 || infos[0].Next != 0 {
				t.Errorf("List says %+v, %v; want no next number", infos, err)
			}
			if got := p.id(t, "photos"); got != c.max {
				t.Errorf("the row is at %d, want %d", got, c.max)
			}
			p.exec(t, "ALTER TABLE sequence MODIFY id BIGINT UNSIGNED NOT NULL")
			if got := mustTake(t, s, "photos", 1); got != c.max+1 {
				t.Errorf("after ALTER TABLE got %d, want %d", got, c.max+1)
			}
		})
	}
}

func TestCrashLosesAtMostTheTypedCache(t *testing.T) {
	for _, n := range []uint64{1, 2, 10} {
		p := newPlace(t).withTable(t, nil)
		s := p.open(t)
		if _, err := s.Create(context.Background(), sequence.CreateOptions{Name: "photos", Cache: n}); err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			size := uint64(1)
			if i%9 == 8 {
				size = n + 3
			}
			last := mustTake(t, s, "photos", size) + size - 1
			settled(t, s, "photos")
			if lost := p.id(t, "photos") - last; lost > n {
				t.Fatalf("CACHE %d: a crash after %d would lose %d numbers", n, last, lost)
			}
		}
	}
}

func TestStalledServerDelaysNobodyBeyondTheAllocateTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	s, err := sequence.New(sequence.Options{
		Servers: []sequence.ServerOptions{{Addr: l.Addr().String(), User: "root", Password: "hush-hush", Database: "app", DialTimeout: time.Minute, IOTimeout: time.Minute}},
		Tuning:  sequence.Tuning{AllocateTimeout: 200 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	_, err = s.Take(context.Background(), []byte("photos"), 1)
	var unavailable *sequence.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Waited < 100*time.Millisecond {
		t.Errorf("got %v, want an UnavailableError after 200ms, of which a busy machine may have taken some before the wait", err)
	}
	for what, f := range map[string]func() error{
		"Create": func() error {
			_, err := s.Create(context.Background(), sequence.CreateOptions{Name: "photos"})
			return err
		},
		"Drop": func() error { _, err := s.Drop(context.Background(), []byte("photos"), true); return err },
		"List": func() error { _, err := s.List(context.Background()); return err },
	} {
		if err := endsSoon(f); !errors.As(err, &unavailable) {
			t.Errorf("%s: got %v, want an UnavailableError", what, err)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the client has gone")
	cancel(gone)
	if _, err := s.Take(ctx, []byte("photos"), 1); !errors.Is(err, gone) {
		t.Errorf("with a cancelled context got %v, want its cause", err)
	}
}

func TestWrongPasswordIsToldWithoutThePassword(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, patience(2*time.Second), func(o *sequence.Options) {
		o.Servers[0].User, o.Servers[0].Password = "nobody", "hush-hush"
	})
	refusedWith(t, func() error {
		_, err := s.Take(context.Background(), []byte("photos"), 1)
		if err != nil && strings.Contains(err.Error(), "hush-hush") {
			t.Errorf("the password is in %q", err)
		}
		return err
	}, "1045", "nobody", p.server.Addr())
}

func TestReservationsNeverUseAClientsSettings(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t)
	mustTake(t, s, "photos", 1)
	conn, err := sequence.Inside(s).First().Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	isolation, readOnly := "@@transaction_isolation", "@@transaction_read_only"
	if p.server.IsMariaDB() {
		isolation, readOnly = "@@tx_isolation", "@@tx_read_only"
	}
	for variable, want := range map[string]string{
		"@@autocommit": "1", isolation: "REPEATABLE-READ", "@@innodb_lock_wait_timeout": "2", readOnly: "0",
	} {
		var got sql.NullString
		if err := conn.QueryRowContext(context.Background(), "SELECT "+variable).Scan(&got); err != nil || got.String != want {
			t.Errorf("%s is %q, %v; want %q", variable, got.String, err, want)
		}
	}
}

// A change of definitions hangs in the middle. Its locks delay no reservation of another sequence,
// nor the repair of a row that went back.
func TestNoReservationWaitsForAChangeOfDefinitions(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(5), patience(20*time.Second))
	mustCreate(t, s, sequence.CreateOptions{Name: "albums"})
	last := uint64(0)
	for range 20 {
		last = mustTake(t, s, "photos", 1)
	}
	settled(t, s, "photos")
	tx, err := p.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, text := range []string{
		"SELECT id FROM sequence WHERE name = 'albums' FOR UPDATE", "SELECT version FROM sequence_version WHERE one = 1 FOR UPDATE",
		"SELECT plan FROM sequence_member WHERE one = 1 LOCK IN SHARE MODE", "SELECT uuid FROM sequence_plan LOCK IN SHARE MODE",
		"SELECT cache FROM sequence_options WHERE name = 'albums' FOR UPDATE",
	} {
		if _, err := tx.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	p.exec(t, "UPDATE sequence SET id = 0 WHERE name = 'photos'")
	for range 20 {
		if n := mustTake(t, s, "photos", 1); n <= last {
			t.Fatalf("got %d after %d", n, last)
		}
	}
	if got := rewinds(s); got == 0 {
		t.Error("no row was raised, so this shows little")
	}
}
