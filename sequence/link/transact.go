package link

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"seqproxy/internal/await"
)

// Transact runs f in a transaction, again if it conflicts with another or its connection turns out
// to be of no use.
func (l *Link) Transact(ctx context.Context, f func(tx *sql.Tx) error) error {
	return Again(ctx, []*Link{l}, func() error { return l.TransactOnce(ctx, f) })
}

// Again calls f, which writes on servers, until it meets no other transaction and no connection
// that turns out to be of no use, at most MaxAttempts times.
func Again(ctx context.Context, links []*Link, f func() error) error {
	var conflict error
	for attempt := 1; ; attempt++ {
		err := f()
		if conflict != nil && ctx.Err() != nil && err != nil && !errors.Is(err, ErrOutcome) {
			return conflict // what it waited for says more than that the wait ended
		}
		// ErrBadConn: nothing was done. The checks of the next connection say why, such as that the
		// server is read only now.
		retry := IsConflict(err) || errors.Is(err, driver.ErrBadConn)
		for _, l := range links {
			if l.IsMoved(err) {
				l.Moved() // the next attempt is on the node that can be written to by then
				retry = true
			}
		}
		if !retry || attempt == MaxAttempts {
			return err
		}
		conflict = err
		links[0].opts.Retries.Add(1)
		if !links[0].MayRetry(ctx, attempt) {
			return conflict
		}
	}
}

func (l *Link) TransactOnce(ctx context.Context, f func(tx *sql.Tx) error) error {
	conn, err := l.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := l.Writable(ctx, conn); err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := Commit(ctx, tx); err != nil {
		return fmt.Errorf("%w: %w", ErrOutcome, err)
	}
	return nil
}

// ErrOutcome: it is not known whether what was asked for was done.
var ErrOutcome = errors.New("the commit's outcome is unknown: look whether it was done before you say it again")

// Commit is tx.Commit for callers whose time is bounded: a server that cannot commit, as in a
// cluster that has lost its majority, may not answer, and Commit knows of no context.
func Commit(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "COMMIT"); err != nil {
		// gives the connection back. What it says is not of the commit: above all not that nothing
		// was done
		_ = tx.Rollback()
		return err
	}
	_ = tx.Commit() // nothing is left to commit
	return nil
}

// MaxAttempts bounds how often something is tried before its caller's backoff takes over.
const MaxAttempts = 6

// MayRetry waits before a further attempt, after the attempt-th has failed. It is false if that was
// the last one, or ctx is done.
func (l *Link) MayRetry(ctx context.Context, attempt int) bool {
	return attempt < MaxAttempts && await.Pause(ctx, await.Jitter(l.timing.Conflict<<attempt))
}
