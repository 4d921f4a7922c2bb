package link

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"seqproxy/internal/await"
)

// lastAnswer remembers whether a sequence server answered when it was last asked.
type lastAnswer struct {
	asking await.Lock // locked while the server is asked

	mu  sync.Mutex
	at  time.Time // guarded by mu; zero: never asked
	err error     // guarded by mu
}

func (a *lastAnswer) last(within time.Duration) (err error, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err, !a.at.IsZero() && time.Since(a.at) < within
}

// LastAnswer returns the last result of Answers; fresh if it is recent. It does no I/O.
func (l *Link) LastAnswer() (err error, fresh bool) { return l.answered.last(l.timing.Answered) }

// Answers returns why the server cannot be reserved from; nil if it answered when last asked.
func (l *Link) Answers(ctx context.Context) error {
	if err, fresh := l.LastAnswer(); fresh {
		return err
	}
	if l.answered.asking.Acquire(ctx) != nil {
		return await.ErrPatience
	}
	defer l.answered.asking.Release()
	if err, fresh := l.LastAnswer(); fresh {
		return err // another caller has asked meanwhile
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

// maxPings bounds the stale connections that are tried before a new one is made: broken ones, and
// those to a node that has lost its cluster.
const maxPings = 3

// Ping asks over an idle connection, or connects, which checks the server.
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
	defer func() { _ = conn.Close() }() // returns it; the pool closes a broken one
	if err := conn.PingContext(ctx); err != nil {
		return err
	}
	if err := l.Writable(ctx, conn); err != nil {
		return err
	}
	if now := l.nodes.current.Load(); now == nil || now.Cluster == "" {
		return nil
	}
	// a node that has lost its cluster still answers a statement without tables
	_, err = conn.ExecContext(ctx, l.opts.Probe)
	return err
}
