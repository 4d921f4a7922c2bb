package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

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

// reserveOn reserves numbers on one of the members in use.
func (a *servers) reserveOn(ctx context.Context, v *server, name string, want, need uint64) (grant, error) {
	if err := v.marks.state.ready(); err != nil {
		v.counters.errors.Add(1)
		v.counters.tried(name, &v.trials, ReservedError, 0)
		return grant{}, err
	}
	begin := time.Now()
	a.witness(ctx, v, name)
	n := want
	for number := 1; ; number++ {
		epoch := v.marks.epoch(name)
		low := v.lowest.seenAt(name, epoch, v.share().plan)
		t := v.attempt(ctx, a.members(), name, n)
		took := time.Since(begin)
		if t.outcome == outcomeForeign {
			t.err = v.wrongResidue(ctx, a.members(), name, t.row, v.share())
		}
		if t.lost > 0 {
			v.counters.lose(name, t.why, t.lost)
		}
		if t.outcome == outcomeDone {
			t = v.admit(ctx, name, epoch, low, t)
		}
		result := resultOf(t.outcome, t.err)
		do, again := next(t.outcome, number)
		if do == remedyGive {
			v.counters.tried(name, &v.trials, result, took)
			t.grant.due = a.due(v, name, n, &t)
			return t.grant, nil
		}
		if isConflict(t.err) {
			v.counters.retries.Add(1)
		}
		if do != remedyStop {
			var failed error
			if n, failed = a.remedy(ctx, v, name, epoch, demand{n, want, need}, do, &t); failed != nil {
				again, t.err = false, failed
			}
		}
		err := t.err
		if !again {
			result = lastResult(result, v.outcomeOf(err), err)
		}
		v.counters.tried(name, &v.trials, result, took)
		if !again {
			if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrExhausted) {
				v.counters.errors.Add(1)
			}
			return grant{}, fmt.Errorf("reserve %d numbers of sequence %q: %w", n, name, withGrants(err, v.opts.Database))
		}
		wait := v.timing.conflict << number
		if do == remedyAwait {
			wait = v.timing.follow
		}
		if !pause(ctx, jitter(wait)) {
			return grant{}, context.Cause(ctx)
		}
		begin = time.Now()
	}
}

// next decides what comes after an attempt, and whether another one follows it, if the remedy works.
func next(o outcome, number int) (do remedy, again bool) {
	do = remedies[o]
	return do, do != remedyGive && do != remedyStop && number < maxAttempts
}

// demand is how many numbers an attempt has asked for, and how many are wanted, and needed at least.
type demand struct{ n, want, need uint64 }

// errEndMoves: fewer numbers were asked for each time, and again not so many were left.
var errEndMoves = errors.New("the end of the sequence moves")

// remedy does what an attempt needs before the next one, and says how many numbers that asks for. t.err is told if there is none.
func (a *servers) remedy(ctx context.Context, v *server, name string, epoch uint64, d demand, do remedy, t *attempt) (n uint64, err error) {
	switch do {
	case remedyPutBack:
		if seg := t.grant.seg; seg.Remaining() > 0 {
			// Those numbers were given to nobody. If they cannot be given back either they are a gap.
			done, _ := v.giveBack(ctx, name, epoch, seg)
			v.counters.lose(name, returnedOr(UnusedAlter, done), seg.Remaining())
		}
	case remedyAwait:
		v.registry.missing.Store(true) // the next sign of life finds that out, gives up what is held, and has the entry made again
	case remedyLift:
		return d.n, a.lift(ctx, v, name, max(t.mark, v.marks.of(name)), t.row)
	case remedyFit:
		t.err = errEndMoves
		return v.fit(ctx, name, d.want, d.need)
	case remedyBound:
		left, err := a.raiseBound(ctx, v, name, d.n)
		switch {
		case errors.Is(err, outcomeNoRoom):
			t.err = errEndMoves
			return v.fit(ctx, name, d.want, d.need)
		case err != nil && left >= d.need && left-left%d.need < d.n:
			t.err = err
			return left - left%d.need, nil // what is below may be given
		}
		return d.n, err
	case remedyCeiling:
		return v.raiseCeiling(ctx, name, d)
	case remedyHold:
		return d.n, v.guard.adoptOrMove(ctx, name, guardRow{})
	case remedyMove:
		v.moved()
	}
	return d.n, nil
}

// admit has the numbers of an attempt count as reserved by this process, if none was given before: the row was seen at low, or higher marks are kept.
func (v *server) admit(ctx context.Context, name string, epoch, low uint64, t attempt) attempt {
	seg := t.grant.seg
	mark, ok := v.marks.admit(name, epoch, low, seg)
	switch {
	case ok || t.grant.cycle && mark != 0:
		if err := v.marks.keep(name); err != nil {
			v.takeBack(ctx, name, epoch, seg)
			return attempt{outcome: outcomeRefused, err: err}
		}
		v.reserved(name, epoch, &t.grant)
		return t
	case mark == 0:
		v.counters.lose(name, UnusedRestart, seg.Remaining())
		return ended(outcomeRestarted)
	}
	v.counters.lose(name, UnusedRewind, seg.Remaining())
	return attempt{outcome: outcomeWentBack, row: seg.Next(), mark: mark, err: fmt.Errorf("the row keeps going back below %d", mark)}
}

// due is what a reservation leaves to be done.
func (a *servers) due(v *server, name string, n uint64, t *attempt) due {
	last, h := t.grant.seg.Last(), v.share()
	d := due{
		server: v, n: n,
		window: t.upTo.guarded && v.guard.windowDue(name, last, n),
		bound:  t.upTo.bounded && v.boundDue(name, h, last, t.grant.max, a.ahead),
	}
	if !d.window && !d.bound {
		return due{}
	}
	return d
}

// attempt is one attempt to reserve numbers, as it ended.
type attempt struct {
	outcome outcome
	err     error // for whoever gets no number; nil with outcomeDone

	// grant has the numbers with outcomeDone. With outcomeNewRule it may have numbers that went by the old one.
	grant grant
	upTo  limit // what kept them from going on

	taken  bool // the row has moved: whatever the outcome is, its numbers are used by nobody else
	last   uint64
	stored row // as it was read after that

	lost uint64 // numbers that are taken, or may be, and that nobody gives
	why  Unused // nobody does

	row, mark uint64 // with outcomeWentBack: what the row, or the first of its numbers, is, and what it was; with outcomeForeign: the row
	asked     bool   // the guard's rows were read: they have ceiling
	ceiling   uint64
}

// ended is an attempt of which the outcome says all.
func ended(o outcome) attempt { return attempt{outcome: o, err: o} }

// failedWith is an attempt that ended with an error.
func (st *store) failedWith(err error) attempt { return attempt{outcome: st.outcomeOf(err), err: err} }

// attempt takes n numbers on a server that this process is registered with, and that may go so far. members are all, by position.
func (v *server) attempt(ctx context.Context, members []*server, name string, n uint64) attempt {
	if err := v.enlist(ctx); err != nil {
		return v.failedWith(err)
	}
	conn, err := v.conn(ctx)
	if err != nil {
		return v.failedWith(err)
	}
	defer func() { _ = conn.Close() }() // gives it back; a broken one is closed by the pool

	t := take{name: name, n: n, used: v.rules.of(name), share: v.share()}
	if t.upTo, err = v.guard.limit(ctx, conn, name); err != nil {
		return v.failedWith(err)
	}
	if t.share.shared() && !planted.Fault(planted.CeilingMember) {
		t.upTo.bounded = true
		if t.upTo.bound, err = v.bound(ctx, conn, name, t.share.plan); err != nil {
			return v.failedWith(err)
		}
	}
	if t.share.shared() && !planted.Fault(planted.Floor) {
		t.floor = v.marks.of(name)
	}
	t.epoch, t.low = v.marks.epoch(name), v.lowestOf(name, t.share)
	did := v.take(ctx, conn, &t)
	switch {
	case did.asked:
		v.guard.drop(name)
		if did.outcome == outcomeAtCeiling {
			v.guard.learn(v.nodes.changes.Load(), name, did.ceiling)
		}
	case did.taken && did.outcome == outcomeDone:
		if err := v.mayGive(ctx, conn, members, &t, &did.stored); err != nil {
			did.outcome, did.err = v.outcomeOf(err), err
		}
	}
	if did.taken {
		v.granted(&t, &did)
	}
	return did
}

// granted makes a grant of numbers that were taken, if the outcome is that they may be given.
func (v *server) granted(t *take, did *attempt) {
	h, stored := t.share, &did.stored
	switch did.outcome {
	case outcomeDone:
	case outcomeNewRule:
		v.logReserved(t.name, t.numbers(did.last), t.floor)
		did.grant.seg = t.numbers(did.last)
		return
	case outcomeOldPlan, outcomeFrozen, outcomeNotHome:
		did.lost, did.why = h.whole(t.n), UnusedAlter
		return
	default:
		did.lost, did.why = h.whole(t.n), UnusedRefused
		return
	}
	v.logReserved(t.name, t.numbers(did.last), t.floor)
	g := grant{
		seg: t.numbers(did.last), max: stored.max, exact: stored.exact, rule: h.common(stored.rule()), cycle: stored.def.Cycle, order: stored.def.Order,
		shared: h.shared(), version: stored.version,
	}
	if first := g.seg.Next(); h.shared() && (first <= t.floor || !h.owns(first) || !h.owns(did.last)) {
		did.outcome = outcomeDoubtful
		did.err = v.doubt(fmt.Sprintf("sequence %q: it gave %d to %d, which are not its own", t.name, first, did.last), "look for triggers on the table")
		did.lost, did.why = h.whole(t.n), UnusedRefused
		return
	}
	did.grant, did.upTo = g, t.upTo
}

// mayGive makes sure, after numbers were taken, that the server is still the one to give them.
func (v *server) mayGive(ctx context.Context, conn *sql.Conn, members []*server, t *take, stored *row) error {
	if t.node != nil && t.node.cluster != "" {
		if err := v.leadsTo(ctx, conn, t.node); err != nil {
			return err
		}
	}
	if !stored.def.Order {
		return nil
	}
	if t.share.shared() {
		if o := v.isHome(members, t.share, stored.home); o != outcomeDone {
			return o
		}
	}
	if t.upTo.guarded && v.guard.replicates() {
		if err := v.guard.stillHolds(ctx, conn); err != nil {
			return err
		}
	}
	if t.share.shared() {
		return v.stillHome(ctx, conn, members, t.share)
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
		if planted.Fault(planted.Commit) && isUnknownOutcome(err) {
			mark := st.marks.of(t.name)
			return attempt{grant: grant{seg: NewSegment(mark+1, mark+t.n), max: st.seen.Load().max, rule: st.rules.of(t.name)}}
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
	if !isUnknownOutcome(err) {
		return st.failedWith(err)
	}
	return attempt{outcome: outcomeUnknown, err: fmt.Errorf("%w: %w", outcomeUnknown, err), lost: t.share.whole(t.n), why: UnusedUnknownCommit}
}

// logReserved tells of numbers whose reservation is known to be stored, on the level debug. A crash between this and their use makes them a gap.
func (st *store) logReserved(name string, seg Segment, above uint64) {
	st.log.Debug("numbers reserved", logfield.Sequence(name), zap.Uint64("plan", seg.plan), zap.Uint64("above", above),
		zap.Uint64("first", seg.Next()), zap.Uint64("reserved_up_to", seg.Last()), zap.Uint64("reserved", seg.Remaining()))
}

// take is a statement that takes numbers.
type take struct {
	name  string
	n     uint64 // numbers
	used  rule   // as this process knows it
	share share
	epoch uint64 // of the sequence, as this process knows it
	low   uint64 // its row is lower only if it has gone back; 0: that is not known

	text    string
	args    []any
	bound   uint64 // the id must be below it; 0: it does not matter
	floor   uint64 // no number is at or below it
	width   uint64 // from before the first number to the last
	upTo    limit
	node    *choice                   // whose ceiling it may go up to; nil: there is none
	full    outcome                   // why there is no room at the bound
	numbers func(last uint64) Segment // those that end at last
}

// prepareTake makes the statement.
func (st *store) prepareTake(t *take) error {
	name, n, rule, h, upTo := t.name, t.n, t.used, t.share, t.upTo
	highest, full := st.seen.Load().max, outcomeNoRoom
	if rule.max != 0 {
		highest = min(highest, rule.max)
	}
	if upTo.guarded && upTo.ceiling < highest {
		highest, full = upTo.ceiling, outcomeAtCeiling
	}
	if upTo.bounded && upTo.bound < highest {
		highest, full = upTo.bound, outcomeAtBound
	}
	t.full = full
	planned := h.plan != 0 && !planted.Fault(planted.Plan)
	ok := true
	switch {
	case h.shared() && rule.step != 1:
		return needsOneServer("sequence %q: INCREMENT BY %d", name, rule.step)
	case h.inBlocks():
		t.bound, ok = h.bound(t.floor, n, highest)
		t.bound++ // an id at the end of 64 bits never has room
		t.text, t.args = st.table.reserveInBlocks(h, t.floor, n), []any{name, t.bound}
		t.numbers = func(last uint64) Segment { return h.segment(last, n) }
		if t.width = n; n > h.block {
			t.width = h.block * ((h.blocks(n)-1)*h.count + 1)
		}
	case h.inSteps():
		rule = h.rule(rule, t.floor)
		t.bound, ok = rule.room(n, highest)
		t.text, t.args = st.table.reserveInSteps(), append(rule.arguments(name, n, t.bound), h.count, h.residue())
	case rule.step != 1 || rule.max != 0 || upTo.guarded:
		t.bound, ok = rule.room(n, highest)
		t.text, t.args = st.table.reserveByRule(planned), rule.arguments(name, n, t.bound)
	default:
		t.text, t.args = st.table.reserve(planned), []any{n, name}
	}
	if !ok {
		return full
	}
	if planned {
		t.args = append([]any{h.plan, h.id}, t.args...)
	}
	if h.plan == 0 && !planted.Fault(planted.Plan) {
		// Who does not know of the first plan yet may not move the row even for a moment: between its numbers applications may count on.
		t.text += st.table.withoutPlan()
	}
	if upTo.guarded {
		if t.node = st.nodes.current.Load(); t.node == nil {
			return errUnchosen
		}
		_, id, _ := st.table.taking(planned)
		t.text, t.args = t.text+st.guardCondition(t.node, id), append(t.args, name, highest)
	}
	if t.low > 0 {
		_, id, _ := st.table.taking(planned)
		t.text, t.args = t.text+" AND CAST("+id+" AS UNSIGNED) >= CAST(? AS UNSIGNED)", append(t.args, t.low)
	}
	if t.numbers == nil {
		t.width = (n-1)*rule.step + 1
		t.numbers = func(last uint64) Segment {
			seg := steppedSegment(last-(n-1)*rule.step, rule.step, n)
			seg.plan = h.plan
			return seg
		}
	}
	return nil
}

// left is how many numbers this server has of a sequence, up to highest.
func (st *store) left(name string, stored *row, highest uint64) uint64 {
	switch h := st.share(); {
	case h.inBlocks():
		return h.left(max(stored.id, st.marks.of(name)), highest)
	case h.inSteps():
		return h.rule(stored.rule(), st.marks.of(name)).left(max(stored.id, st.marks.of(name)), highest)
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
		return need, outcomeFrozen
	}
	if stored.plan != v.share().plan {
		return need, outcomeOldPlan
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
