package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// drained is a proxy that stops while clients work, with the answers that these got.
type drained struct {
	*controlled
	web string

	mu   sync.Mutex
	keys []uint64 // keys of acknowledged rows; guarded by mu
	high uint64   // highest number given; guarded by mu
}

func startDrained(t *testing.T, drain string) *drained {
	t.Helper()
	d := &drained{controlled: startControlled(t, drain)}
	d.web = d.httpAddress()
	if _, err := d.root.Exec("CREATE SEQUENCE photos"); err != nil {
		t.Fatal(err)
	}
	if err := d.root.Close(); err != nil { // it would be another idle session
		t.Fatal(err)
	}
	return d
}

// dial opens a client connection.
func (d *drained) dial() (*sql.Conn, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.Timeout, cfg.ReadTimeout = "app", "tcp", d.data, "d", patience, patience
	cfg.Logger = &mysql.NopLogger{} // it would log connections that the proxy closes
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	d.t.Cleanup(func() { _ = pool.Close() })
	c, err := pool.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	d.t.Cleanup(func() { _ = c.Close() }) // before its pool is closed
	return c, nil
}

func (d *drained) session(t *testing.T, statements ...string) *sql.Conn {
	t.Helper()
	c, err := d.dial()
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range statements {
		if _, err := c.ExecContext(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return c
}

// insert inserts a row with a key and returns the key.
func (d *drained) insert(c querier) (key uint64, err error) {
	result, err := c.ExecContext(context.Background(), "INSERT INTO t VALUES (NEXTVAL('photos'))")
	if err != nil {
		return 0, err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.high = max(d.high, uint64(id))
	return uint64(id), nil
}

// keeps remembers committed rows.
func (d *drained) keeps(keys ...uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = append(d.keys, keys...)
}

// works inserts rows until the proxy is gone. It reconnects whenever its connection is ended.
func (d *drained) works() {
	for {
		c, err := d.dial()
		for err == nil {
			var key uint64
			if key, err = d.insert(c); err == nil {
				d.keeps(key)
			}
		}
		if c == nil {
			return
		}
		_ = c.Close()
	}
}

// isEnded checks that a session was ended in order: the client finds its connection closed, or its
// command was not executed.
func isEnded(t *testing.T, what string, c *sql.Conn) {
	t.Helper()
	// a row of that key would be one too many
	_, err := c.ExecContext(context.Background(), "INSERT INTO t VALUES (0)")
	var answer *mysql.MySQLError
	if !errors.Is(err, driver.ErrBadConn) && !errors.Is(err, mysql.ErrInvalidConn) && !(errors.As(err, &answer) && answer.Number == 1053) {
		t.Errorf("%s: got %v, want its connection closed, or 1053", what, err)
	}
}

// events checks that the log has inOrder in this order and nothing of none.
func (d *drained) events(t *testing.T, none []string, inOrder ...string) {
	t.Helper()
	log, from := d.stderr(), 0
	for _, event := range inOrder {
		at := strings.Index(log[from:], "\t"+event+"\t")
		if at < 0 {
			t.Errorf("the log has no line %q after those before it in %q", event, inOrder)
			return
		}
		from += at + 1
	}
	for _, event := range none {
		if strings.Contains(log, "\t"+event+"\t") {
			t.Errorf("the log has the line %q", event)
		}
	}
}

// rows checks that the table has exactly the acknowledged rows.
func (d *drained) rows(t *testing.T) {
	t.Helper()
	rows, err := d.server.DB(t, "d").Query("SELECT a FROM t ORDER BY a")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // was read
	var there []uint64
	for rows.Next() {
		var key uint64
		if err := rows.Scan(&key); err != nil {
			t.Fatal(err)
		}
		there = append(there, key)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.keys)
	if len(d.keys) == 0 {
		t.Error("no client got an answer for a row")
	}
	for _, key := range d.keys {
		if _, found := slices.BinarySearch(there, key); !found {
			t.Errorf("the row %d is lost", key)
		}
	}
	for i, key := range there {
		if _, answer := slices.BinarySearch(d.keys, key); !answer || i > 0 && there[i-1] == key {
			t.Errorf("got the row %d, which no client had acknowledged", key)
		}
	}
}

// counter returns the row of the sequence.
func (d *drained) counter(t *testing.T) (id uint64) {
	t.Helper()
	if err := d.server.DB(t, "").QueryRow("SELECT id FROM seqproxy.sequence WHERE name = 'photos'").Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// clients returns the states of client sessions in SHOW SEQPROXY SESSIONS, sorted.
func (d *drained) clients(t *testing.T, adm *sql.Conn) (states []string) {
	t.Helper()
	for _, s := range inquire(t, adm, false, "SHOW SEQPROXY SESSIONS").rows {
		if s["address"] == "data" {
			states = append(states, s["state"])
		}
	}
	slices.Sort(states)
	return states
}

// TestAStopAfterGraceEndsEachSessionAtItsBorder lets grace run out while clients work. No second
// signal comes.
func TestAStopAfterGraceEndsEachSessionAtItsBorder(t *testing.T) {
	for _, grace := range []string{"2s", "40s"} {
		err := graceRunsOut(t, grace)
		if err == nil {
			return
		}
		if grace == "40s" {
			t.Fatalf("in grace: %v", err)
		}
		t.Logf("in a grace of %s: %v; the machine may be busy, so once more with a longer one", grace, err)
	}
}

// graceRunsOut is the test. It returns an error that clients met during grace, which may have been
// too short for them.
func graceRunsOut(t *testing.T, grace string) error {
	d := startDrained(t, fmt.Sprintf("drain.grace = %q\ndrain.timeout = \"10m\"", grace))
	adm, err := d.adm.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close() //nolint:errcheck // the proxy may have closed it
	lock, err := d.server.DB(t, "").Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() //nolint:errcheck // every statement was answered
	if _, err := lock.ExecContext(context.Background(), "DO GET_LOCK('held', 60)"); err != nil {
		t.Fatal(err)
	}

	var workers sync.WaitGroup
	defer func() { // the workers end with the proxy
		_ = d.cmd.Process.Kill()
		workers.Wait()
	}()
	for range 3 {
		workers.Go(d.works)
	}
	idle := map[string]*sql.Conn{
		"an idle session":                        d.session(t, "DO 1"),
		"an idle one that keeps its connection":  d.session(t, "CREATE TEMPORARY TABLE kept (a INT)", "PREPARE s FROM 'SELECT 1'", "DO GET_LOCK('mine', 0)"),
		"one whose transaction was over already": d.session(t, "BEGIN", "SELECT a FROM t LIMIT 1", "COMMIT"),
	}
	d.server.Exec(t, "CREATE TABLE d.other (a INT)")
	locking := d.session(t, "LOCK TABLES other WRITE")
	committing, rollingBack := d.session(t, "BEGIN"), d.session(t, "SET autocommit = 0")
	var open []uint64 // rows of the transaction to be committed
	inTransaction := func(when string) {
		t.Helper()
		for name, c := range map[string]*sql.Conn{"to be committed": committing, "to be rolled back": rollingBack} {
			key, err := d.insert(c)
			if err != nil {
				t.Errorf("in the transaction %s, %s: %v", name, when, err)
			} else if c == committing {
				open = append(open, key)
			}
		}
	}
	inTransaction("before the stop")
	running, answered := d.session(t), make(chan error, 1)
	go func() {
		_, err := running.ExecContext(context.Background(), "DO GET_LOCK('held', 60)")
		answered <- err
	}()
	awaitStatement(t, d.server.Addr(), "GET_LOCK(''held'', 60)")

	d.signal(syscall.SIGTERM)
	d.await("not ready any more")
	if status, answer := askReady(t, d.web, ""); status != http.StatusServiceUnavailable || !slices.Equal(answer.Reasons, []string{"the proxy is stopping"}) {
		t.Errorf("/readyz: got %d %+v, want 503 at once, with the reason alone", status, answer)
	}
	inTransaction("in grace")
	fresh, err := d.dial()
	if err != nil {
		return fmt.Errorf("a new client: %w", err)
	}
	idle["one that came in grace"] = fresh
	for what, c := range idle {
		key, err := d.insert(c)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		d.keeps(key)
	}

	d.await("\tstopping\t")
	if c, err := d.dial(); err == nil {
		t.Error("a client is accepted after grace")
		_ = c.Close()
	}
	// Soon three sessions are left: one in a statement, two in transactions.
	want := []string{"busy", "idle", "idle"}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := d.clients(t, adm)
		if slices.Equal(got, want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("sessions of clients after grace: got %q, want %q", got, want)
		}
	}
	idle["one that has locked a table"] = locking
	for what, c := range idle {
		isEnded(t, what, c)
	}
	d.server.Exec(t, "INSERT INTO d.other VALUES (1)")
	if status, answer := askReady(t, d.web, ""); status != http.StatusServiceUnavailable || !slices.Equal(answer.Reasons, []string{"the proxy is stopping"}) {
		t.Errorf("/readyz after grace: got %d %+v", status, answer)
	}
	if _, err := lock.ExecContext(context.Background(), "DO RELEASE_LOCK('held')"); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "the answer of the statement that ran", answered); err != nil {
		t.Errorf("the statement that ran: %v", err)
	}
	isEnded(t, "the session whose statement ran", running)
	inTransaction("after grace")
	if _, err := rollingBack.ExecContext(context.Background(), "ROLLBACK"); err != nil {
		t.Errorf("ROLLBACK: %v", err)
	}
	isEnded(t, "the session behind ROLLBACK", rollingBack)
	key, err := d.insert(committing) // the last session still works
	if err != nil {
		t.Errorf("in the last transaction: %v", err)
	}
	if _, err := committing.ExecContext(context.Background(), "COMMIT"); err != nil {
		t.Errorf("COMMIT: %v", err)
	}
	d.keeps(append(open, key)...)
	isEnded(t, "the session behind COMMIT", committing)
	d.end(0)
	workers.Wait()
	d.events(t, []string{"shutdown", "session ended by a fault of the proxy", "unused numbers lost"}, "listening", "not ready any more", "stopping", "stopped")
	d.rows(t)
	if got := d.counter(t); got != d.high {
		t.Errorf("the row of the sequence: got %d, want the highest number that was given, %d: the others were not given back", got, d.high)
	}
	return nil
}

// TestATransactionThatDoesNotEndIsCutAtTheTimeout tests drain.timeout, and a stop by hand that
// waits for nothing.
func TestATransactionThatDoesNotEndIsCutAtTheTimeout(t *testing.T) {
	for name, test := range map[string]struct {
		drain  string
		hurry  func(d *drained) // nil: wait for the timeout
		status int
		events []string
		back   bool // unused numbers go back to the table
	}{
		"by drain.timeout": {
			"drain.timeout = \"1s\"", nil, 0,
			[]string{"stopping", "shutdown", "stopped"},
			true,
		},
		"by drain.timeout after drain.grace": {
			"drain.grace = \"1s\"\ndrain.timeout = \"1s\"", nil, 0,
			[]string{"not ready any more", "stopping", "shutdown", "stopped"},
			true,
		},
		"by a second SIGTERM": {
			"drain.timeout = \"1h\"", func(d *drained) { d.signal(syscall.SIGTERM) }, 1,
			[]string{"stopping", "shutdown", "stopped"},
			false,
		},
		"by SIGINT after SIGTERM": {
			"drain.timeout = \"1h\"", func(d *drained) { d.signal(syscall.SIGINT) }, 1,
			[]string{"stopping", "shutdown", "stopped"},
			false,
		},
		"by SIGINT in grace": {
			"drain.grace = \"1h\"\ndrain.timeout = \"1h\"", func(d *drained) { d.signal(syscall.SIGINT) }, 1,
			[]string{"not ready any more", "stopping", "shutdown", "stopped"},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := startDrained(t, test.drain)
			kept, cut := d.session(t), d.session(t, "BEGIN")
			key, err := d.insert(kept)
			if err != nil {
				t.Fatal(err)
			}
			d.keeps(key)
			if _, err := d.insert(cut); err != nil {
				t.Fatal(err)
			}
			d.signal(syscall.SIGTERM)
			d.await("\t" + test.events[0] + "\t")
			if test.hurry != nil {
				time.Sleep(2 * sameWish) // a signal within sameWish counts as the same
				test.hurry(d)
			}
			d.end(test.status)
			isEnded(t, "the session in its transaction", cut)
			d.events(t, []string{"session ended by a fault of the proxy"}, test.events...)
			if want := " sessions were still busy and had to be closed"; !strings.Contains(d.stderr(), want) {
				t.Errorf("the log does not say %q", want)
			}
			if printed := strings.Contains(d.stderr(), "seqproxy: ended at once by a second signal\n"); printed != (test.status == 1) {
				t.Errorf("the output names a second signal: got %v, want %v", printed, !printed)
			}
			// The server has rolled back, and no lock is left.
			d.server.Exec(t, "SET SESSION lock_wait_timeout = 60", "ALTER TABLE d.t COMMENT 'free'")
			d.rows(t)
			if got := d.counter(t); (got == d.high) != test.back {
				t.Errorf("the row of the sequence is %d, numbers were given up to %d; want the rest given back: %v", got, d.high, test.back)
			}
		})
	}
}
