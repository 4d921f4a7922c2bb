package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/planted"
	"seqproxy/sequence/define"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// reserveOn reserves numbers on one of the members in use. Each attempt ends with an outcome, and
// each outcome has a remedy.
func (a *servers) reserveOn(ctx context.Context, v *server, name string, want, need uint64) (grant, error) {
	if err := v.marks.Ready(); err != nil {
		v.counters.errors.Add(1)
		v.counters.tried(name, &v.trials, ReservedError, 0)
		return grant{}, err
	}
	begin := time.Now()
	a.witness(ctx, v, name)
	n := want
	for number := 1; ; number++ {
		epoch := v.marks.Epoch(name)
		low := v.lowest.seenAt(name, epoch, v.share().Plan)
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
		if link.IsConflict(t.err) {
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
		wait := v.timing.Conflict << number
		if do == remedyAwait {
			wait = v.timing.follow
		}
		if !await.Pause(ctx, await.Jitter(wait)) {
			return grant{}, context.Cause(ctx)
		}
		begin = time.Now()
	}
}

// next decides what comes after an attempt, and whether another one follows it, if the remedy
// works.
func next(o outcome, number int) (do remedy, again bool) {
	do = remedies[o]
	return do, do != remedyGive && do != remedyStop && number < link.MaxAttempts
}

// demand is how many numbers an attempt has asked for, and how many are wanted, and needed at
// least.
type demand struct{ n, want, need uint64 }

// errEndMoves: fewer numbers were asked for each time, and again not so many were left.
var errEndMoves = errors.New("the end of the sequence moves")

// remedy does what an attempt needs before the next one, and says how many numbers that asks for.
// t.err is told if there is none.
func (a *servers) remedy(ctx context.Context, v *server, name string, epoch uint64, d demand, do remedy, t *attempt) (n uint64, err error) {
	switch do {
	case remedyPutBack:
		if seg := t.grant.seg; seg.Remaining() > 0 {
			// Those numbers were given to nobody. If they cannot be given back either they are a
			// gap.
			done, _ := v.giveBack(ctx, name, epoch, seg)
			v.counters.lose(name, returnedOr(UnusedAlter, done), seg.Remaining())
		}
	case remedyAwait:
		// the next sign of life finds that out, gives up what is held, and has the entry made again
		v.registry.missing.Store(true)
	case remedyLift:
		return d.n, a.lift(ctx, v, name, max(t.mark, v.marks.Of(name)), t.row)
	case remedyFit:
		t.err = errEndMoves
		return v.fit(ctx, name, d.want, d.need)
	case remedyWitness:
		left, err := a.raiseByWitness(ctx, v, name, d.n)
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
		return d.n, v.ceilings.adoptOrMove(ctx, name, limit.Holder{})
	case remedyMove:
		v.Moved()
	}
	return d.n, nil
}

// admit has the numbers of an attempt count as reserved by this process, if none was given before:
// the row was seen at low, or higher marks are kept.
func (v *server) admit(ctx context.Context, name string, epoch, low uint64, t attempt) attempt {
	seg := t.grant.seg
	mark, ok := v.marks.Admit(name, epoch, low, seg)
	switch {
	case ok || t.grant.cycle && mark != 0:
		if err := v.marks.Keep(name); err != nil {
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
		window:  t.upTo.grouped && v.ceilings.windowDue(name, last, n),
		witness: t.upTo.witnessed && v.witnessDue(name, h, last, t.grant.max, a.aheadOf(name, n)),
	}
	if !d.window && !d.witness {
		return due{}
	}
	return d
}

// attempt takes n numbers on a server that this process is registered with, and that may go so far.
// members are all, by position.
func (v *server) attempt(ctx context.Context, members []*server, name string, n uint64) attempt {
	if err := v.enlist(ctx); err != nil {
		return v.failedWith(err)
	}
	conn, err := v.Conn(ctx)
	if err != nil {
		return v.failedWith(err)
	}
	defer func() { _ = conn.Close() }() // gives it back; a broken one is closed by the pool

	used := v.rules.of(name)
	t := take{name: name, n: n, used: used, share: v.shareOf(name, used)}
	if t.upTo, err = v.ceilings.upTo(ctx, conn, name); err != nil {
		return v.failedWith(err)
	}
	if t.share.Shared() && !planted.Fault(planted.CeilingMember) {
		t.upTo.witnessed = true
		if t.upTo.recorded, err = v.recordedCeiling(ctx, conn, name, t.share.Plan); err != nil {
			return v.failedWith(err)
		}
	}
	if t.share.Shared() && !planted.Fault(planted.Floor) {
		t.floor = v.marks.Of(name)
	}
	t.epoch, t.low = v.marks.Epoch(name), v.lowestOf(name, t.share)
	did := v.take(ctx, conn, &t)
	switch {
	case did.asked:
		v.ceilings.drop(name)
		if did.outcome == outcomeAtCeiling {
			v.ceilings.learn(name, did.ceiling)
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
		did.lost, did.why = h.Whole(t.n), UnusedAlter
		return
	default:
		did.lost, did.why = h.Whole(t.n), UnusedRefused
		return
	}
	v.logReserved(t.name, t.numbers(did.last), t.floor)
	g := grant{
		seg: t.numbers(did.last), max: stored.max, exact: stored.exact, rule: h.Common(stored.rule()), cycle: stored.def.Cycle, order: stored.def.Order,
		shared: h.Shared(), version: stored.version,
	}
	if first := g.seg.Next(); h.Shared() && (first <= t.floor || !h.Owns(first) || !h.Owns(did.last)) {
		did.outcome = outcomeDoubtful
		did.err = v.doubt(fmt.Sprintf("sequence %q: it gave %d to %d, which are not its own", t.name, first, did.last), "look for triggers on the table")
		did.lost, did.why = h.Whole(t.n), UnusedRefused
		return
	}
	did.grant, did.upTo = g, t.upTo
}

// mayGive makes sure, after numbers were taken, that the server is still the one to give them.
func (v *server) mayGive(ctx context.Context, conn *sql.Conn, members []*server, t *take, stored *row) error {
	if t.node != nil && t.node.Cluster != "" {
		if err := v.LeadsTo(ctx, conn, t.node); err != nil {
			return err
		}
	}
	if !stored.def.Order {
		return nil
	}
	if t.share.Shared() {
		if o := isHome(members, t.share, stored.home); o != outcomeDone {
			return o
		}
	}
	if t.upTo.grouped && v.ceilings.replicates() {
		if err := v.ceilings.stillHolds(ctx, conn); err != nil {
			return err
		}
	}
	if t.share.Shared() {
		return v.stillHome(ctx, conn, members, t.share)
	}
	return nil
}

// remaining is how many numbers this server has of a sequence, up to highest.
func (st *store) remaining(name string, stored *row, highest uint64) uint64 {
	switch h := st.shareOf(name, stored.rule()); {
	case h.InBlocks():
		return h.Remaining(max(stored.id, st.marks.Of(name)), highest)
	case h.InSteps():
		return h.Rule(stored.rule(), st.marks.Of(name)).Remaining(max(stored.id, st.marks.Of(name)), highest)
	}
	return stored.rule().Remaining(stored.id, highest)
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
	if stored.plan != v.share().Plan {
		return need, outcomeOldPlan
	}
	if stored.id >= v.seen.Load().max {
		if err := v.atEnd(ctx, name); !errors.Is(err, ErrExhausted) {
			return need, err
		}
	}
	left := v.remaining(name, &stored, stored.max)
	if left < need && stored.def.Cycle {
		if left, err = v.cycle(ctx, name, need); err != nil {
			return need, err
		}
	}
	if left < need {
		return need, &NameError{Name: define.ShownName(name), Err: ErrExhausted}
	}
	n := max(need, min(want, left/segment.CeilingShare))
	return n - n%need, nil // whole steps, where somebody counts in steps
}
