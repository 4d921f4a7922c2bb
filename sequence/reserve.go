package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
)

// maxAttempts bounds what one reservation does by itself before its caller's backoff takes over.
const maxAttempts = 6

// mayRetry waits before a further attempt, after the attempt-th has failed. It is false if that was the last one, or ctx is done.
func (l *link) mayRetry(ctx context.Context, attempt int) bool {
	return attempt < maxAttempts && pause(ctx, jitter(l.timing.conflict<<attempt))
}

// reserve implements [reserver] on the table.
func (v *server) reserve(ctx context.Context, name string, want, need uint64) (grant, error) {
	if err := v.marks.state.ready(); err != nil {
		v.counters.errors.Add(1)
		v.counters.tried(name, &v.trials, ReservedError, 0)
		return grant{}, err
	}
	begin := time.Now()
	v.witness(ctx, name)
	n := want
	var back *lowRow
	for attempt := 1; ; attempt++ {
		epoch := v.marks.epoch(name)
		low := v.lowest.seenAt(name, epoch, v.share().plan)
		g, err := v.reserveOnce(ctx, name, n)
		took := time.Since(begin)
		result, again := resultOf(err), false
		switch {
		case err == nil:
			mark, ok := v.marks.admit(name, epoch, low, g.seg)
			switch {
			case ok || g.cycle && mark != 0:
				if err = v.marks.keep(name); err != nil {
					result = ReservedError
					v.takeBack(ctx, name, epoch, g.seg)
					break
				}
				v.reserved(name, epoch, &g)
				v.counters.tried(name, &v.trials, ReservedOK, took)
				return g, nil
			case mark == 0:
				v.counters.lose(name, UnusedRestart, g.seg.Remaining())
				result, again, err = ReservedChanged, true, errVoid
			default:
				v.counters.lose(name, UnusedRewind, g.seg.Remaining())
				result = ReservedRewind
				if err = v.lift(ctx, name, mark, g.seg.Next()); err == nil {
					again, err = true, fmt.Errorf("the row keeps going back below %d", mark)
				}
			}
		case errors.Is(err, errRuleChanged):
			again = true
			if g.seg.Remaining() > 0 {
				// Those numbers were given to nobody. If they cannot be given back either they are a gap.
				done, _ := v.giveBack(ctx, name, epoch, g.seg)
				v.counters.lose(name, returnedOr(UnusedAlter, done), g.seg.Remaining())
			}
		case errors.As(err, &back):
			if err = v.lift(ctx, name, max(back.mark, v.marks.of(name)), back.id); err == nil {
				again, err = true, back
			}
		case errors.Is(err, errUnregistered):
			again = true
		case errors.Is(err, errAtBound):
			left, failed := v.raiseBound(ctx, name, n)
			switch err = failed; {
			case failed == nil:
				again, err = true, errAtBound
			case errors.Is(failed, errNoRoom):
				if n, err = v.fit(ctx, name, want, need); err == nil {
					again, err = true, errors.New("the end of the sequence moves")
				}
			case left >= need && left-left%need < n:
				n = left - left%need // what is below may be given
				again = true
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
		case errors.Is(err, errNotHolder), errors.Is(err, errNoWindow), v.isMoved(err):
			refused := err
			if n, err = v.admit(ctx, name, n, want, need, refused); err == nil {
				again, err = true, refused
			}
		}
		again = again && attempt < maxAttempts
		if !again {
			result = lastResult(result, err)
		}
		v.counters.tried(name, &v.trials, result, took)
		if !again {
			if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrExhausted) {
				v.counters.errors.Add(1)
			}
			return grant{}, fmt.Errorf("reserve %d numbers of sequence %q: %w", n, name, withGrants(err, v.opts.Database))
		}
		wait := v.timing.conflict << attempt
		if errors.Is(err, errUnregistered) {
			wait = v.timing.follow // the follower has to find out
		}
		if !pause(ctx, jitter(wait)) {
			return grant{}, context.Cause(ctx)
		}
		begin = time.Now()
	}
}

// Errors of one attempt that the next may not have.
var (
	errRuleChanged = errors.New("increment or maximum of the sequence were changed meanwhile")
	errNoRoom      = errors.New("so many numbers are not left")
	errVoid        = errors.New("the sequence was restarted meanwhile")
	errLost        = errors.New("connection lost in a reservation, its numbers are never used")
	errPlan        = errors.New("the plan of the sequence servers was changed meanwhile")
	errNotHome     = errors.New("another sequence server is the home of this ORDER sequence by now")
)

// reserveOnce runs the one statement that takes n numbers, and then makes sure that it did what it said.
func (v *server) reserveOnce(ctx context.Context, name string, n uint64) (g grant, err error) {
	if err := v.enlist(ctx); err != nil {
		return g, err
	}
	conn, err := v.conn(ctx)
	if err != nil {
		return g, err
	}
	defer func() { _ = conn.Close() }() // gives it back; a broken one is closed by the pool

	rule, h := v.rules.of(name), v.share()
	upTo, err := v.limit(ctx, conn, name)
	if err != nil {
		return g, err
	}
	if h.shared() && !planted.Fault(planted.CeilingMember) {
		upTo.bounded = true
		if upTo.bound, err = v.bound(ctx, conn, name, h.plan); err != nil {
			return g, err
		}
	}
	t, err := v.taking(name, n, rule, h, upTo)
	if err != nil {
		return g, err
	}
	if known, ok := v.ordered.of(name); ok {
		return v.reserveAtOnce(ctx, conn, name, n, t, rule, h, known)
	}
	result, err := conn.ExecContext(ctx, t.text, t.args...)
	if err != nil {
		if planted.Fault(planted.Commit) && isUnknownOutcome(err) {
			mark := v.marks.of(name)
			return grant{seg: NewSegment(mark+1, mark+n), max: v.seen.Load().max, rule: v.rules.of(name)}, nil
		}
		return g, v.failedToTake(name, err, h.whole(n), &t)
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
		return g, v.notOneRow(ctx, conn, name, affected, rule, h, &t)
	}
	// From here on the row has moved: whatever goes wrong, the range is not used.
	last, stored, err := v.verify(ctx, conn, name, uint64(told), t.width, rule, h)
	return v.granted(ctx, conn, name, n, t, rule, h, last, stored, err)
}

// failedToTake is the error of a statement that should have taken so many numbers.
func (v *server) failedToTake(name string, err error, n uint64, t *take) error {
	if !isUnknownOutcome(err) {
		return err
	}
	v.counters.lose(name, UnusedUnknownCommit, n)
	return fmt.Errorf("%w: %w", errLost, err)
}

// granted is the outcome of a reservation that was verified with err.
func (v *server) granted(ctx context.Context, conn *sql.Conn, name string, n uint64, t take, rule rule, h share, last uint64, stored row, err error) (g grant, _ error) {
	if err == nil && t.node != nil && t.node.cluster != "" {
		err = v.leadsTo(ctx, conn, t.node)
	}
	if err == nil && stored.def.Order && h.shared() {
		err = v.isHome(h, stored.home)
	}
	if err == nil && stored.def.Order && t.upTo.guarded && v.replicates() {
		err = v.stillHolds(ctx, conn)
	}
	if err == nil && stored.def.Order && h.shared() {
		err = v.stillHome(ctx, conn, h)
	}
	if err == nil || errors.Is(err, errRuleChanged) {
		v.logReserved(name, t.numbers(last), t.floor)
	}
	if errors.Is(err, errRuleChanged) {
		return grant{seg: t.numbers(last)}, err
	}
	if err != nil {
		why := UnusedRefused
		if errors.Is(err, errPlan) || errors.Is(err, errPlanChanging) || errors.Is(err, errNotHome) {
			why = UnusedAlter
		}
		v.counters.lose(name, why, h.whole(n))
		return g, err
	}
	g = grant{seg: t.numbers(last), max: stored.max, exact: stored.exact, rule: h.common(stored.rule()), cycle: stored.def.Cycle, order: stored.def.Order, shared: h.shared(), version: stored.version}
	if first := g.seg.Next(); h.shared() && (first <= t.floor || !h.owns(first) || !h.owns(last)) {
		v.counters.lose(name, UnusedRefused, h.whole(n))
		return g, v.doubt(fmt.Sprintf("sequence %q: it gave %d to %d, which are not its own", name, first, last), "look for triggers on the table")
	}
	g.due = due{n: n, window: t.upTo.guarded && v.windowDue(name, last, n), bound: t.upTo.bounded && v.boundDue(name, h, last, stored.max)}
	if g.due.window || g.due.bound {
		g.due.server = v
	}
	return g, nil
}

// logReserved tells of numbers whose reservation is known to be stored, on the level debug. A crash between this and their use makes them a gap.
func (v *server) logReserved(name string, seg Segment, above uint64) {
	v.log.Debug("numbers reserved", logfield.Sequence(name), zap.Uint64("plan", seg.plan), zap.Uint64("above", above),
		zap.Uint64("first", seg.Next()), zap.Uint64("reserved_up_to", seg.Last()), zap.Uint64("reserved", seg.Remaining()))
}

// take is a statement that takes numbers.
type take struct {
	text    string
	args    []any
	bound   uint64 // the id must be below it; 0: it does not matter
	floor   uint64 // no number is at or below it
	width   uint64 // from before the first number to the last
	upTo    limit
	node    *choice                   // whose ceiling it may go up to; nil: there is none
	full    error                     // why there is no room at the bound
	numbers func(last uint64) Segment // those that end at last
}

// taking is the statement that takes n numbers of a sequence, up to a limit.
func (v *server) taking(name string, n uint64, rule rule, h share, upTo limit) (t take, err error) {
	t.upTo = upTo
	highest, full := v.seen.Load().max, errNoRoom
	if rule.max != 0 {
		highest = min(highest, rule.max)
	}
	if upTo.guarded && upTo.ceiling < highest {
		highest, full = upTo.ceiling, errNoWindow
	}
	if upTo.bounded && upTo.bound < highest {
		highest, full = upTo.bound, errAtBound
	}
	t.full = full
	planned := h.plan != 0 && !planted.Fault(planted.Plan)
	ok := true
	if h.shared() && !planted.Fault(planted.Floor) {
		t.floor = v.marks.of(name)
	}
	switch {
	case h.shared() && rule.step != 1:
		return t, needsOneServer("sequence %q: INCREMENT BY %d", name, rule.step)
	case h.inBlocks():
		t.bound, ok = h.bound(t.floor, n, highest)
		t.bound++ // an id at the end of 64 bits never has room
		t.text, t.args = v.table.reserveInBlocks(h, t.floor, n), []any{name, t.bound}
		t.numbers = func(last uint64) Segment { return h.segment(last, n) }
		if t.width = n; n > h.block {
			t.width = h.block * ((h.blocks(n)-1)*h.count + 1)
		}
	case h.inSteps():
		rule = h.rule(rule, t.floor)
		t.bound, ok = rule.room(n, highest)
		t.text, t.args = v.table.reserveInSteps(), append(rule.arguments(name, n, t.bound), h.count, h.residue())
	case rule.step != 1 || rule.max != 0 || upTo.guarded:
		t.bound, ok = rule.room(n, highest)
		t.text, t.args = v.table.reserveByRule(planned), rule.arguments(name, n, t.bound)
	default:
		t.text, t.args = v.table.reserve(planned), []any{n, name}
	}
	if !ok {
		return t, full
	}
	if planned {
		t.args = append([]any{h.plan, h.id}, t.args...)
	}
	if h.plan == 0 && !planted.Fault(planted.Plan) {
		// Who does not know of the first plan yet may not move the row even for a moment: between its numbers applications may count on.
		t.text += v.table.withoutPlan()
	}
	if upTo.guarded {
		if t.node = v.nodes.current.Load(); t.node == nil {
			return t, errUnchosen
		}
		_, id, _ := v.table.taking(planned)
		t.text, t.args = t.text+v.guardCondition(t.node, id), append(t.args, name, highest)
	}
	if low := v.lowestOf(name, h); low > 0 {
		_, id, _ := v.table.taking(planned)
		t.text, t.args = t.text+" AND CAST("+id+" AS UNSIGNED) >= CAST(? AS UNSIGNED)", append(t.args, low)
	}
	if t.numbers == nil {
		t.width = (n-1)*rule.step + 1
		t.numbers = func(last uint64) Segment {
			seg := steppedSegment(last-(n-1)*rule.step, rule.step, n)
			seg.plan = h.plan
			return seg
		}
	}
	return t, nil
}

// left is how many numbers this server has of a sequence, up to highest.
func (v *server) left(name string, stored *row, highest uint64) uint64 {
	switch h := v.share(); {
	case h.inBlocks():
		return h.left(max(stored.id, v.marks.of(name)), highest)
	case h.inSteps():
		return h.rule(stored.rule(), v.marks.of(name)).left(max(stored.id, v.marks.of(name)), highest)
	}
	return stored.rule().left(stored.id, highest)
}

// fit says how many numbers to reserve after a reservation of want was beyond the column's maximum.
func (v *server) fit(ctx context.Context, name string, want, need uint64) (uint64, error) {
	stored, err := v.find(ctx, name)
	if err != nil {
		return need, err
	}
	v.learnAs(name, &stored)
	if stored.frozen {
		return need, errPlanChanging
	}
	if stored.plan != v.share().plan {
		return need, errPlan
	}
	if stored.id >= v.seen.Load().max {
		if err := v.atEnd(ctx, name); !errors.Is(err, ErrExhausted) {
			return need, err
		}
	}
	left := v.left(name, &stored, stored.max)
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
