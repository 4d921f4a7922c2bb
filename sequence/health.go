package sequence

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"
)

// answered is whether a sequence server answered when it was asked for just that.
type answered struct {
	asking lock // held while it is asked

	mu  sync.Mutex
	at  time.Time // guarded by mu; zero: it was not asked
	err error     // guarded by mu
}

func (a *answered) last(within time.Duration) (err error, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err, !a.at.IsZero() && time.Since(a.at) < within
}

// Usable says why no keys can be given; nil: numbers are in memory, or a sequence server answers.
// It asks one at most every two seconds, whoever calls, and until ctx is done.
func (s *Sequences) Usable(ctx context.Context) error {
	if s.Stats().Cached > 0 {
		return nil
	}
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	if err := s.anyAnswers(ctx, s.servers.view.Load()); err != nil {
		return &UnavailableError{Server: s.serverName(), Err: err}
	}
	return nil
}

// anyAnswers says why none of the members can be reserved from.
func (s *Sequences) anyAnswers(ctx context.Context, w *view) error {
	live := w.live()
	failed := s.servers.each(ctx, live, func(ctx context.Context, _ int, v *server) error { return v.answers(ctx) })
	if len(failed) < len(live) {
		return nil
	}
	return errors.Join(failed...)
}

// LastUsable is Usable by what is known already: it does not ask.
func (s *Sequences) LastUsable() error {
	if s.Stats().Cached > 0 {
		return nil
	}
	if err := s.servers.lastFailure(); err != nil {
		return &UnavailableError{Server: s.serverName(), Err: err}
	}
	return nil
}

// UsableFor says why a sequence gives no number now; nil: numbers of it are in memory, or can be
// reserved as far as one can tell without doing it. A name that is not known here yet is asked for.
// Errors are those of Known, ErrUnknown and ErrExhausted. name is not kept.
func (s *Sequences) UsableFor(ctx context.Context, name []byte) error {
	c, err := s.find(ctx, name, s.patience(ctx))
	if err != nil {
		return err
	}
	if held, err := c.givesNow(); held || err != nil {
		return err
	}
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	w := s.servers.view.Load()
	home := s.servers.home(w, c.name)
	if home == nil {
		if err = s.anyAnswers(ctx, w); err == nil {
			return nil
		}
	} else if err = home.answers(ctx); err == nil {
		return nil
	}
	return &UnavailableError{Sequence: shownName(c.name), Server: s.servers.nameFor(c.name), Ordered: c.ordered(), Err: err}
}

// givesNow reports whether numbers are in memory, and if not, why none can be reserved, as far as
// it is known.
func (c *cache) givesNow() (held bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.end != nil:
		return false, c.end
	case c.cached > 0, c.clocked != nil && c.clocked.State().Ticks > 0:
		return true, nil
	case c.flying && c.lastErr != nil:
		// being tried again; what failed and is not tried again says nothing of now
		return false, c.unavailableLocked(0, c.lastErr)
	}
	if _, ok := c.rule.Next(c.top, c.max); !ok && !c.cycle {
		return false, &NameError{Name: shownName(c.name), Err: ErrExhausted}
	}
	return false, nil
}

// answers says why the server cannot be reserved from; nil: it answered when it was asked last.
func (l *link) answers(ctx context.Context) error {
	if err, fresh := l.answered.last(l.timing.answered); fresh {
		return err
	}
	if l.answered.asking.acquire(ctx) != nil {
		return errPatience
	}
	defer l.answered.asking.release()
	if err, fresh := l.answered.last(l.timing.answered); fresh {
		return err // somebody else has asked meanwhile
	}
	err := l.ping(ctx)
	if ctx.Err() != nil {
		err = errPatience
	}
	l.answered.mu.Lock()
	defer l.answered.mu.Unlock()
	l.answered.at, l.answered.err = time.Now(), err
	return err
}

// maxPings bounds the connections that are found broken, or to lead to a node that has lost its
// cluster, before one is made.
const maxPings = 3

// ping connects, which checks the server, or asks over a connection that is there.
func (l *link) ping(ctx context.Context) (err error) {
	for range maxPings {
		if err = l.pingOnce(ctx); !errors.Is(err, driver.ErrBadConn) && !hasCode(err, wsrepNotReady) {
			break
		}
	}
	return err
}

func (l *link) pingOnce(ctx context.Context) error {
	conn, err := l.conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // gives it back; a broken one is closed by the pool
	if err := conn.PingContext(ctx); err != nil {
		return err
	}
	if err := l.writable(ctx, conn); err != nil {
		return err
	}
	if now := l.nodes.current.Load(); now == nil || now.cluster == "" {
		return nil
	}
	// a node that has lost its cluster answers what asks for no table
	_, err = conn.ExecContext(ctx, "SELECT 1 FROM "+l.full+" LIMIT 0")
	return err
}
