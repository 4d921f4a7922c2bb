package link

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"seqproxy/internal/await"
)

// Transact runs f in a transaction, and again after a conflict or on a useless connection.
func (l *Link) Transact(ctx context.Context, f func(tx *sql.Tx) error) error {
	return Again(ctx, []*Link{l}, func() error { return l.TransactOnce(ctx, f) })
}

// Again calls f, which writes on servers, until it meets no conflict and no useless connection, at
// most MaxAttempts times.
func Again(ctx context.Context, links []*Link, f func() error) error {
	var conflict error
	for attempt := 1; ; attempt++ {
		err := f()
		if conflict != nil && ctx.Err() != nil && err != nil && !errors.Is(err, ErrOutcome) {
			return conflict // the conflict says more than the end of the wait
		}
		// ErrBadConn: nothing was done. The checks of the next connection say why, such as that the
		// server is read only now.
		retry := IsConflict(err) || errors.Is(err, driver.ErrBadConn)
		for _, l := range links {
			if l.IsMoved(err) {
				l.Moved() // the next attempt is on the node that is writable by then
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

// ErrOutcome: it is unknown whether the request was carried out.
var ErrOutcome = errors.New("the commit's outcome is unknown: look whether it was done before you say it again")

// Commit is tx.Commit within ctx. A server that cannot commit, as in a cluster that has lost its
// majority, may never answer, and tx.Commit takes no context.
func Commit(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "COMMIT"); err != nil {
		// returns the connection; its error says nothing about the commit, above all not that
		// nothing was done
		_ = tx.Rollback()
		return err
	}
	_ = tx.Commit() // returns the connection; nothing remains to commit
	return nil
}

// MaxAttempts bounds the attempts before the caller's backoff begins.
const MaxAttempts = 6

// MayRetry waits before another attempt, after attempt number attempt has failed. It is false if
// that was the last one, or ctx is done.
func (l *Link) MayRetry(ctx context.Context, attempt int) bool {
	return attempt < MaxAttempts && await.Pause(ctx, await.Jitter(l.timing.Conflict<<attempt))
}
