package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"seqproxy/internal/planted"
)

// doubt is a finding about a row that somebody may just have changed, or dropped and made again.
func (l *link) doubt(finding, remedy string) error {
	return &UnfitError{Server: l.name(), Table: l.full, Finding: finding, Remedy: remedy, momentary: true}
}

// verify makes sure that a reservation was stored as such, without a warning, and returns its last number. told is the insert id of
// the OK packet: the last number too, except that a server puts 0 there when the table has a trigger, while the function knows. width
// is from before the first number to the last. With errRuleChanged and errPlan the numbers were reserved, but are none that may be given.
func (v *server) verify(ctx context.Context, conn *sql.Conn, name string, told, width uint64, used rule, h share) (last uint64, stored row, err error) {
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
	if planted.Fault(planted.Verify) {
		return last, stored, nil
	}
	return v.judge(ctx, conn, name, told, last, width, warnings, used, h, stored)
}

// judge is the part of verify behind the questions: last is the insert id of the session, and stored the row behind that.
func (v *server) judge(ctx context.Context, conn *sql.Conn, name string, told, last, width uint64, warnings int, used rule, h share, stored row) (_ uint64, _ row, err error) {
	if last > stored.max {
		// The column may have been widened since this connection was made.
		if _, err = v.checkAgain(ctx, conn); err != nil {
			return 0, row{}, err
		}
		v.complete(&stored)
	}
	switch {
	case stored.plan != h.plan && !planted.Fault(planted.Plan):
		return last, row{}, errPlan
	case stored.frozen:
		return 0, row{}, errPlanChanging
	case !stored.registered:
		v.registry.missing.Store(true) // the next sign of life finds that out, gives up what is held, and has it made again
		return 0, row{}, errUnregistered
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
func (l *link) checkAgain(ctx context.Context, conn *sql.Conn) (uint64, error) {
	err := conn.Raw(func(raw any) error {
		found, err := l.check(ctx, rawConn{raw.(driver.Conn)})
		if err == nil {
			l.seen.Store(found)
		}
		return err
	})
	return l.seen.Load().max, err
}

// obeys makes sure that the server is the member that it should be, and under the plan that this process believes in.
func (v *server) obeys(ctx context.Context, conn *sql.Conn, h share) error {
	m, ok, err := v.membership(ctx, conn)
	switch {
	case err != nil:
		return err
	case !ok || m.ID != h.id:
		return v.unfit(v.table.member, fmt.Sprintf("it is the member %q of a plan, where %q should be", m.ID, h.id),
			"have its address lead to the server that was there; or stop this one, take out the member with SEQPROXY REMOVE SEQUENCE SERVER, and add this one then")
	case m.Plan != h.plan:
		return errPlan
	}
	return nil
}

// notOneRow explains why a reservation changed no row, or several. It may give the connection back before it does something about that on another: with as many
// callers as there are connections they would wait for each other.
func (v *server) notOneRow(ctx context.Context, conn *sql.Conn, name string, affected int64, used rule, h share, t *take) error {
	if affected > 1 {
		return v.unfit(v.table.full, fmt.Sprintf("%d rows are named %q", affected, name), "ALTER TABLE "+v.table.full+" ADD PRIMARY KEY (`name`)")
	}
	stored, err := v.readRow(ctx, conn, name)
	if err != nil {
		return err // ErrUnknown: no such row
	}
	v.learnAs(name, &stored)
	if h.plan != 0 {
		if err := v.obeys(ctx, conn, h); err != nil {
			return err
		}
	}
	switch {
	case stored.plan != h.plan:
		return errPlan
	case stored.frozen:
		return errPlanChanging
	case stored.id < v.lowestOf(name, h):
		return &lowRow{stored.id, v.lowestOf(name, h)}
	case h.inSteps() && !h.owns(stored.id) && stored.id < v.seen.Load().max:
		_ = conn.Close()
		return v.wrongResidue(ctx, name, stored.id, h)
	case !used.same(stored.rule()):
		return errRuleChanged
	case errors.Is(t.full, errAtBound) && stored.id >= t.bound:
		return errAtBound
	case t.upTo.guarded:
		return v.refused(ctx, conn, name, &stored)
	case t.bound != 0 && stored.id >= t.bound:
		return errNoRoom
	}
	return v.doubt(fmt.Sprintf("sequence %q: its id stays at %d although it was raised", name, stored.id),
		"look for triggers on the table, and for rows whose id is NULL")
}

// atEnd says why a row is at the end of its column: the sequence has run out, or it is frozen while the plan is changed.
func (v *server) atEnd(ctx context.Context, name string) error {
	frozen, err := v.isFrozen(ctx, name)
	switch {
	case err != nil:
		return err
	case frozen:
		return errPlanChanging
	}
	return &NameError{Name: name, Err: ErrExhausted}
}
