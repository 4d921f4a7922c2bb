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

// The load has a fixed rate, so that the figures do not depend on the machine.
const (
	keyClients     = 4
	keysPerSecond  = 500 // for each client
	rowsPerSecond  = 50  // for each table
	statementLimit = 10 * time.Second
)

// load takes keys through the proxy, alone and in rows.
type load struct {
	sequence string
	down     func() bool // a server is down, or was a moment ago
	pool     *sql.DB     // for keys alone: without a current schema a session needs no server
	tables   []table

	keys   seen
	rows   atomic.Uint64 // inserted rows
	failed failures

	mu      sync.Mutex
	failure error // the last unexpected error, or nil
	slowest time.Duration
	slowNow time.Duration // the slowest since the screen's last update
}

// failures counts failed statements.
type failures struct {
	keys, rows atomic.Uint64
	whileDown  atomic.Uint64 // rows that failed while a server was down
}

// table is a table for rows.
type table struct {
	name string
	pool *sql.DB // its sessions have the table's schema
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

// pool returns a pool of connections to the proxy. It opens none yet.
func pool(address, schema string, size int) (*sql.DB, error) {
	cfg := driver.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.DBName = "tcp", address, "root", schema
	cfg.Timeout = statementLimit
	cfg.Logger = &driver.NopLogger{} // it would log each connection that a killed server breaks
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// start starts the clients. After life is done they start no statement. A statement that runs can
// finish, within work.
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

// twice returns the number of keys that had come before.
func (l *load) twice() uint64 {
	_, twice := l.keys.counts()
	return twice
}

// paced calls f perSecond times a second. If f is too slow, calls are skipped.
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

// row inserts a row with a key. It may fail while a server is down.
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

// unexpected records a failure.
func (l *load) unexpected(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
}

// look returns the slowest key since the last look and since the start, and the last unexpected
// failure.
func (l *load) look() (slowest, ever time.Duration, failure error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slowest, l.slowNow = l.slowNow, 0
	l.slowest = max(l.slowest, slowest)
	return slowest, l.slowest, l.failure
}
