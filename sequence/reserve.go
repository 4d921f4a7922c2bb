package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"
)

// Bounds of what one reservation does by itself before its caller's backoff takes over.
const (
	maxAttempts   = 6
	firstConflict = 5 * time.Millisecond
)

// reserve implements [reserver] on the table.
func (v *server) reserve(ctx context.Context, name string, want, need uint64) (grant, error) {
	if err := v.enlist(ctx); err != nil {
		return grant{}, err
	}
	n := want
	for attempt := 1; ; attempt++ {
		epoch := v.marks.epoch(name)
		g, err := v.reserveOnce(ctx, name, n)
		again := false
		switch {
		case err == nil:
			mark, ok := v.marks.admit(name, epoch, g.seg)
			switch {
			case ok || g.cycle && mark != 0:
				v.counters.reservations.Add(1)
				v.counters.reserved.Add(n)
				return g, nil
			case mark == 0:
				v.counters.lost.Add(n)
				again, err = true, errVoid
			default:
				if err = v.raise(ctx, name, mark, g.seg); err == nil {
					again, err = true, fmt.Errorf("the row keeps going back below %d", mark)
				}
			}
		case errors.Is(err, errRuleChanged):
			again = true
			if g.seg.Remaining() > 0 {
				// Those numbers were given to nobody. If they cannot be given back either they are a gap.
				if done, _ := v.giveBack(ctx, name, epoch, g.seg); !done {
					v.counters.lost.Add(n)
				}
			}
		case isOutOfRange(err), errors.Is(err, errNoRoom):
			if n, err = v.fit(ctx, name, want, need); err == nil {
				again, err = true, errors.New("the end of the sequence moves")
			}
		case isConflict(err):
			v.counters.retries.Add(1)
			// A lock wait is long already. Whoever waits for the number should read why.
			again = !hasCode(err, gomysql.ER_LOCK_WAIT_TIMEOUT)
		case isMomentary(err):
			again = true
		}
		if !again || attempt == maxAttempts {
			if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrExhausted) {
				v.counters.errors.Add(1)
			}
			return grant{}, fmt.Errorf("reserve %d numbers of sequence %q: %w", n, name, err)
		}
		if !pause(ctx, jitter(firstConflict<<attempt)) {
			return grant{}, context.Cause(ctx)
		}
	}
}

// Errors of one attempt that the next may not have.
var (
	errRuleChanged = errors.New("increment or maximum of the sequence were changed meanwhile")
	errNoRoom      = errors.New("so many numbers are not left")
	errVoid        = errors.New("the sequence was restarted meanwhile")
	errFrozen      = errors.New("the sequence is frozen for a restart")
)

// reserveOnce runs the one statement that takes n numbers, and then makes sure that it did what it said.
func (v *server) reserveOnce(ctx context.Context, name string, n uint64) (g grant, err error) {
	conn, err := v.conn(ctx)
	if err != nil {
		return g, err
	}
	defer func() { _ = conn.Close() }() // gives it back; a broken one is closed by the pool

	rule := v.rules.of(name)
	text, args := v.table.reserve(), []any{n, name}
	var bound uint64
	if rule.step != 1 || rule.max != 0 {
		highest := v.seen.Load().max
		if rule.max != 0 {
			highest = min(highest, rule.max)
		}
		var ok bool
		if bound, ok = rule.room(n, highest); !ok {
			return g, errNoRoom
		}
		text, args = v.table.reserveByRule(), rule.arguments(name, n, bound)
	}
	width := (n - 1) * rule.step
	result, err := conn.ExecContext(ctx, text, args...)
	if err != nil {
		if isUnknownOutcome(err) {
			v.counters.lost.Add(n)
			return g, fmt.Errorf("connection lost in a reservation, its numbers are never used: %w", err)
		}
		return g, err
	}
	affected, err := result.RowsAffected()
	if err != nil {
		return g, err
	}
	told, err := result.LastInsertId() // the packet's 64 bits in an int64
	if err != nil {
		return g, err
	}
	if affected != 1 {
		return g, v.notOneRow(ctx, conn, name, affected, rule, bound)
	}
	// From here on the row has moved: whatever goes wrong, the range is not used.
	last, stored, err := v.verify(ctx, conn, name, uint64(told), width+1, rule)
	if errors.Is(err, errRuleChanged) {
		return grant{seg: steppedSegment(last-width, rule.step, n)}, err
	}
	if err != nil {
		v.counters.lost.Add(n)
		return g, err
	}
	return grant{seg: steppedSegment(last-width, rule.step, n), max: stored.max, exact: stored.exact, rule: stored.rule(), cycle: stored.def.Cycle}, nil
}

// doubt is a finding about a row that somebody may just have changed, or dropped and made again.
func (v *server) doubt(finding, remedy string) error {
	return &UnfitError{Server: v.name(), Table: v.table.full, Finding: finding, Remedy: remedy, momentary: true}
}

// verify makes sure that a reservation was stored as such, without a warning, and returns its last number. told is the insert id of
// the OK packet: the last number too, except that a server puts 0 there when the table has a trigger, while the function knows. width
// is from before the first number to the last. With errRuleChanged the numbers were reserved, but are none that the sequence may give.
func (v *server) verify(ctx context.Context, conn *sql.Conn, name string, told, width uint64, used rule) (last uint64, stored row, err error) {
	var warnings int
	var readOnly string
	err = conn.QueryRowContext(ctx, "SELECT @@warning_count, LAST_INSERT_ID(), @@global.read_only").Scan(&warnings, &last, &readOnly)
	if err != nil {
		return 0, row{}, fmt.Errorf("read warnings: %w", err)
	}
	if !isOff(readOnly) {
		// An account with SUPER writes there all the same, while another server may be the primary by now.
		return 0, row{}, v.readOnly()
	}
	if stored, err = v.readRow(ctx, conn, name); err != nil {
		return 0, row{}, fmt.Errorf("read back: %w", err)
	}
	v.learnAs(name, &stored)
	if last > stored.max {
		// The column may have been widened since this connection was made.
		if _, err = v.checkAgain(ctx, conn); err != nil {
			return 0, row{}, err
		}
		v.complete(&stored)
	}
	switch {
	case stored.frozen > 0:
		return 0, row{}, errFrozen
	case !used.same(stored.rule()) && last >= width && (told == 0 || told == last):
		return last, row{}, errRuleChanged // the next attempt goes by the new one, which readRow has learnt

	case told != 0 && told != last:
		return 0, row{}, v.doubt(fmt.Sprintf("sequence %q: the server answered %d and then %d for one reservation", name, told, last),
			"connect to the server itself, not through something that spreads statements over connections")
	case warnings != 0:
		return 0, row{}, v.doubt(fmt.Sprintf("reserving numbers of %q gave %d warning(s): the row may not hold what was asked for", name, warnings),
			"look at triggers and column types of the table, then try the UPDATE by hand and SHOW WARNINGS")
	case last < width || last > stored.max || stored.id < last && !stored.def.Cycle:
		return 0, row{}, v.doubt(fmt.Sprintf("sequence %q: asked for numbers up to %d, the row holds %d", name, last, stored.id),
			"look for triggers on the table, and for rows whose id is negative")
	}
	return last, stored, nil
}

// checkAgain repeats the checks of a connection and returns the highest number of the id column.
func (v *server) checkAgain(ctx context.Context, conn *sql.Conn) (uint64, error) {
	err := conn.Raw(func(raw any) error {
		found, err := v.check(ctx, rawConn{raw.(driver.Conn)})
		if err == nil {
			v.seen.Store(found)
		}
		return err
	})
	return v.seen.Load().max, err
}

// notOneRow explains why a reservation changed no row, or several. bound is what the id had to be below, 0 if it did not matter.
func (v *server) notOneRow(ctx context.Context, conn *sql.Conn, name string, affected int64, used rule, bound uint64) error {
	if affected > 1 {
		return v.unfit(v.table.full, fmt.Sprintf("%d rows are named %q", affected, name), "ALTER TABLE "+v.table.full+" ADD PRIMARY KEY (`name`)")
	}
	stored, err := v.readRow(ctx, conn, name)
	if err != nil {
		return err // ErrUnknown: no such row
	}
	v.learnAs(name, &stored)
	switch {
	case stored.frozen > 0:
		return v.frozen(ctx, &stored)
	case !used.same(stored.rule()):
		return errRuleChanged
	case bound != 0 && stored.id >= bound:
		return errNoRoom
	}
	return v.doubt(fmt.Sprintf("sequence %q: its id stays at %d although it was raised", name, stored.id),
		"look for triggers on the table, and for rows whose id is NULL")
}

// fit says how many numbers to reserve after a reservation of want was beyond the column's maximum.
func (v *server) fit(ctx context.Context, name string, want, need uint64) (uint64, error) {
	stored, err := v.find(ctx, name)
	if err != nil {
		return need, err
	}
	v.learnAs(name, &stored)
	if stored.frozen > 0 {
		return need, v.frozen(ctx, &stored)
	}
	left := stored.rule().left(stored.id, stored.max)
	if left < need && stored.def.Cycle {
		if left, err = v.cycle(ctx, name, need); err != nil {
			return need, err
		}
	}
	if left < need {
		return need, &NameError{Name: name, Err: ErrExhausted}
	}
	n := max(need, min(want, left/ceilingShare))
	return n - n%need, nil // whole steps, where somebody counts in steps
}

// raise lifts a row that has gone back to the mark.
func (v *server) raise(ctx context.Context, name string, mark uint64, refused Segment) error {
	v.counters.rewinds.Add(1)
	v.log.Error("the row of a sequence has gone back; raising it above what was given",
		zap.String("sequence", name), zap.Uint64("row_gave", refused.Next()), zap.Uint64("given_before", mark),
		zap.String("to_begin_again", fmt.Sprintf("ALTER SEQUENCE %s RESTART WITH 1 FORCE", quote(name))))
	if _, err := v.pool().ExecContext(ctx, v.table.raise(), mark, name); err != nil {
		return fmt.Errorf("raise the row to %d: %w", mark, err)
	}
	return nil
}

// giveBack lowers the row to just below seg if nobody has reserved since, and reports whether it did.
func (v *server) giveBack(ctx context.Context, name string, epoch uint64, seg Segment) (bool, error) {
	done := false
	err := v.transactOnce(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, v.table.giveBack(), seg.Next()-1, name, seg.Last())
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return err
		}
		// The row is locked now. It may be another sequence's, made above the tombstone of the one that seg is of.
		// Or the sequence was restarted, or is frozen for that.
		if has, err := v.lookForOptions(ctx, tx); err != nil {
			return err
		} else if has != shapeNone {
			e := noEntry()
			err := tx.QueryRowContext(ctx, "SELECT "+selectEntry(has)+" FROM "+v.table.options+" AS o WHERE o.`name` = ? FOR UPDATE", name).Scan(e.fields()...)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return fmt.Errorf("read tombstone: %w", err)
			}
			if e.floor >= seg.Next() || e.epoch > epoch || e.frozen > 0 {
				return errTombstone
			}
		}
		done = true
		return nil
	})
	if errors.Is(err, errTombstone) {
		return false, nil
	}
	return done && err == nil, err
}

// errTombstone undoes a giving back: the sequence was dropped since.
var errTombstone = errors.New("a tombstone reaches the numbers")

// pause waits for d and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
