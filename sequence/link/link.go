package link

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/planted"
)

// Link is the way to one sequence server, which is an address or a group of nodes: its connections,
// and their checks. It knows nothing of segments and of plans. All sessions are our own, never a
// client's, so that a reservation cannot be part of a client's transaction. It is for concurrent use.
type Link struct {
	opts   Options
	timing *Timing
	tables Tables
	log    *zap.Logger

	nodes    nodes
	answered answered
	flushed  time.Time // when the nodes of a cluster were last asked how they flush; see FlushDue

	open sync.Once // sql.OpenDB starts a goroutine, so it is left to the first use
	db   *sql.DB

	mu       sync.Mutex
	failed   error     // guarded by mu; why the last connection could not be made, nil if it could
	failedAt time.Time // guarded by mu

	passed atomic.Bool // a connection has passed the checks
}

// Tables are what is looked at behind a connection, once the settings of its server have passed.
type Tables interface {
	// CheckTables is called for each new connection, by several goroutines, once its session is set
	// up. What could make numbers repeat is an [*UnfitError]. An error ends the connection.
	CheckTables(ctx context.Context, c Raw) error
}

// New does no I/O. tables are asked once a connection is made.
func New(o Options, tables Tables) (*Link, error) {
	cfg := mysql.NewConfig()
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = o.DialTimeout, o.IOTimeout, o.IOTimeout
	// one round trip instead of three; safe because the connection's charset is utf8mb4
	cfg.InterpolateParams = true
	cfg.MultiStatements = true  // to take numbers and look at them at once; every text is our own
	cfg.ClientFoundRows = false // affected rows must mean changed rows
	// such a refusal ends the connection, and the checks of the next one say what is wrong
	cfg.RejectReadOnly = true
	cfg.ConnectionAttributes = "program_name:seqproxy"
	cfg.Logger = &mysql.NopLogger{} // every error is returned too
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
		nodes: nodes{all: all, choose: await.NewLock()}, answered: answered{asking: await.NewLock()},
	}, nil
}

// Name is how errors and logs call the server.
func (l *Link) Name() string { return l.opts.Name }

// Pool returns the connections to the node that is written to; nil after close.
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

// Conn attaches a connection that has passed the checks.
func (l *Link) Conn(ctx context.Context) (*sql.Conn, error) {
	db := l.Pool()
	if db == nil {
		return nil, ErrClosed
	}
	return db.Conn(ctx)
}

// Connect implements [driver.Connector]: it dials, sets the session and checks the server. Every
// connection is checked, not the first alone: behind one address there may be another server after
// a fail-over.
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

// LastFailure is why there is no connection, or nil. It explains a wait that ended before its own
// attempt did.
func (l *Link) LastFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

func (l *Link) noteFailure(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return // says something about the caller
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed, l.failedAt = err, time.Now()
}

// session is what every connection is set to, whatever the server's own values are and its
// init_connect does. Each setting keeps a number from being given twice or keeps a request short:
// without autocommit, or in a transaction that the end of another one has begun (completion_type),
// a number would leave before its reservation is committed; without strict mode a value that does
// not fit is cut to the column's maximum and given again and again; with a limit, rows would be
// missing from what is read; in another character set a name would be another one. No statement
// depends on the isolation level: each commits by itself or reads what it locks. One comment is a
// statement to MariaDB alone, the other to MySQL alone.
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

// SetUpSession sets the session of a connection to a server that may be none of the sequence
// servers.
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
		// one round trip: somebody waits for it
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

// Raw runs the statements of a connection that the pool does not know yet. They have no
// arguments.
type Raw struct{ raw driver.Conn }

// WithRaw has f run statements on a connection of the caller's, for as long as it takes.
func WithRaw(conn *sql.Conn, f func(c Raw) error) error {
	return conn.Raw(func(raw any) error { return f(Raw{raw.(driver.Conn)}) })
}

// Exec runs a statement that has no rows.
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
