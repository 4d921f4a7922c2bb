package link

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/planted"
)

// Link is the way to one sequence server, an address or a group of nodes: its connections and their
// checks. It knows no segments and no plans. All sessions are its own, never a client's, so a
// reservation is never part of a client's transaction. It is safe for concurrent use.
type Link struct {
	opts   Options
	timing *Timing
	tables Tables
	log    *zap.Logger

	nodes    nodes
	answered lastAnswer
	flushed  time.Time // when the nodes of a cluster were last asked how they flush; see FlushDue

	open sync.Once // delays sql.OpenDB, which starts a goroutine, to the first use
	db   *sql.DB

	mu       sync.Mutex
	failed   error     // guarded by mu; why the last connection failed, nil if it did not
	failedAt time.Time // guarded by mu
}

// Tables checks the tables behind a connection, after the settings of its server.
type Tables interface {
	// CheckTables is called for each new connection whose session is set up, by several goroutines.
	// A fault that could make numbers repeat is an [*UnfitError]. An error ends the connection.
	CheckTables(ctx context.Context, c Raw) error
}

// New does no I/O. Each new connection calls tables.
func New(o Options, tables Tables) (*Link, error) {
	cfg := mysql.NewConfig()
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = o.DialTimeout, o.IOTimeout, o.IOTimeout
	// one round trip instead of three; safe because the connection's charset is utf8mb4
	cfg.InterpolateParams = true
	cfg.MultiStatements = true  // takes and verifies numbers in one text; all texts are the program's own
	cfg.ClientFoundRows = false // affected rows must mean changed rows
	// a refusal ends the connection, and the checks of the next one say what is wrong
	cfg.RejectReadOnly = true
	cfg.ConnectionAttributes = "program_name:seqproxy"
	cfg.Logger = &mysql.NopLogger{} // every error is also returned
	var all []*Node
	for _, one := range o.Nodes {
		n := newNode(cfg, one.Network, one.Addr, o.Login, o.Timing)
		if _, err := mysql.NewConnector(n.dial); err != nil {
			return nil, fmt.Errorf("sequence server %s: %w", one.Addr, err)
		}
		all = append(all, n)
	}
	return &Link{
		opts: o, timing: o.Timing, tables: tables, log: o.Log,
		nodes: nodes{all: all, choose: await.NewLock()}, answered: lastAnswer{asking: await.NewLock()},
	}, nil
}

// Name returns the server's name in errors and logs.
func (l *Link) Name() string { return l.opts.Name }

// Pool returns the connections to the writable node; nil after Close.
func (l *Link) Pool() *sql.DB {
	l.open.Do(func() {
		l.db = sql.OpenDB(l)
		l.db.SetMaxOpenConns(l.opts.MaxConns)
		l.db.SetMaxIdleConns(l.opts.MaxConns)
		l.db.SetConnMaxIdleTime(l.timing.ConnIdle)
		l.db.SetConnMaxLifetime(l.timing.ConnLife)
	})
	return l.db
}

// Close ends all connections.
func (l *Link) Close() error {
	l.open.Do(func() {}) // no pool from now on
	var all []error
	if l.db != nil {
		all = append(all, l.db.Close())
	}
	for _, n := range l.nodes.all {
		all = append(all, n.close())
	}
	return errors.Join(all...)
}

// Conn returns a connection that has passed the checks.
func (l *Link) Conn(ctx context.Context) (*sql.Conn, error) {
	db := l.Pool()
	if db == nil {
		return nil, ErrClosed
	}
	return db.Conn(ctx)
}

// Connect implements [driver.Connector]: it dials, sets the session and checks the server. It
// checks every connection, since a fail-over can put another server behind the same address.
func (l *Link) Connect(ctx context.Context) (driver.Conn, error) {
	if err := l.recentFailure(); err != nil {
		return nil, err
	}
	raw, err := l.reach(ctx)
	if err != nil {
		l.noteFailure(err)
		return nil, err
	}
	l.mu.Lock()
	l.failed = nil
	l.mu.Unlock()
	return raw, nil
}

// Driver implements [driver.Connector].
func (l *Link) Driver() driver.Driver { return mysql.MySQLDriver{} }

func (l *Link) recentFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.failedAt) < l.timing.Redial {
		return l.failed
	}
	return nil
}

// LastFailure returns why there is no connection, or nil. It explains a wait that ended before its
// own attempt.
func (l *Link) LastFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

func (l *Link) noteFailure(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return // it says something about the caller
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed, l.failedAt = err, time.Now()
}

// session returns the settings of every connection, whatever the server's values and its
// init_connect are. Each keeps a number from being given twice, or a request short. Without
// autocommit, or in a transaction that the end of another has begun (completion_type), a number
// would leave before its reservation is committed. Without strict mode a value that does not fit
// becomes the column's maximum and is given again and again. With a limit, rows would be missing
// from results. In another character set a name would be another name. No statement depends on the
// isolation level: each commits by itself or reads what it locks. One comment is a statement to
// MariaDB alone, the other to MySQL alone.
func session(silence time.Duration) []string {
	return []string{
		"SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", // as the login asked for
		"SET SESSION completion_type = 0, SESSION autocommit = 1, SESSION sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', " +
			"SESSION innodb_lock_wait_timeout = 2, SESSION lock_wait_timeout = 5, SESSION sql_safe_updates = 0, SESSION sql_warnings = 0, " +
			"SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1, SESSION unique_checks = 1, SESSION foreign_key_checks = 1, " +
			"/*M! SESSION max_statement_time = 0, */ /*!80000 SESSION max_execution_time = 0, */ " +
			fmt.Sprintf("SESSION wait_timeout = CAST(LEAST(@@SESSION.wait_timeout, %d) AS UNSIGNED)", int(silence.Seconds())),
		// READ COMMITTED may not write where binlog_format is STATEMENT
		"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE",
	}
}

// SetUpSession sets the session of a connection to any server.
func SetUpSession(ctx context.Context, conn *sql.Conn, silence time.Duration) error {
	for _, text := range session(silence) {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("set up session: %w", err)
		}
	}
	return nil
}

// setUp sets the session of a new connection.
func (c Raw) setUp(ctx context.Context, silence time.Duration) error {
	if planted.Fault(planted.Session) {
		return nil
	}
	if err := c.Exec(ctx, strings.Join(session(silence), "; ")); err != nil {
		// one round trip: a caller waits
		return fmt.Errorf("set up session: %w", err)
	}
	return nil
}

// prepare sets the session of a new connection and checks what it is connected to.
func (l *Link) prepare(ctx context.Context, raw driver.Conn) error {
	c := Raw{raw}
	if err := c.setUp(ctx, l.timing.Silence); err != nil {
		return err
	}
	return l.check(ctx, c)
}

// Querier is a connection, a transaction on one, or a pool.
type Querier interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

// Raw runs statements without arguments on a connection that the pool does not have yet.
type Raw struct{ raw driver.Conn }

// WithRaw calls f with the statements of a connection that belongs to the caller.
func WithRaw(conn *sql.Conn, f func(c Raw) error) error {
	return conn.Raw(func(raw any) error { return f(Raw{raw.(driver.Conn)}) })
}

// Exec runs a statement without rows.
func (c Raw) Exec(ctx context.Context, text string) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(ctx, text, nil)
	return err
}

// Query returns all rows, each value as text; NULL is "".
func (c Raw) Query(ctx context.Context, text string) ([][]string, error) {
	rows, err := c.raw.(driver.QueryerContext).QueryContext(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	var all [][]string
	values := make([]driver.Value, len(rows.Columns()))
	for {
		if err = rows.Next(values); err != nil {
			break
		}
		line := make([]string, len(values))
		for i, value := range values {
			switch value := value.(type) {
			case nil:
			case []byte:
				line[i] = string(value)
			default:
				line[i] = fmt.Sprint(value)
			}
		}
		all = append(all, line)
	}
	if errClose := rows.Close(); !isEnd(err) || errClose != nil {
		return nil, errors.Join(err, errClose)
	}
	return all, nil
}
