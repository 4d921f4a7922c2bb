package store

import (
	"context"
	"database/sql"
	"fmt"

	"seqproxy/internal/planted"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// Momentary is a finding about a row that may just have been changed, or dropped and made again.
func (s *Schema) Momentary(finding, remedy string) error {
	return &link.UnfitError{Server: s.Name(), Table: s.Table.Sequence, Finding: finding, Remedy: remedy, Momentary: true}
}

// verify makes sure that the numbers are stored as taken, without a warning. answered is the insert
// id of the OK packet: the last number, or 0 if the table has a trigger, in which case the function
// knows it.
func (st *Store) verify(ctx context.Context, conn *sql.Conn, t *Taking, answered uint64) Attempt {
	var warnings int
	var last uint64
	var readOnly string
	err := conn.QueryRowContext(ctx, "SELECT @@warning_count, LAST_INSERT_ID(), @@global.read_only").Scan(&warnings, &last, &readOnly)
	if err != nil {
		return st.unverified(fmt.Errorf("read warnings: %w", err))
	}
	if !link.IsOff(readOnly) {
		// An account with SUPER can write there all the same, while another server may already be
		// the primary. The next connection leads there.
		link.Discard(conn)
		return st.unverified(st.ReadOnly())
	}
	stored, err := st.ReadRow(ctx, conn, t.Name)
	if err != nil {
		return st.unverified(fmt.Errorf("read back: %w", err))
	}
	st.LearnAs(t.Name, &stored)
	if planted.Fault(planted.Verify) {
		return Attempt{Taken: true, Last: last, Stored: stored}
	}
	return st.judge(ctx, conn, t, answered, last, warnings, stored)
}

// unverified is an attempt that has moved the row, without certainty that it is stored as it should
// be.
func (st *Store) unverified(err error) Attempt {
	return Attempt{Taken: true, Outcome: st.OutcomeOf(err), Err: err}
}

// judge is the part of verify after the queries. last is the insert id of the session, and stored
// the row as read after that.
func (st *Store) judge(ctx context.Context, conn *sql.Conn, t *Taking, answered, last uint64, warnings int, stored Row) (did Attempt) {
	if last > stored.Max {
		// The column may have been widened since this connection was made.
		if err := st.CheckAgain(ctx, conn); err != nil {
			return st.unverified(err)
		}
		st.Complete(&stored)
	}
	defer func() { did.Taken, did.Last, did.Stored = true, last, stored }()
	switch {
	case stored.Plan != t.Share.Plan && !planted.Fault(planted.Plan):
		return Ended(OutcomeOldPlan)
	case stored.Frozen:
		return Ended(OutcomeFrozen)
	case !stored.registered:
		return Ended(OutcomeUnlisted)
	case !t.Used.Same(stored.Rule()) && last >= t.width && (answered == 0 || answered == last):
		// the next attempt uses the new rule, which ReadRow has learned
		return Ended(OutcomeNewRule)

	case answered != 0 && answered != last:
		return st.FailedWith(st.Momentary(fmt.Sprintf("sequence %q: the server answered %d and then %d for one reservation", t.Name, answered, last),
			"connect to the server itself, not through something that spreads statements over connections"))
	case warnings != 0:
		return st.FailedWith(st.Momentary(fmt.Sprintf("reserving numbers of %q gave %d warning(s): the row may not hold what was asked for", t.Name, warnings),
			"look at triggers and column types of the table, then try the UPDATE by hand and SHOW WARNINGS"))
	case last < t.width || last > stored.Max || stored.ID < last && !stored.Def.Cycle:
		return st.FailedWith(st.Momentary(fmt.Sprintf("sequence %q: asked for numbers up to %d, the row holds %d", t.Name, last, stored.ID),
			"look for triggers on the table, and for rows whose id is negative"))
	case stored.Anchor == 0 && last-t.width < stored.Floor: // it was dropped, and somebody made its row anew
		return Attempt{Outcome: OutcomeWentBack, Row: last - t.width, Mark: stored.Floor, Err: fmt.Errorf("%w below %d, where it was dropped", OutcomeWentBack, stored.Floor)}
	}
	return Attempt{}
}

// obeys makes sure that the server is the expected member, under the plan that this process
// believes in.
func (st *Store) obeys(ctx context.Context, conn *sql.Conn, h segment.Share) error {
	m, err := st.Plans.Membership(ctx, conn, "")
	switch {
	case err != nil:
		return err
	case m.ID != h.ID:
		return st.Unfit(st.Table.Member, fmt.Sprintf("it is the member %q of a plan, where %q should be", m.ID, h.ID),
			"have its address lead to the server that was there; or stop this one, take out the member with SEQPROXY REMOVE SEQUENCE SERVER, and add this one then")
	case m.Plan != h.Plan:
		return OutcomeOldPlan
	}
	return nil
}
