package link

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"seqproxy/internal/await"
)

// answered is whether a sequence server answered when it was asked for just that.
type answered struct {
	asking await.Lock // held while it is asked

	mu  sync.Mutex
	at  time.Time // guarded by mu; zero: it was not asked
	err error     // guarded by mu
}

func (a *answered) last(within time.Duration) (err error, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err, !a.at.IsZero() && time.Since(a.at) < within
}

// LastAnswer is what Answers has said, if that was not long ago. It does no I/O.
func (l *Link) LastAnswer() (err error, fresh bool) { return l.answered.last(l.timing.Answered) }

// Answers says why the server cannot be reserved from; nil: it answered when it was asked last.
func (l *Link) Answers(ctx context.Context) error {
	if err, fresh := l.LastAnswer(); fresh {
		return err
	}
	if l.answered.asking.Acquire(ctx) != nil {
		return await.ErrPatience
	}
	defer l.answered.asking.Release()
	if err, fresh := l.LastAnswer(); fresh {
		return err // somebody else has asked meanwhile
	}
	err := l.Ping(ctx)
	if ctx.Err() != nil {
		err = await.ErrPatience
	}
	l.answered.mu.Lock()
	defer l.answered.mu.Unlock()
	l.answered.at, l.answered.err = time.Now(), err
	return err
}

// maxPings bounds the connections that are found broken, or to lead to a node that has lost its
// cluster, before one is made.
const maxPings = 3

// Ping connects, which checks the server, or asks over a connection that is there.
func (l *Link) Ping(ctx context.Context) (err error) {
	for range maxPings {
		if err = l.pingOnce(ctx); !errors.Is(err, driver.ErrBadConn) && !HasCode(err, wsrepNotReady) {
			break
		}
	}
	return err
}

func (l *Link) pingOnce(ctx context.Context) error {
	conn, err := l.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // gives it back; a broken one is closed by the pool
	if err := conn.PingContext(ctx); err != nil {
		return err
	}
	if err := l.Writable(ctx, conn); err != nil {
		return err
	}
	if now := l.nodes.current.Load(); now == nil || now.Cluster == "" {
		return nil
	}
	// a node that has lost its cluster answers what asks for no table
	_, err = conn.ExecContext(ctx, l.opts.Probe)
	return err
}
