package sequence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"

	"seqproxy/internal/await"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// locked keeps the row of photos, and the name albums, until the test ends.
func (p place) locked(t *testing.T) {
	t.Helper()
	tx, err := p.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	for _, text := range []string{"UPDATE sequence SET id = 1000 WHERE name = 'photos'", "INSERT INTO sequence VALUES ('albums', 0)"} {
		if _, err := tx.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWaitForALockEndsInTimeAndIsToldAsSuch(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	p.withOptions(t)
	const limit = 4800 * time.Millisecond // the server gives up after 2 to 3 seconds
	s := p.open(t, patience(limit))
	creating := p.open(t, patience(limit), func(o *sequence.Options) { o.CreateUnknown = true })
	p.locked(t)
	ctx := context.Background()
	var wg sync.WaitGroup
	for what, f := range map[string]func() error{
		"Take": func() error { _, err := s.Take(ctx, []byte("photos"), 1); return err },
		"Drop": func() error { _, err := s.Drop(ctx, []byte("photos"), false); return err },
		"Create": func() error {
			_, err := s.Create(ctx, sequence.CreateOptions{Name: "albums"})
			return err
		},
		"Take that creates": func() error { _, err := creating.Take(ctx, []byte("albums"), 1); return err },
	} {
		wg.Go(func() {
			err := endsSoon(f)
			var unavailable *sequence.UnavailableError
			if !errors.As(err, &unavailable) || unavailable.Waited < 2*time.Second {
				t.Errorf("%s: got %v, want an UnavailableError that says how long it waited", what, err)
			}
			wantText(t, err, "1205")
		})
	}
	wg.Wait()
}

// The first INSERT asks for the owned columns, while another goroutine may wait for a server that
// does not answer.
func TestWhoAsksForOwnersDoesNotWaitForAnotherThatDoes(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	s := p.open(t, patience(50*time.Millisecond))
	sequence.Inside(s).StopFollowing()
	defer sequence.Inside(s).FollowAgain()
	answer := make(chan error, 1)
	go func() {
		_, err := s.LoadOwners(context.Background())
		answer <- err
	}()
	select {
	case err := <-answer:
		if unavailable := new(sequence.UnavailableError); !errors.As(err, &unavailable) {
			t.Errorf("got %v, want an UnavailableError", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits for ever")
	}
}

func TestCloseDoesNotWaitForALockedRow(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	p.withOptions(t)
	s := p.open(t, patience(time.Minute))
	p.locked(t)
	answers := make(chan error, 2)
	go func() {
		_, err := s.Drop(context.Background(), []byte("photos"), false)
		answers <- err
	}()
	go func() {
		_, err := s.Create(context.Background(), sequence.CreateOptions{Name: "albums"})
		answers <- err
	}()
	p.lockWait(t)
	ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	if err := endsSoon(func() error { return s.Close(ctx) }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: got %v, want its deadline", err)
	}
	for range 2 {
		if err := <-answers; !errors.Is(err, sequence.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
}

// All waiting callers share one timer: each gets its answer when its own patience is over, whatever
// that of the others is.
func TestEachCallerWaitsForAsLongAsItsOwnPatience(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, patience(time.Minute))
	c, err := sequence.Inside(s).Find(t.Context(), "photos", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.HoldUp() // no number comes until the end of the test
	defer c.GoOn()
	var wg sync.WaitGroup
	begin := time.Now()
	for _, patience := range []time.Duration{1600, 100, 900, 100} {
		patience *= time.Millisecond
		wg.Go(func() {
			err := c.TakeBy(context.Background(), 1, time.Now().Add(patience))
			var unavailable *sequence.UnavailableError
			if !errors.As(err, &unavailable) || unavailable.Waited < patience || unavailable.Waited > time.Since(begin) {
				t.Errorf("got %#v, want an UnavailableError that says that it waited %v", err, patience)
			}
			if took := time.Since(begin); took < patience {
				t.Errorf("a caller with a patience of %v got the error after %v", patience, took)
			}
		})
	}
	wg.Wait()
	if n := c.Waiting(); n != 0 {
		t.Errorf("%d callers are waiting yet", n)
	}
}

// late is the context of a caller that has waited already.
type late struct {
	context.Context
	waited time.Duration
}

func (l late) Waited() time.Duration { return l.waited }

func (l late) Value(key any) any {
	if key == (sequence.WaiterKey{}) {
		return l
	}
	return l.Context.Value(key)
}

// One statement may wait for several things: that its sequence is found, for the distance of its
// numbers, for a number. Its caller waits for all that together.
func TestWhatACallerHasWaitedBeforeCounts(t *testing.T) {
	s, err := sequence.New(sequence.Options{Servers: []sequence.ServerOptions{{Addr: "127.0.0.1:1", Database: "none"}}, Tuning: sequence.Tuning{AllocateTimeout: 3 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	for waited, want := range map[time.Duration]time.Duration{
		0: 3 * time.Second, time.Second: 2 * time.Second, 2900 * time.Millisecond: sequence.Inside(s).Timing().LeastPatience, time.Minute: sequence.Inside(s).Timing().LeastPatience,
	} {
		if got := sequence.Inside(s).Patience(late{context.Background(), waited}); got != want {
			t.Errorf("after %v: got %v, want %v", waited, got, want)
		}
	}
	s.Tune(sequence.Tuning{AllocateTimeout: 100 * time.Millisecond})
	if got := sequence.Inside(s).Patience(late{context.Background(), time.Hour}); got != 100*time.Millisecond {
		t.Errorf("the least time is %v, want no more than the whole of 100ms", got)
	}
}

// Each kind of request counts earlier waits: with an hour of patience, of which nothing remains,
// all of them end soon.
func TestNoRequestBeginsToWaitAnew(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	p.withOptions(t)
	// It knows no name yet.
	s, fresh := p.open(t, patience(time.Hour), steadySize(2)), p.open(t, patience(time.Hour))
	mustTake(t, s, "photos", 1)
	conn, err := p.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // before the others are closed
	if _, err := conn.ExecContext(t.Context(), "LOCK TABLES sequence WRITE, sequence_options WRITE"); err != nil {
		t.Fatal(err)
	}
	ctx, name := late{t.Context(), time.Hour}, []byte("photos")
	requests := map[string]func() error{
		"Take":                 func() error { _, err := s.Take(ctx, name, 1000); return err },
		"Advance":              func() error { _, err := s.Advance(ctx, name, 7); return err },
		"Avoid":                func() error { return s.Avoid(ctx, name, []uint64{1 << 40}) },
		"SetValue":             func() error { _, _, err := s.SetValue(ctx, name, 1<<41, true); return err },
		"Flush":                func() error { return s.Flush(ctx, name) },
		"Exists":               func() error { _, err := fresh.Exists(ctx, name); return err },
		"Stored":               func() error { _, _, err := fresh.Stored(ctx, name); return err },
		"Same":                 func() error { _, err := fresh.Same(ctx, name, []byte("albums")); return err },
		"Identify":             func() error { _, err := fresh.Identify(ctx, name); return err },
		"Step":                 func() error { _, err := fresh.Step(ctx, name); return err },
		"Definitions":          func() error { _, err := fresh.Definitions(ctx); return err },
		"LoadOwners":           func() error { _, err := fresh.LoadOwners(ctx); return err },
		"Take, look-up first":  func() error { _, err := fresh.Take(ctx, name, 1); return err },
		"Avoid, look-up first": func() error { return fresh.Avoid(ctx, name, []uint64{1}) },
	}
	answers := make(chan string, len(requests))
	for what, f := range requests {
		go func() {
			if err := f(); !errors.As(err, new(*sequence.UnavailableError)) {
				t.Errorf("%s: got %v, want an UnavailableError", what, err)
			}
			answers <- what
		}()
	}
	over := time.After(30 * time.Second)
	for len(requests) > 0 {
		select {
		case what := <-answers:
			delete(requests, what)
		case <-over:
			t.Fatalf("waiting yet: %v", slices.Sorted(maps.Keys(requests)))
		}
	}
	if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		// Requests under way end before the proxies are closed.
		t.Error(err)
	}
}

// A caller that reads the plan may be asking a server that hangs. Others that want the same wait no
// longer than they may.
func TestNobodyWaitsInLineLongerThanItsOwnTime(t *testing.T) {
	s := openWith(t, sequence.Options{Servers: []sequence.ServerOptions{{Addr: "127.0.0.1:1", Database: "none"}, {Addr: "127.0.0.1:2", Database: "none"}}})
	for what, one := range map[string]struct {
		lock await.Lock
		ask  func(ctx context.Context) error
	}{
		"the plan":     {sequence.Inside(s).ReadingPlan(), sequence.Inside(s).MeetPlan},
		"another plan": {sequence.Inside(s).ReadingPlan(), sequence.Inside(s).ReadPlan},
		"a round":      {sequence.Inside(s).Following(), sequence.Inside(s).Look},
	} {
		one.lock.MustAcquire()
		ctx, stop := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, await.ErrPatience)
		answer := make(chan error, 1)
		go func() { answer <- one.ask(ctx) }()
		select {
		case err := <-answer:
			if !errors.Is(err, await.ErrPatience) {
				t.Errorf("%s: got %v, want that the time is over", what, err)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%s: it waits for ever", what)
		}
		stop()
		one.lock.Release()
	}
}

// A commit, too, ends with the time of its caller: a server may be unable to commit, such as a node
// of a cluster that has lost its majority.
func TestACommitThatHangsEndsInTime(t *testing.T) {
	server := mysqltest.Start(t)
	p := placeOn(t, server).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, func(o *sequence.Options) { o.Servers[0].IOTimeout = time.Hour })
	mustTake(t, s, "photos", 1)
	conn, err := p.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, stop := context.WithCancelCause(t.Context())
	answer := make(chan error, 1)
	committing := make(chan struct{})
	go func() {
		v := sequence.Inside(s).First()
		answer <- v.TransactOnce(ctx, func(tx *sql.Tx) error {
			defer close(committing)
			_, err := tx.ExecContext(ctx, "UPDATE "+v.Table.Sequence+" SET id = id + 1000 WHERE name = 'photos'")
			// No commit gets beyond it.
			_, errLock := conn.ExecContext(t.Context(), "FLUSH TABLES WITH READ LOCK")
			return errors.Join(err, errLock)
		})
	}()
	<-committing
	select {
	case err := <-answer:
		t.Fatalf("the transaction ended with %v, want that it waits", err)
	case <-time.After(200 * time.Millisecond):
	}
	stop(await.ErrPatience)
	select {
	case err := <-answer:
		if err == nil || errors.Is(err, driver.ErrBadConn) { // this means that nothing was done
			t.Errorf("got %v, want an error of unknown outcome", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits for the server for ever")
	}
	if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	mustTake(t, s, "photos", 1)
}

// After such a commit the error says that the request may have been carried out, even if an earlier
// attempt was in conflict with another transaction.
func TestACommitThatHangsIsOfUnknownOutcomeToItsCaller(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0})
	for _, conflicts := range []int{0, 1} {
		s := p.open(t, func(o *sequence.Options) { o.Servers[0].IOTimeout = time.Hour })
		mustTake(t, s, "photos", 1)
		conn, err := p.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		timed, stop := context.WithCancelCause(t.Context())
		within, failed, end := sequence.Inside(s).Request(timed, time.Hour)
		defer end()
		attempt := 0
		v := sequence.Inside(s).First()
		err = v.Transact(within, func(tx *sql.Tx) error {
			if attempt++; attempt <= conflicts {
				return &mysql.MySQLError{Number: gomysql.ER_LOCK_DEADLOCK, Message: "Deadlock found"}
			}
			_, err := tx.ExecContext(within, "UPDATE "+v.Table.Sequence+" SET id = id + 1000 WHERE name = 'photos'")
			// No commit gets beyond it.
			_, errLock := conn.ExecContext(t.Context(), "FLUSH TABLES WITH READ LOCK")
			time.AfterFunc(200*time.Millisecond, func() { stop(await.ErrPatience) })
			return errors.Join(err, errLock)
		})
		if shown := failed("photos", err); !errors.As(shown, new(*sequence.UnavailableError)) || !strings.Contains(shown.Error(), "outcome is unknown") {
			t.Errorf("after %d conflicts got %v, want an error of unknown outcome", conflicts, shown)
		}
		if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
			t.Fatal(err)
		}
	}
}
