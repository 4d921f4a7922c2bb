package link

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"

	"seqproxy/internal/rawio"
)

// Line is a connection, and the socket below it. One goroutine uses it at a time.
type Line struct {
	Driven
	Node    *Node // that it leads to
	socket  *rawio.Conn
	account *Account // that it was opened with

	nodes *nodes // of a group, where numbers are reserved over it; else nil
	apart bool   // its node has lost its cluster: this is nothing to keep

	// What its users have noted, as it has to be found out again over another connection: the plan
	// under which another member has said that this one is in it, and the one under which all of
	// them were asked that. Only whoever has the connection may look.
	Noted, Asked uint64
}

// Driven is what the driver's connections can.
type Driven interface {
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

// LineOf is the line that a connection is, as long as it is the caller's.
func LineOf(conn *sql.Conn) (own *Line, err error) {
	err = conn.Raw(func(raw any) error {
		own = raw.(*Line)
		return nil
	})
	return own, err
}

// IsValid implements [driver.Validator]: a connection of an account that is used no more, or to a
// node that has lost its cluster, is closed when its user is done with it.
func (l *Line) IsValid() bool {
	return !l.apart && l.Node.login.Account() == l.account && l.Driven.IsValid()
}

// ResetSession implements [driver.SessionResetter]: a connection to another node than the chosen
// one is not used again, where none is chosen that has one looked for; nor one that the server has
// closed meanwhile, which the driver sees on sockets of the net package only.
func (l *Line) ResetSession(ctx context.Context) error {
	if l.nodes != nil {
		if now := l.nodes.current.Load(); now == nil || now.Node != l.Node {
			return driver.ErrBadConn
		}
	}
	if l.socket.Silent() != nil {
		return driver.ErrBadConn
	}
	return l.Driven.ResetSession(ctx)
}

// ExecContext implements [driver.ExecerContext].
func (l *Line) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	result, err := l.Driven.ExecContext(ctx, text, args)
	l.noteLostCluster(err)
	return result, err
}

// QueryContext implements [driver.QueryerContext].
func (l *Line) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := l.Driven.QueryContext(ctx, text, args)
	l.noteLostCluster(err)
	return rows, err
}

// BeginTx implements [driver.ConnBeginTx].
func (l *Line) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := l.Driven.BeginTx(ctx, o)
	l.noteLostCluster(err)
	return tx, err
}

// Close implements [driver.Conn]. It is no error if the server has closed the connection before,
// and cannot be told any more.
func (l *Line) Close() error {
	_ = l.Driven.Close()
	return nil
}

// noteLostCluster has another node be looked for, whatever the statement was, once the chosen one
// answers that it has lost its cluster.
func (l *Line) noteLostCluster(err error) {
	if !HasCode(err, wsrepNotReady) {
		return
	}
	l.apart = true
	if l.nodes == nil {
		return
	}
	if now := l.nodes.current.Load(); now != nil && now.Node == l.Node {
		l.nodes.current.CompareAndSwap(now, nil)
	}
}

// CloseWhenDone has a connection closed when ctx is done, and returns a context that never is, for
// statements on it. The pool and the driver would each have a goroutine watch every statement,
// which is a good part of what a short one costs. unwatch ends that, and must be called before the
// connection is given back: where ctx was done at the last moment, nobody else gets it, whose
// statement the close would meet.
func CloseWhenDone(ctx context.Context, conn *sql.Conn) (unwatched context.Context, unwatch func(), err error) {
	own, err := LineOf(conn)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = own.socket.Close() })
	return context.WithoutCancel(ctx), sync.OnceFunc(func() {
		if !stop() {
			// has the pool close it; an error says that it has
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}), nil
}
