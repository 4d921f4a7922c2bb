package ticket

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// Locked is a ticket table that is locked for writing on a connection.
type Locked struct {
	*Table
	*Layout
	conn    *sql.Conn
	Step    uint64 // the distance between the table's numbers
	AnyStub string // the stub of one of its rows
}

// Lock locks the table for writing. The session counts as new sessions of the server do. While it
// waits, direct applications wait behind it, so the wait is short, and ends as a conflict.
func (t *Table) Lock(ctx context.Context, conn *sql.Conn, layout *Layout) (*Locked, error) {
	l := &Locked{Table: t, Layout: layout, conn: conn}
	if _, err := conn.ExecContext(ctx, "SET SESSION auto_increment_increment = @@GLOBAL.auto_increment_increment, "+
		"SESSION auto_increment_offset = @@GLOBAL.auto_increment_offset, SESSION lock_wait_timeout = 2"); err != nil {
		return nil, fmt.Errorf("set up session: %w", err)
	}
	if err := conn.QueryRowContext(ctx, "SELECT @@SESSION.auto_increment_increment").Scan(&l.Step); err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "LOCK TABLES "+t.Quoted+" WRITE"); err != nil {
		if link.HasCode(err, gomysql.ER_DBACCESS_DENIED_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR, gomysql.ER_SPECIFIC_ACCESS_DENIED_ERROR) {
			err = t.unfit(fmt.Sprintf("the user may not lock it: %v", err), grantRights)
		}
		return nil, err
	}
	return l, nil
}

// Unlock releases the lock, if need be with the connection.
func (l *Locked) Unlock(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), l.patience)
	defer stop()
	_, err := l.conn.ExecContext(ctx, "UNLOCK TABLES")
	if err == nil {
		return nil
	}
	_ = l.conn.Raw(func(any) error { return driver.ErrBadConn }) // the pool closes it
	return fmt.Errorf("unlock %s: %w", l.Quoted, err)
}

// next takes the table's next number, as applications do.
func (l *Locked) next(ctx context.Context) (uint64, error) {
	text, args := "INSERT INTO "+l.Quoted+" ("+define.Quote(l.ID)+") VALUES (NULL)", []any(nil)
	if l.Layout.Stub != "" {
		text, args = "REPLACE INTO "+l.Quoted+" ("+define.Quote(l.Layout.Stub)+") VALUES (?)", []any{l.AnyStub}
	}
	result, err := l.conn.ExecContext(ctx, text, args...)
	if link.HasCode(err, gomysql.ER_AUTOINC_READ_FAILED, gomysql.ER_DUP_ENTRY, gomysql.ER_WARN_DATA_OUT_OF_RANGE, link.CounterAtEndMariaDB) {
		return 0, l.exhausted()
	}
	if err != nil {
		return 0, err
	}
	id, err := result.LastInsertId()
	return uint64(id), err
}

// moveTo writes a row with the number id, after which the counter continues above it. If the
// statement was not sent, the counter is where it was.
func (l *Locked) moveTo(ctx context.Context, id uint64) (sent bool, err error) {
	number := strconv.FormatUint(id, 10) // the driver takes no uint64 with the high bit
	text, args := "INSERT INTO "+l.Quoted+" ("+define.Quote(l.ID)+") VALUES (?)", []any{number}
	if l.Layout.Stub != "" {
		text, args = "REPLACE INTO "+l.Quoted+" ("+define.Quote(l.ID)+", "+define.Quote(l.Layout.Stub)+") VALUES (?, ?)", []any{number, l.AnyStub}
	}
	if _, err := l.conn.ExecContext(ctx, text, args...); err != nil {
		return !errors.Is(err, driver.ErrBadConn), err
	}
	var there int
	err = l.conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+l.Quoted+" WHERE "+define.Quote(l.ID)+" = ?", number).Scan(&there)
	if err == nil && there != 1 {
		err = l.unfit(fmt.Sprintf("a row written with the number %d is not there", id), "look for triggers on the table")
	}
	return true, err
}

// forget deletes the row of a number that next has taken, unless moveTo did.
func (l *Locked) forget(ctx context.Context, id uint64) error {
	if l.Layout.Stub != "" {
		return nil
	}
	_, err := l.conn.ExecContext(ctx, "DELETE FROM "+l.Quoted+" WHERE "+define.Quote(l.ID)+" = ?", strconv.FormatUint(id, 10))
	return err
}

// nextUnnamed is next without a stub: it renews the row of one that the table has.
func (l *Locked) nextUnnamed(ctx context.Context) (first uint64, err error) {
	if l.Layout.Stub == "" {
		return l.next(ctx)
	}
	err = l.conn.QueryRowContext(ctx, "SELECT "+define.Quote(l.Layout.Stub)+" FROM "+l.Quoted+" WHERE "+define.Quote(l.Layout.Stub)+
		" IS NOT NULL ORDER BY "+define.Quote(l.ID)+" DESC LIMIT 1").Scan(&l.AnyStub)
	empty := errors.Is(err, sql.ErrNoRows)
	if err != nil && !empty {
		return 0, err
	}
	first, err = l.next(ctx)
	if err != nil && empty && !errors.Is(err, define.ErrExhausted) {
		err = fmt.Errorf("it has no row yet: take a number of it as applications do, and import it then: %w", err)
	}
	return first, err
}

// Reservation is the numbers of one attempt.
type Reservation struct {
	Segment segment.Segment
	Max     uint64 // the highest number that the table gives
	Lost    uint64 // numbers that a failed attempt may have taken: they are never given

	WentBack bool   // the counter was below what it gave before, and was raised
	Gave     uint64 // the number that it gave then
}

// Reserve takes up to want numbers of a table that has given all up to mark. It is several
// statements: if something interrupts them, the numbers taken so far are lost.
func (l *Locked) Reserve(ctx context.Context, want, mark uint64) (r Reservation, err error) {
	first, err := l.next(ctx)
	if err == nil && first <= mark {
		r.WentBack, r.Gave = true, first
		if _, err = l.moveTo(ctx, mark); err != nil {
			return r, err
		}
		first, err = l.next(ctx)
	}
	// The column's highest number is never given: some servers would give it again.
	r.Max = l.Max - min(l.Max, l.Step)
	switch {
	case errors.Is(err, define.ErrExhausted):
		return r, err
	case err != nil:
		if !errors.Is(err, driver.ErrBadConn) {
			// a counter does not go back when the statement is rolled back
			r.Lost = 1
		}
		return r, err
	case first == 0 || first <= mark:
		return r, l.unfit(fmt.Sprintf("its counter stays at %d", first), "look for triggers on the table")
	case first > r.Max:
		return r, l.exhausted()
	}
	n := min(want, (r.Max-first)/l.Step+1)
	if n > 1 {
		if sent, err := l.moveTo(ctx, first+(n-1)*l.Step); err != nil {
			r.Lost = 1
			if sent {
				r.Lost = n
			}
			return r, err
		}
		if err := l.forget(ctx, first); err != nil {
			r.Lost = n
			return r, err
		}
	}
	r.Segment = segment.Stepped(first, l.Step, n)
	return r, nil
}

func (l *Locked) exhausted() error {
	return &define.NameError{Name: l.FullName(), Err: define.ErrExhausted}
}
