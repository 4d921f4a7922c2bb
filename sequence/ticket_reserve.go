package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// reserve implements [reserver] on a ticket table. Under LOCK TABLES ... WRITE it takes one number
// as every application does, and then writes a row with the last number of the segment, above which
// every engine goes on. So the counter is never read, which a server may do from stale statistics,
// nor set by ALTER TABLE, which would give up the lock; and it survives what that row survives.
func (t *TicketTable) reserve(ctx context.Context, _ string, want, _ uint64) (grant, error) {
	v := t.s.servers.tickets
	if err := t.s.state.Ready(); err != nil {
		v.counters.errors.Add(1)
		return grant{}, err
	}
	name, begin := t.cache.name, time.Now()
	g, lost, err := t.reserveOnce(ctx, want)
	took, result := time.Since(begin), resultOf(v.outcomeOf(err), err)
	if err == nil {
		if err = t.s.state.KeepTicket(t.full, g.seg.Last()); err != nil {
			result = ReservedError
		}
	}
	switch {
	case err == nil:
		v.counters.tried(name, &v.trials, ReservedOK, took)
		return g, nil
	case g.seg.Remaining() > 0: // it cannot be remembered, or the table was not unlocked in order
		v.counters.lose(name, UnusedRefused, g.seg.Remaining())
	case lost > 0:
		if (link.IsUnknownOutcome(err) || errors.Is(err, driver.ErrBadConn)) && !errors.Is(err, ErrUnfit) {
			result = ReservedUnknown
		}
		v.counters.lose(name, UnusedUnknownCommit, lost)
	}
	if link.IsConflict(err) {
		v.counters.retries.Add(1)
	}
	v.counters.tried(name, &v.trials, result, took)
	if !errors.Is(err, ErrExhausted) {
		v.counters.errors.Add(1)
	}
	return grant{}, fmt.Errorf("reserve numbers of %s: %w", t.full, err)
}

// giveBack implements [reserver]. A counter does not go back.
func (t *TicketTable) giveBack(context.Context, string, uint64, segment.Segment) (bool, error) {
	return false, nil
}

// reserveOnce is one attempt. lost is how many numbers one that fails has taken at most; they are
// nobody's then.
func (t *TicketTable) reserveOnce(ctx context.Context, want uint64) (g grant, lost uint64, err error) {
	conn, err := t.s.servers.tickets.Conn(ctx)
	if err != nil {
		return grant{}, 0, err
	}
	defer func() { _ = conn.Close() }()
	layout, err := t.inspectOn(ctx, conn)
	if err != nil {
		return grant{}, 0, err
	}
	l, err := t.lock(ctx, conn, layout)
	if err != nil {
		return grant{}, 0, err
	}
	defer func() { err = errors.Join(err, l.unlock(ctx)) }()
	t.mu.Lock()
	l.stub = string(t.stub)
	t.mu.Unlock()
	return t.reserveLocked(ctx, l, want)
}

// lockedTable is a ticket table that is locked for writing on a connection.
type lockedTable struct {
	*ticketRef
	*ticketLayout
	conn *sql.Conn
	step uint64 // the distance between the table's numbers
	stub string // a stub that there is
}

// lock locks the table for writing. The session counts as the server's new sessions do. A wait for
// the table keeps direct applications waiting behind it, so it is short, and ends as a conflict.
func (t *ticketRef) lock(ctx context.Context, conn *sql.Conn, layout *ticketLayout) (*lockedTable, error) {
	l := &lockedTable{ticketRef: t, ticketLayout: layout, conn: conn}
	if _, err := conn.ExecContext(ctx, "SET SESSION auto_increment_increment = @@GLOBAL.auto_increment_increment, "+
		"SESSION auto_increment_offset = @@GLOBAL.auto_increment_offset, SESSION lock_wait_timeout = 2"); err != nil {
		return nil, fmt.Errorf("set up session: %w", err)
	}
	if err := conn.QueryRowContext(ctx, "SELECT @@SESSION.auto_increment_increment").Scan(&l.step); err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "LOCK TABLES "+t.full+" WRITE"); err != nil {
		if link.HasCode(err, gomysql.ER_DBACCESS_DENIED_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR, gomysql.ER_SPECIFIC_ACCESS_DENIED_ERROR) {
			err = t.unfit(fmt.Sprintf("the user may not lock it: %v", err), "GRANT SELECT, INSERT, DELETE, LOCK TABLES on its schema to the user")
		}
		return nil, err
	}
	return l, nil
}

// unlock gives up the lock, with the connection if need be.
func (l *lockedTable) unlock(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), l.patience)
	defer stop()
	_, err := l.conn.ExecContext(ctx, "UNLOCK TABLES")
	if err == nil {
		return nil
	}
	_ = l.conn.Raw(func(any) error { return driver.ErrBadConn }) // has the pool close it
	return fmt.Errorf("unlock %s: %w", l.full, err)
}

// next takes the table's next number, as applications do.
func (l *lockedTable) next(ctx context.Context) (uint64, error) {
	text, args := "INSERT INTO "+l.full+" ("+quote(l.id)+") VALUES (NULL)", []any(nil)
	if l.ticketLayout.stub != "" {
		text, args = "REPLACE INTO "+l.full+" ("+quote(l.ticketLayout.stub)+") VALUES (?)", []any{l.stub}
	}
	result, err := l.conn.ExecContext(ctx, text, args...)
	if link.HasCode(err, gomysql.ER_AUTOINC_READ_FAILED, gomysql.ER_DUP_ENTRY, gomysql.ER_WARN_DATA_OUT_OF_RANGE, link.CounterAtEndMariaDB) {
		return 0, &NameError{Name: l.database + "." + l.name, Err: ErrExhausted}
	}
	if err != nil {
		return 0, err
	}
	id, err := result.LastInsertId()
	return uint64(id), err
}

// moveTo writes a row with the number id, above which the counter is then. If it was not even sent
// the counter is where it was.
func (l *lockedTable) moveTo(ctx context.Context, id uint64) (sent bool, err error) {
	number := strconv.FormatUint(id, 10) // the driver takes no uint64 with the high bit
	text, args := "INSERT INTO "+l.full+" ("+quote(l.id)+") VALUES (?)", []any{number}
	if l.ticketLayout.stub != "" {
		text, args = "REPLACE INTO "+l.full+" ("+quote(l.id)+", "+quote(l.ticketLayout.stub)+") VALUES (?, ?)", []any{number, l.stub}
	}
	if _, err := l.conn.ExecContext(ctx, text, args...); err != nil {
		return !errors.Is(err, driver.ErrBadConn), err
	}
	var there int
	err = l.conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+l.full+" WHERE "+quote(l.id)+" = ?", number).Scan(&there)
	if err == nil && there != 1 {
		err = l.unfit(fmt.Sprintf("a row written with the number %d is not there", id), "look for triggers on the table")
	}
	return true, err
}

// forget deletes the row of a number that next has taken, where moveTo has not.
func (l *lockedTable) forget(ctx context.Context, id uint64) error {
	if l.ticketLayout.stub != "" {
		return nil
	}
	_, err := l.conn.ExecContext(ctx, "DELETE FROM "+l.full+" WHERE "+quote(l.id)+" = ?", strconv.FormatUint(id, 10))
	return err
}

// reserveLocked reserves up to want numbers. It is several statements: whatever ends it between two
// of them, what the ones before took is lost.
func (t *TicketTable) reserveLocked(ctx context.Context, l *lockedTable, want uint64) (g grant, lost uint64, err error) {
	t.mu.Lock()
	mark := t.mark
	t.mu.Unlock()
	v, name, step := t.s.servers.tickets, t.cache.name, l.step
	first, err := l.next(ctx)
	if err == nil && first <= mark {
		t.s.counters.wentBack(t.cache.name, &t.s.servers.tickets.trials)
		t.s.log.Error("ticket counter went back", zap.String("table", t.full),
			zap.Uint64("gave", first), zap.Uint64("given_before", mark))
		if _, err = l.moveTo(ctx, mark); err != nil {
			return grant{}, 0, err
		}
		first, err = l.next(ctx)
	}
	// The column's highest number is never given: some servers would give it again.
	limit := l.max - min(l.max, step)
	switch {
	case errors.Is(err, ErrExhausted):
		return grant{}, 0, err
	case err != nil:
		if !errors.Is(err, driver.ErrBadConn) {
			// a counter does not go back where the statement is undone
			lost = 1
		}
		return grant{}, lost, err
	case first == 0 || first <= mark:
		return grant{}, 0, t.unfit(fmt.Sprintf("its counter stays at %d", first), "look for triggers on the table")
	case first > limit:
		return grant{}, 0, &NameError{Name: t.cache.name, Err: ErrExhausted}
	}
	n := min(want, (limit-first)/step+1)
	last := first + (n-1)*step
	if n > 1 {
		if sent, err := l.moveTo(ctx, last); err != nil && !sent {
			return grant{}, 1, err
		} else if err != nil {
			return grant{}, n, err
		}
		if err := l.forget(ctx, first); err != nil {
			return grant{}, n, err
		}
	}
	t.mu.Lock()
	t.mark = last
	t.mu.Unlock()
	seg := segment.Stepped(first, step, n)
	v.logReserved(name, seg, mark)
	return grant{seg: seg, max: limit, rule: segment.Rule{Step: step}}, 0, nil
}
