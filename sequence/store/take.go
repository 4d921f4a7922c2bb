package store

import (
	"context"
	"database/sql"
	"fmt"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
	"seqproxy/sequence/define"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// Taking is a statement that takes numbers.
type Taking struct {
	Name  string
	N     uint64       // numbers
	Used  segment.Rule // the rule as this process knows it
	Share segment.Share
	Epoch uint64 // the epoch as this process knows it
	Low   uint64 // a row below this has gone back; 0: unknown

	text  string
	args  []any
	below uint64 // the id must be below it; 0: any
	Floor uint64 // no number is at or below it
	width uint64 // from before the first number to the last
	step  uint64 // between two numbers; 0 in blocks
	UpTo  limit.UpTo
	Node  *link.Choice // the node whose ceiling bounds the numbers; nil: none
	full  Outcome      // why there is no room below
}

// LimitTaking writes the statement so that it takes no number beyond a ceiling, the maximum or the
// numbers recorded elsewhere. It does no I/O. An error is why there is no room, or nobody to ask.
func (st *Store) LimitTaking(t *Taking) error {
	name, n, rule, h, upTo := t.Name, t.N, t.Used, t.Share, t.UpTo
	highest, full := st.Seen.Load().Max, OutcomeNoRoom
	if rule.Max != 0 {
		highest = min(highest, rule.Max)
	}
	if upTo.Grouped && upTo.Ceiling < highest {
		highest, full = upTo.Ceiling, OutcomeAtCeiling
	}
	if upTo.Witnessed && upTo.Recorded < highest {
		highest, full = upTo.Recorded, OutcomeUnwitnessed
	}
	t.full = full
	planned := h.Plan != 0 && !planted.Fault(planted.Plan)
	ok := true
	switch {
	case h.Shared() && !h.Divides(rule.Step):
		return NotDivided(h, name, rule.Step)
	case h.InBlocks():
		t.below, ok = h.Room(t.Floor, n, highest)
		t.below++ // an id at the end of 64 bits never has room
		t.text, t.args = st.Table.reserveInBlocks(h, t.Floor, n), []any{name, t.below}
		t.width = h.Span(n)
	case h.InSteps():
		rule = h.Rule(rule, t.Floor)
		t.below, ok = rule.Room(n, highest)
		t.text, t.args = st.Table.reserveInSteps(), append(rule.Arguments(name, n, t.below), h.Count, h.Residue())
	case rule.Step != 1 || rule.Max != 0 || upTo.Grouped:
		t.below, ok = rule.Room(n, highest)
		t.text, t.args = st.Table.ReserveByRule(planned), rule.Arguments(name, n, t.below)
	default:
		t.text, t.args = st.Table.reserve(planned), []any{n, name}
	}
	if !ok {
		return full
	}
	if planned {
		t.args = append([]any{h.Plan, h.ID}, t.args...)
	}
	if h.Plan == 0 && !planted.Fault(planted.Plan) {
		// A process that does not know the first plan yet may not move the row even for a moment:
		// applications may count between its numbers.
		t.text += st.Table.underPlan(0)
	}
	if upTo.Grouped {
		if t.Node = st.Current(); t.Node == nil {
			return link.ErrUnchosen
		}
		_, id, _ := st.Table.taking(planned)
		t.text, t.args = t.text+st.Limits.belowSQL(t.Node, id), append(t.args, name, highest)
	}
	if t.Low > 0 {
		_, id, _ := st.Table.taking(planned)
		t.text, t.args = t.text+" AND CAST("+id+" AS UNSIGNED) >= CAST(? AS UNSIGNED)", append(t.args, t.Low)
	}
	if !h.InBlocks() {
		t.step, t.width = rule.Step, (n-1)*rule.Step+1
	}
	return nil
}

// Numbers returns the numbers that end at last.
func (t *Taking) Numbers(last uint64) segment.Segment {
	if t.Share.InBlocks() {
		return t.Share.Segment(last, t.N)
	}
	seg := segment.Stepped(last-(t.N-1)*t.step, t.step, t.N)
	seg.Plan = t.Share.Plan
	return seg
}

// Take runs the one statement that takes numbers, and then verifies what it did.
func (st *Store) Take(ctx context.Context, conn *sql.Conn, t *Taking) Attempt {
	if before, ok := st.ordered.of(t.Name); ok {
		return st.takeAtOnce(ctx, conn, t, before)
	}
	result, err := conn.ExecContext(ctx, t.text, t.args...)
	if err != nil {
		if planted.Fault(planted.Commit) && link.IsUnknownOutcome(err) {
			stored := Row{Name: t.Name, Max: st.Seen.Load().Max, Entry: NoEntry()}
			return Attempt{Taken: true, Last: st.Marks.Of(t.Name) + t.N, Stored: stored}
		}
		return st.notTaken(t, err)
	}
	affected, err := result.RowsAffected()
	if err != nil {
		return st.FailedWith(err)
	}
	answered, err := result.LastInsertId() // the packet's 64 bits in an int64
	if err != nil {
		return st.FailedWith(err)
	}
	if affected != 1 {
		return st.notOneRow(ctx, conn, affected, t)
	}
	return st.verify(ctx, conn, t, uint64(answered))
}

// notTaken is the outcome of a statement that failed.
func (st *Store) notTaken(t *Taking, err error) Attempt {
	if !link.IsUnknownOutcome(err) {
		return st.FailedWith(err)
	}
	return Attempt{Outcome: OutcomeUnknown, Err: fmt.Errorf("%w: %w", OutcomeUnknown, err), Doubtful: t.Share.Whole(t.N)}
}

// LogReserved logs a verified reservation, on the level debug. After a crash its unused numbers are
// a gap.
func (st *Store) LogReserved(name string, seg segment.Segment, above uint64) {
	st.Log.Debug("numbers reserved", logfield.Sequence(define.ShownName(name)), zap.Uint64("plan", seg.Plan), zap.Uint64("above", above),
		zap.Uint64("first", seg.Next()), zap.Uint64("reserved_up_to", seg.Last()), zap.Uint64("reserved", seg.Remaining()))
}
