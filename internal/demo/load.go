package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"
)

// The load is steady and bounded, so that what one sees is not how fast the machine is.
const (
	keyClients     = 4
	keysPerSecond  = 500 // of each of them
	rowsPerSecond  = 50  // into each table
	statementLimit = 10 * time.Second
)

// load takes keys through the proxy: alone, and in the rows that need them.
type load struct {
	sequence string
	down     func() bool // a server is, or was a moment ago
	pool     *sql.DB     // for keys alone: without a current schema their sessions need no server
	tables   []table

	keys   seen
	rows   atomic.Uint64 // that were inserted
	failed failures

	mu      sync.Mutex
	failure error // the last that was not to be expected; nil: none
	slowest time.Duration
	slowNow time.Duration // slowest since the screen looked last
}

// failures are counts of statements.
type failures struct {
	keys, rows atomic.Uint64
	whileDown  atomic.Uint64 // of rows, while a server was down
}

// table is one that rows go into.
type table struct {
	name string
	pool *sql.DB // whose sessions have its schema
}

func newLoad(o *Options, down func() bool) (*load, error) {
	l := &load{sequence: o.Sequence, down: down}
	var err error
	if l.pool, err = pool(o.Proxy, "", keyClients); err != nil {
		return nil, err
	}
	for _, t := range o.Tables {
		p, err := pool(o.Proxy, t.Schema, 1)
		if err != nil {
			return nil, err
		}
		l.tables = append(l.tables, table{name: t.Name, pool: p})
	}
	return l, nil
}

// pool is one of connections to the proxy. It makes none yet.
func pool(address, schema string, size int) (*sql.DB, error) {
	cfg := driver.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.DBName = "tcp", address, "root", schema
	cfg.Timeout = statementLimit
	cfg.Logger = &driver.NopLogger{} // of connections that a killed server took along
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// start begins the clients. They begin nothing new when life is done; what was begun, under work,
// comes to its end.
func (l *load) start(life, work context.Context, all *sync.WaitGroup) {
	for range keyClients {
		all.Go(func() { paced(life, keysPerSecond, func() { l.key(work) }) })
	}
	for _, t := range l.tables {
		all.Go(func() { paced(life, rowsPerSecond, func() { l.row(work, t) }) })
	}
}

func (l *load) close() {
	_ = l.pool.Close()
	for _, t := range l.tables {
		_ = t.pool.Close()
	}
}

// twice is how many keys had come before.
func (l *load) twice() uint64 {
	_, twice := l.keys.counts()
	return twice
}

// paced calls f so many times a second. If f is too slow, the missed calls are not made up for.
func paced(life context.Context, perSecond int, f func()) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

// key takes one key.
func (l *load) key(work context.Context) {
	ctx, stop := context.WithTimeout(work, statementLimit)
	defer stop()
	begin := time.Now()
	var key uint64
	err := l.pool.QueryRowContext(ctx, "SELECT NEXTVAL("+l.sequence+")").Scan(&key)
	took := time.Since(begin)
	l.mu.Lock()
	l.slowNow = max(l.slowNow, took)
	l.mu.Unlock()
	if err != nil {
		l.failed.keys.Add(1)
		l.unexpected(fmt.Errorf("take a key: %w", err))
		return
	}
	l.keys.add(key)
}

// row inserts a row with a key. That it fails while a server is down is to be expected.
func (l *load) row(work context.Context, t table) {
	ctx, stop := context.WithTimeout(work, statementLimit)
	defer stop()
	down := l.down()
	result, err := t.pool.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (id, title) VALUES (NEXTVAL(%s), 'demo')", t.name, l.sequence))
	if said := new(driver.MySQLError); errors.As(err, &said) && said.Number == mysql.ER_DUP_ENTRY {
		l.keys.repeated()
	}
	if err != nil {
		if down || l.down() {
			l.failed.whileDown.Add(1)
			return
		}
		l.failed.rows.Add(1)
		l.unexpected(fmt.Errorf("insert a row into %s: %w", t.name, err))
		return
	}
	l.rows.Add(1)
	if id, err := result.LastInsertId(); err == nil {
		l.keys.add(uint64(id))
	}
}

// unexpected takes note of a failure.
func (l *load) unexpected(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
}

// look returns how long the slowest key took since the last look, and ever, and the last failure
// that was not to be expected.
func (l *load) look() (slowest, ever time.Duration, failure error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slowest, l.slowNow = l.slowNow, 0
	l.slowest = max(l.slowest, slowest)
	return slowest, l.slowest, l.failure
}
