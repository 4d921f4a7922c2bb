package link

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"

	"seqproxy/internal/rawio"
)

// Conn is a connection and its socket. One goroutine uses it at a time.
type Conn struct {
	DriverConn
	Node    *Node // the node that it leads to
	socket  *rawio.Conn
	account *Account // the account that it was opened with

	nodes *nodes // the nodes of a group, if numbers are reserved over it; else nil
	apart bool   // its node has lost its cluster: the pool must not keep it

	// What users found out over this connection, and must ask again over another one: the plan
	// under which another member confirmed this one, and the plan under which all were asked. Only
	// the user of the connection reads or writes them.
	ConfirmedPlan, AskedPlan uint64
}

// DriverConn is what the driver's connections implement.
type DriverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// ConnOf returns the Conn below a connection of the pool. It is the caller's as long as conn is.
func ConnOf(conn *sql.Conn) (c *Conn, err error) {
	err = conn.Raw(func(raw any) error {
		c = raw.(*Conn)
		return nil
	})
	return c, err
}

// IsValid implements [driver.Validator]: the pool closes a connection of a retired account, or to a
// node that has lost its cluster, when its user is done with it.
func (c *Conn) IsValid() bool {
	return !c.apart && c.Node.login.Account() == c.account && c.DriverConn.IsValid()
}

// ResetSession implements [driver.SessionResetter]. It rejects a connection to another node than
// the chosen one; if none is chosen, the next connection looks for one. It also rejects one that
// the server has closed, which the driver sees on sockets of the net package only.
func (c *Conn) ResetSession(ctx context.Context) error {
	if c.nodes != nil {
		if now := c.nodes.current.Load(); now == nil || now.Node != c.Node {
			return driver.ErrBadConn
		}
	}
	if c.socket.Silent() != nil {
		return driver.ErrBadConn
	}
	return c.DriverConn.ResetSession(ctx)
}

// ExecContext implements [driver.ExecerContext].
func (c *Conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.DriverConn.ExecContext(ctx, text, args)
	c.noteLostCluster(err)
	return result, err
}

// QueryContext implements [driver.QueryerContext].
func (c *Conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.DriverConn.QueryContext(ctx, text, args)
	c.noteLostCluster(err)
	return rows, err
}

// BeginTx implements [driver.ConnBeginTx].
func (c *Conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.DriverConn.BeginTx(ctx, o)
	c.noteLostCluster(err)
	return tx, err
}

// Close implements [driver.Conn]. A connection that the server has closed before is no error.
func (c *Conn) Close() error {
	_ = c.DriverConn.Close()
	return nil
}

// noteLostCluster discards the choice of a node once that node answers that it has lost its
// cluster.
func (c *Conn) noteLostCluster(err error) {
	if !HasCode(err, wsrepNotReady) {
		return
	}
	c.apart = true
	if c.nodes == nil {
		return
	}
	if now := c.nodes.current.Load(); now != nil && now.Node == c.Node {
		c.nodes.current.CompareAndSwap(now, nil)
	}
}

// Discard keeps the pool from lending a connection again. It returns no error: the pool closes it.
func Discard(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// CloseWhenDone closes a connection when ctx is done, and returns a context without end for
// statements on it. The pool and the driver would each start a goroutine to watch every statement,
// which is much of the cost of a short one. The caller calls unwatch before it returns the
// connection. If ctx was done at the last moment, unwatch keeps the connection from others, whose
// statement the close would hit.
func CloseWhenDone(ctx context.Context, conn *sql.Conn) (unwatched context.Context, unwatch func(), err error) {
	c, err := ConnOf(conn)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.socket.Close() })
	return context.WithoutCancel(ctx), sync.OnceFunc(func() {
		if !stop() {
			Discard(conn)
		}
	}), nil
}
