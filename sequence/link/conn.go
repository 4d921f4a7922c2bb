package link

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"

	"seqproxy/internal/rawio"
)

// Conn is a connection, and the socket below it. One goroutine uses it at a time.
type Conn struct {
	DriverConn
	Node    *Node // that it leads to
	socket  *rawio.Conn
	account *Account // that it was opened with

	nodes *nodes // of a group, where numbers are reserved over it; else nil
	apart bool   // its node has lost its cluster: this is nothing to keep

	// What its users found out over this connection, and must ask again over another one: the plan
	// under which another member confirmed this one, and the plan under which all were asked. Only
	// the user of the connection reads or writes them.
	ConfirmedPlan, AskedPlan uint64
}

// DriverConn is what the driver's connections can.
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

// ConnOf is the Conn below a connection of the pool, as long as that is the caller's.
func ConnOf(conn *sql.Conn) (c *Conn, err error) {
	err = conn.Raw(func(raw any) error {
		c = raw.(*Conn)
		return nil
	})
	return c, err
}

// IsValid implements [driver.Validator]: a connection of an account that is used no more, or to a
// node that has lost its cluster, is closed when its user is done with it.
func (c *Conn) IsValid() bool {
	return !c.apart && c.Node.login.Account() == c.account && c.DriverConn.IsValid()
}

// ResetSession implements [driver.SessionResetter]: a connection to another node than the chosen
// one is not used again, where none is chosen that has one looked for; nor one that the server has
// closed meanwhile, which the driver sees on sockets of the net package only.
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

// Close implements [driver.Conn]. It is no error if the server has closed the connection before,
// and cannot be told any more.
func (c *Conn) Close() error {
	_ = c.DriverConn.Close()
	return nil
}

// noteLostCluster has another node be looked for, whatever the statement was, once the chosen one
// answers that it has lost its cluster.
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

// CloseWhenDone has a connection closed when ctx is done, and returns a context that never is, for
// statements on it. The pool and the driver would each have a goroutine watch every statement,
// which is a good part of what a short one costs. unwatch ends that, and must be called before the
// connection is given back: where ctx was done at the last moment, nobody else gets it, whose
// statement the close would meet.
func CloseWhenDone(ctx context.Context, conn *sql.Conn) (unwatched context.Context, unwatch func(), err error) {
	c, err := ConnOf(conn)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.socket.Close() })
	return context.WithoutCancel(ctx), sync.OnceFunc(func() {
		if !stop() {
			// has the pool close it; an error says that it has
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}), nil
}
