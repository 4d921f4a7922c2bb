package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"

	"seqproxy/internal/rawio"
)

// line is a connection, and the socket below it.
type line struct {
	driven
	socket  *rawio.Conn
	node    *node
	account *Account // that it was opened with

	nodes *nodes // of a group, where numbers are reserved over it; else nil
	apart bool   // its node has lost its cluster: this is nothing to keep
	noted uint64 // the plan under which another member has said that this one is in it; see stillHome
	asked uint64 // the plan under which all of them were asked that
}

// driven is what the driver's connections can.
type driven interface {
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

// lineOf is the line that a connection is, as long as it is the caller's.
func lineOf(conn *sql.Conn) (own *line, err error) {
	err = conn.Raw(func(raw any) error {
		own = raw.(*line)
		return nil
	})
	return own, err
}

// IsValid implements [driver.Validator]: a connection of an account that is used no more, or to a
// node that has lost its cluster, is closed when its user is done with it.
func (l *line) IsValid() bool {
	return !l.apart && l.node.login.Account() == l.account && l.driven.IsValid()
}

// ResetSession implements [driver.SessionResetter]: a connection to another node than the chosen
// one is not used again, where none is chosen that has one looked for; nor one that the server has
// closed meanwhile, which the driver sees on sockets of the net package only.
func (l *line) ResetSession(ctx context.Context) error {
	if l.nodes != nil {
		if now := l.nodes.current.Load(); now == nil || now.node != l.node {
			return driver.ErrBadConn
		}
	}
	if l.socket.Silent() != nil {
		return driver.ErrBadConn
	}
	return l.driven.ResetSession(ctx)
}

// ExecContext implements [driver.ExecerContext].
func (l *line) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	result, err := l.driven.ExecContext(ctx, text, args)
	l.noteLostCluster(err)
	return result, err
}

// QueryContext implements [driver.QueryerContext].
func (l *line) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := l.driven.QueryContext(ctx, text, args)
	l.noteLostCluster(err)
	return rows, err
}

// BeginTx implements [driver.ConnBeginTx].
func (l *line) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := l.driven.BeginTx(ctx, o)
	l.noteLostCluster(err)
	return tx, err
}

// Close implements [driver.Conn]. It is no error if the server has closed the connection before,
// and cannot be told any more.
func (l *line) Close() error {
	_ = l.driven.Close()
	return nil
}

// noteLostCluster has another node be looked for, whatever the statement was, once the chosen one
// answers that it has lost its cluster.
func (l *line) noteLostCluster(err error) {
	if !hasCode(err, wsrepNotReady) {
		return
	}
	l.apart = true
	if l.nodes == nil {
		return
	}
	if now := l.nodes.current.Load(); now != nil && now.node == l.node {
		l.nodes.current.CompareAndSwap(now, nil)
	}
}

// closeWhenDone has a connection closed when ctx is done, and returns a context that never is, for
// statements on it. The pool and the driver would each have a goroutine watch every statement,
// which is a good part of what a short one costs. unwatch ends that, and must be called before the
// connection is given back: where ctx was done at the last moment, nobody else gets it, whose
// statement the close would meet.
func closeWhenDone(ctx context.Context, conn *sql.Conn) (unwatched context.Context, unwatch func(), err error) {
	own, err := lineOf(conn)
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
