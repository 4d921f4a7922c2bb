package sequence

import (
	"context"
	"database/sql"
	"fmt"

	"seqproxy/internal/planted"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// doubt is a finding about a row that somebody may just have changed, or dropped and made again.
func (s *schema) doubt(finding, remedy string) error {
	return &UnfitError{Server: s.Name(), Table: s.table.full, Finding: finding, Remedy: remedy, Momentary: true}
}

// verify makes sure that numbers which were taken were stored as such, without a warning. told is
// the insert id of the OK packet: the last number too, except that a server puts 0 there when the
// table has a trigger, while the function knows. width is from before the first number to the last.
func (st *store) verify(ctx context.Context, conn *sql.Conn, t *take, told uint64) attempt {
	var warnings int
	var last uint64
	var readOnly string
	err := conn.QueryRowContext(ctx, "SELECT @@warning_count, LAST_INSERT_ID(), @@global.read_only").Scan(&warnings, &last, &readOnly)
	if err != nil {
		return st.unverified(fmt.Errorf("read warnings: %w", err))
	}
	if !link.IsOff(readOnly) {
		// An account with SUPER writes there all the same, while another server may be the primary
		// by now.
		return st.unverified(st.ReadOnly())
	}
	stored, err := st.readRow(ctx, conn, t.name)
	if err != nil {
		return st.unverified(fmt.Errorf("read back: %w", err))
	}
	st.learnAs(t.name, &stored)
	if planted.Fault(planted.Verify) {
		return attempt{taken: true, last: last, stored: stored}
	}
	return st.judge(ctx, conn, t, told, last, warnings, stored)
}

// unverified is an attempt that has moved the row, of which nobody knows whether that is stored as
// it should be.
func (st *store) unverified(err error) attempt {
	return attempt{taken: true, outcome: st.outcomeOf(err), err: err}
}

// judge is the part of verify behind the questions: last is the insert id of the session, and
// stored the row behind that.
func (st *store) judge(ctx context.Context, conn *sql.Conn, t *take, told, last uint64, warnings int, stored row) (did attempt) {
	if last > stored.max {
		// The column may have been widened since this connection was made.
		if err := st.CheckAgain(ctx, conn); err != nil {
			return st.unverified(err)
		}
		st.complete(&stored)
	}
	defer func() { did.taken, did.last, did.stored = true, last, stored }()
	switch {
	case stored.plan != t.share.Plan && !planted.Fault(planted.Plan):
		return ended(outcomeOldPlan)
	case stored.frozen:
		return ended(outcomeFrozen)
	case !stored.registered:
		return ended(outcomeUnlisted)
	case !t.used.Same(stored.rule()) && last >= t.width && (told == 0 || told == last):
		// the next attempt goes by the new one, which readRow has learnt
		return ended(outcomeNewRule)

	case told != 0 && told != last:
		return st.failedWith(st.doubt(fmt.Sprintf("sequence %q: the server answered %d and then %d for one reservation", t.name, told, last),
			"connect to the server itself, not through something that spreads statements over connections"))
	case warnings != 0:
		return st.failedWith(st.doubt(fmt.Sprintf("reserving numbers of %q gave %d warning(s): the row may not hold what was asked for", t.name, warnings),
			"look at triggers and column types of the table, then try the UPDATE by hand and SHOW WARNINGS"))
	case last < t.width || last > stored.max || stored.id < last && !stored.def.Cycle:
		return st.failedWith(st.doubt(fmt.Sprintf("sequence %q: asked for numbers up to %d, the row holds %d", t.name, last, stored.id),
			"look for triggers on the table, and for rows whose id is negative"))
	}
	return attempt{}
}

// obeys makes sure that the server is the member that it should be, and under the plan that this
// process believes in.
func (st *store) obeys(ctx context.Context, conn *sql.Conn, h segment.Share) error {
	m, ok, err := st.plans.membership(ctx, conn)
	switch {
	case err != nil:
		return err
	case !ok || m.ID != h.ID:
		return st.Unfit(st.table.member, fmt.Sprintf("it is the member %q of a plan, where %q should be", m.ID, h.ID),
			"have its address lead to the server that was there; or stop this one, take out the member with SEQPROXY REMOVE SEQUENCE SERVER, and add this one then")
	case m.Plan != h.Plan:
		return outcomeOldPlan
	}
	return nil
}

// notOneRow explains why a statement that takes numbers changed no row, or several.
func (st *store) notOneRow(ctx context.Context, conn *sql.Conn, affected int64, t *take) attempt {
	name, h := t.name, t.share
	if affected > 1 {
		return st.failedWith(st.Unfit(st.table.full, fmt.Sprintf("%d rows are named %q", affected, name), "ALTER TABLE "+st.table.full+" ADD PRIMARY KEY (`name`)"))
	}
	stored, err := st.readRow(ctx, conn, name)
	if err != nil {
		return st.failedWith(err) // ErrUnknown: no such row
	}
	st.learnAs(name, &stored)
	if h.Plan != 0 {
		if err := st.obeys(ctx, conn, h); err != nil {
			return st.failedWith(err)
		}
	}
	switch {
	case stored.plan != h.Plan:
		return ended(outcomeOldPlan)
	case stored.frozen:
		return ended(outcomeFrozen)
	case stored.id < t.low && stored.epoch <= t.epoch:
		return attempt{outcome: outcomeWentBack, row: stored.id, mark: t.low, err: fmt.Errorf("%w from %d to %d", outcomeWentBack, t.low, stored.id)}
	case h.InSteps() && !h.Owns(stored.id) && stored.id < st.seen.Load().max:
		a := ended(outcomeForeign)
		a.row = stored.id
		return a
	case !t.used.Same(stored.rule()):
		return ended(outcomeNewRule)
	case t.full == outcomeUnwitnessed && stored.id >= t.below:
		return ended(outcomeUnwitnessed)
	case t.upTo.grouped:
		return st.refused(ctx, conn, name, &stored)
	case t.below != 0 && stored.id >= t.below:
		return ended(outcomeNoRoom)
	}
	return st.failedWith(st.doubt(fmt.Sprintf("sequence %q: its id stays at %d although it was raised", name, stored.id),
		"look for triggers on the table, and for rows whose id is NULL"))
}

// atEnd says why a row is at the end of its column: the sequence has run out, or it is frozen while
// the plan is changed.
func (st *store) atEnd(ctx context.Context, name string) error {
	frozen, err := st.plans.isFrozen(ctx, name)
	switch {
	case err != nil:
		return err
	case frozen:
		return outcomeFrozen
	}
	return &NameError{Name: define.ShownName(name), Err: ErrExhausted}
}
