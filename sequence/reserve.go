package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
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

func isMomentary(err error) bool {
	var unfit *UnfitError
	return errors.As(err, &unfit) && unfit.momentary
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

// find reads the row that name means. No such row is ErrUnknown.
func (v *server) find(ctx context.Context, name string) (row, error) {
	conn, err := v.conn(ctx)
	if err != nil {
		return row{}, err
	}
	defer func() { _ = conn.Close() }()
	found, err := v.readRow(ctx, conn, name)
	if err != nil {
		return row{}, err
	}
	// A row made again under another spelling must not escape the mark of the old one.
	for _, other := range v.marks.like(found.name) {
		if same, err := v.readRow(ctx, conn, other); err == nil && same.name == found.name {
			v.marks.carry(other, found.name)
		} else if err != nil && !errors.Is(err, ErrUnknown) {
			return row{}, err
		}
	}
	return found, nil
}

// deleted returns the mark of a sequence that has no row any more, 0 if it was dropped: then there is a tombstone.
func (v *server) deleted(ctx context.Context, conn *sql.Conn, name string, has shape) uint64 {
	mark := v.marks.of(name)
	if mark == 0 || has == shapeNone {
		return mark
	}
	var floor uint64
	err := conn.QueryRowContext(ctx, "SELECT `floor` FROM "+v.table.options+" WHERE `name` = ?", name).Scan(&floor)
	if err == nil && floor > 0 || err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0
	}
	return mark
}

// readRow is find on a connection.
func (v *server) readRow(ctx context.Context, conn *sql.Conn, name string) (row, error) {
	has, err := v.lookForOptions(ctx, conn)
	if err != nil {
		return row{}, err
	}
	found, err := v.scanRow(conn.QueryRowContext(ctx, v.table.one(has), name))
	if has != shapeNone && hasCode(err, gomysql.ER_CANT_AGGREGATE_2COLLATIONS) {
		if err := v.comparable(ctx, conn); err != nil {
			return row{}, err
		}
	}
	if errors.Is(err, sql.ErrNoRows) || isNoSuchText(err) {
		return row{}, &NameError{Name: name, Err: ErrUnknown, Deleted: v.deleted(ctx, conn, name, has)}
	}
	if has != shapeNone && hasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR) {
		v.hasOptions.Store(false) // somebody dropped it, or put an old one in its place; the next attempt looks again
	}
	if err == nil {
		v.learn(&found)
	}
	return found, err
}

// learn takes over what a row says about how to reserve, and makes numbers in memory void if a new epoch has begun.
func (v *server) learn(r *row) {
	v.rules.set(r.name, r.rule())
	if v.marks.enter(r.name, r.epoch) {
		v.void(r.name)
	}
}

// learnAs is learn for a row that is made again under another spelling than the one that numbers are reserved by.
func (v *server) learnAs(name string, r *row) {
	if name != r.name {
		renamed := *r
		renamed.name = name
		v.learn(&renamed)
	}
}

// comparable makes sure that the names of both tables can be compared, after a statement said of some text that it cannot.
func (v *server) comparable(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT 1 FROM "+v.table.full+" AS s JOIN "+v.table.options+" AS o ON o.`name` = s.`name` LIMIT 0")
	if !hasCode(err, gomysql.ER_CANT_AGGREGATE_2COLLATIONS) {
		return err
	}
	if _, err := v.checkAgain(ctx, conn); err != nil { // the column has been changed, perhaps since this connection was made
		return err
	}
	return v.unfit(v.table.options, fmt.Sprintf("its column `name` compares differently from that of %s: %v", v.table.full, err),
		"ALTER TABLE "+v.table.options+" MODIFY `name` "+v.seen.Load().nameType+" NOT NULL")
}

// scanRow reads what table.rows selects.
func (v *server) scanRow(from interface{ Scan(...any) error }) (r row, err error) {
	var id sql.NullString
	if err := from.Scan(append([]any{&r.name, &id}, r.fields()...)...); err != nil {
		return row{}, err
	}
	if r.id, err = v.parseID(r.name, id); err != nil {
		return row{}, err
	}
	v.complete(&r)
	return r, nil
}

// complete fills in what follows from the other fields.
func (v *server) complete(r *row) {
	r.max = r.def.limit(v.seen.Load().max) // there is a connection, so there was a check
	r.exact = r.def.Cache
}

// parseID reads the id of a row.
func (v *server) parseID(name string, id sql.NullString) (uint64, error) {
	if !id.Valid {
		return 0, v.unfit(v.table.full, fmt.Sprintf("sequence %q: its id is NULL", name),
			"UPDATE "+v.table.full+" SET `id` = the last number given")
	}
	n, err := strconv.ParseUint(id.String, 10, 64)
	if err != nil {
		return 0, v.unfit(v.table.full, fmt.Sprintf("sequence %q: its id is %s, which is not the last number given", name, id.String),
			"UPDATE "+v.table.full+" SET `id` = 0 or the last number given")
	}
	return n, nil
}

// list reads all rows.
func (v *server) list(ctx context.Context) ([]row, error) {
	conn, err := v.conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	has, err := v.lookForOptions(ctx, conn)
	if err != nil {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, v.table.rows(has))
	if err != nil {
		if has != shapeNone && hasCode(err, gomysql.ER_CANT_AGGREGATE_2COLLATIONS) {
			err = errors.Join(v.comparable(ctx, conn), err)
		}
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []row
	for rows.Next() {
		r, err := v.scanRow(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// isUnknownOutcome reports whether a statement may have run although it failed: it was sent and no answer came. An error that the
// server sent means that it did not run, and driver.ErrBadConn that it was never sent, or that a read-only server refused it.
func isUnknownOutcome(err error) bool {
	var said *mysql.MySQLError
	return !errors.As(err, &said) && !errors.Is(err, driver.ErrBadConn)
}

func hasCode(err error, codes ...uint16) bool {
	var said *mysql.MySQLError
	return errors.As(err, &said) && slices.Contains(codes, said.Number)
}

// isConflict: deadlock, lock wait timeout, and MariaDB's "record has changed since last read".
func isConflict(err error) bool {
	return hasCode(err, gomysql.ER_LOCK_DEADLOCK, gomysql.ER_LOCK_WAIT_TIMEOUT, gomysql.ER_CHECKREAD)
}

// isOutOfRange: the number does not fit the column, or not 64 bits.
func isOutOfRange(err error) bool {
	return hasCode(err, gomysql.ER_WARN_DATA_OUT_OF_RANGE, gomysql.ER_DATA_OUT_OF_RANGE)
}

// Codes of "cannot convert string", which the constants' package lacks.
const (
	cannotConvert        = 3854
	cannotConvertMariaDB = 1977
)

// isNoSuchText: a name that the column's charset cannot hold, or that is no valid text, names no row.
func isNoSuchText(err error) bool {
	return hasCode(err, gomysql.ER_INVALID_CHARACTER_STRING, gomysql.ER_CANT_AGGREGATE_2COLLATIONS, cannotConvert, cannotConvertMariaDB)
}

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
