package sequence

import (
	"context"
	"database/sql"
	"fmt"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// take is a statement that takes numbers.
type take struct {
	name  string
	n     uint64       // numbers
	used  segment.Rule // as this process knows it
	share segment.Share
	epoch uint64 // of the sequence, as this process knows it
	low   uint64 // its row is lower only if it has gone back; 0: that is not known

	text    string
	args    []any
	below   uint64 // the id must be; 0: it does not matter
	floor   uint64 // no number is at or below it
	width   uint64 // from before the first number to the last
	upTo    upTo
	node    *link.Choice                      // whose ceiling it may go up to; nil: there is none
	full    outcome                           // why there is no room below
	numbers func(last uint64) segment.Segment // those that end at last
}

// prepareTake makes the statement.
func (st *store) prepareTake(t *take) error {
	name, n, rule, h, upTo := t.name, t.n, t.used, t.share, t.upTo
	highest, full := st.seen.Load().max, outcomeNoRoom
	if rule.Max != 0 {
		highest = min(highest, rule.Max)
	}
	if upTo.grouped && upTo.ceiling < highest {
		highest, full = upTo.ceiling, outcomeAtCeiling
	}
	if upTo.witnessed && upTo.recorded < highest {
		highest, full = upTo.recorded, outcomeUnwitnessed
	}
	t.full = full
	planned := h.Plan != 0 && !planted.Fault(planted.Plan)
	ok := true
	switch {
	case h.Shared() && !h.Divides(rule.Step):
		return notDivided(h, name, rule.Step)
	case h.InBlocks():
		t.below, ok = h.Room(t.floor, n, highest)
		t.below++ // an id at the end of 64 bits never has room
		t.text, t.args = st.table.reserveInBlocks(h, t.floor, n), []any{name, t.below}
		t.numbers = func(last uint64) segment.Segment { return h.Segment(last, n) }
		t.width = h.Far(n)
	case h.InSteps():
		rule = h.Rule(rule, t.floor)
		t.below, ok = rule.Room(n, highest)
		t.text, t.args = st.table.reserveInSteps(), append(rule.Arguments(name, n, t.below), h.Count, h.Residue())
	case rule.Step != 1 || rule.Max != 0 || upTo.grouped:
		t.below, ok = rule.Room(n, highest)
		t.text, t.args = st.table.reserveByRule(planned), rule.Arguments(name, n, t.below)
	default:
		t.text, t.args = st.table.reserve(planned), []any{n, name}
	}
	if !ok {
		return full
	}
	if planned {
		t.args = append([]any{h.Plan, h.ID}, t.args...)
	}
	if h.Plan == 0 && !planted.Fault(planted.Plan) {
		// Who does not know of the first plan yet may not move the row even for a moment: between
		// its numbers applications may count on.
		t.text += st.table.underPlan(0)
	}
	if upTo.grouped {
		if t.node = st.Current(); t.node == nil {
			return link.ErrUnchosen
		}
		_, id, _ := st.table.taking(planned)
		t.text, t.args = t.text+st.limits.belowSQL(t.node, id), append(t.args, name, highest)
	}
	if t.low > 0 {
		_, id, _ := st.table.taking(planned)
		t.text, t.args = t.text+" AND CAST("+id+" AS UNSIGNED) >= CAST(? AS UNSIGNED)", append(t.args, t.low)
	}
	if t.numbers == nil {
		t.width = (n-1)*rule.Step + 1
		t.numbers = func(last uint64) segment.Segment {
			seg := segment.Stepped(last-(n-1)*rule.Step, rule.Step, n)
			seg.Plan = h.Plan
			return seg
		}
	}
	return nil
}

// take runs the one statement that takes numbers, and then makes sure that it did what it said.
func (st *store) take(ctx context.Context, conn *sql.Conn, t *take) attempt {
	if err := st.prepareTake(t); err != nil {
		return st.failedWith(err)
	}
	if known, ok := st.ordered.of(t.name); ok {
		return st.takeAtOnce(ctx, conn, t, known)
	}
	result, err := conn.ExecContext(ctx, t.text, t.args...)
	if err != nil {
		if planted.Fault(planted.Commit) && link.IsUnknownOutcome(err) {
			mark := st.marks.Of(t.name)
			return attempt{grant: grant{seg: segment.New(mark+1, mark+t.n), max: st.seen.Load().max, rule: st.rules.of(t.name)}}
		}
		return st.notTaken(t, err)
	}
	affected, err := result.RowsAffected()
	if err != nil {
		return st.failedWith(err)
	}
	told, err := result.LastInsertId() // the packet's 64 bits in an int64
	if err != nil {
		return st.failedWith(err)
	}
	if affected != 1 {
		return st.notOneRow(ctx, conn, affected, t)
	}
	return st.verify(ctx, conn, t, uint64(told))
}

// notTaken is the outcome of a statement that should have taken numbers, and failed.
func (st *store) notTaken(t *take, err error) attempt {
	if !link.IsUnknownOutcome(err) {
		return st.failedWith(err)
	}
	return attempt{outcome: outcomeUnknown, err: fmt.Errorf("%w: %w", outcomeUnknown, err), lost: t.share.Whole(t.n), why: UnusedUnknownCommit}
}

// logReserved tells of numbers whose reservation is known to be stored, on the level debug. A crash
// between this and their use makes them a gap.
func (st *store) logReserved(name string, seg segment.Segment, above uint64) {
	st.log.Debug("numbers reserved", logfield.Sequence(name), zap.Uint64("plan", seg.Plan), zap.Uint64("above", above),
		zap.Uint64("first", seg.Next()), zap.Uint64("reserved_up_to", seg.Last()), zap.Uint64("reserved", seg.Remaining()))
}
