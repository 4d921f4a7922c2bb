package member

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
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// Reserve reserves as many numbers as are wanted, or at least the needed ones, and returns the work
// that follows. Each attempt ends with an outcome, and each outcome has a remedy.
func (v *Server) Reserve(ctx context.Context, among *Among, name string, want, need uint64) (store.Grant, Due, error) {
	if err := v.Marks.Ready(); err != nil {
		v.counters.Tried(name, &v.Trials, stats.ReservedError, 0)
		return store.Grant{}, Due{}, err
	}
	begin := time.Now()
	if v.witness(ctx, among, name) {
		v.counters.Tried(name, &v.Trials, ResultOf(store.OutcomeOldPlan, nil), time.Since(begin))
		return store.Grant{}, Due{}, store.OutcomeOldPlan
	}
	n := want
	for number := 1; ; number++ {
		epoch := v.Marks.Epoch(name)
		low := v.lowest.seenAt(name, epoch, v.Share().Plan)
		at := v.Current()
		t := v.Attempt(ctx, among, name, n)
		took := time.Since(begin)
		if t.Outcome == store.OutcomeForeign {
			t.Err = v.WrongResidue(ctx, among.Members, name, t.Row, v.Share())
		}
		if t.Doubtful > 0 {
			v.counters.Lose(name, stats.UnusedUnknownCommit, t.Doubtful)
		}
		if t.lost > 0 {
			v.counters.Lose(name, t.why, t.lost)
		}
		if t.Outcome == store.OutcomeDone {
			t = v.admit(ctx, name, epoch, low, t)
		}
		if at != nil && (t.Outcome == store.OutcomeUnknown || t.Outcome == store.OutcomeLocked) {
			v.MovedFrom(at) // it lets connections in, and commits nothing: another may serve by now
		}
		result := ResultOf(t.Outcome, t.Err)
		do, again := next(t.Outcome, number)
		if do == remedyGive {
			v.counters.Tried(name, &v.Trials, result, took)
			return t.Grant, v.due(among, name, n, &t), nil
		}
		if link.IsConflict(t.Err) {
			v.counters.Retries.Add(1)
		}
		if do != remedyStop {
			var failed error
			if n, failed = v.remedy(ctx, among, name, epoch, demand{n, want, need}, do, &t); failed != nil {
				again, t.Err = false, failed
			}
		}
		err := t.Err
		if !again {
			result = lastResult(result, v.OutcomeOf(err), err)
		}
		if result == stats.ReservedNoRow && among.Several() {
			result = stats.ReservedChanged // the row is made: see Several.ReserveWith
		}
		v.counters.Tried(name, &v.Trials, result, took)
		if !again {
			return store.Grant{}, Due{}, fmt.Errorf("reserve %d numbers of sequence %q: %w", n, name, store.WithGrants(err, v.Config.Database))
		}
		wait := v.Config.Link.Timing.Conflict << number
		if do == remedyAwait {
			wait = v.timing.Follow
		}
		if !await.Pause(ctx, await.Jitter(wait)) {
			return store.Grant{}, Due{}, context.Cause(ctx)
		}
		begin = time.Now()
	}
}

// next returns the remedy of an outcome, and whether another attempt follows if it works.
func next(o store.Outcome, number int) (do remedy, again bool) {
	do = remedies[o]
	return do, do != remedyGive && do != remedyStop && number < link.MaxAttempts
}

// demand is how many numbers an attempt asks for, and how many are wanted, and needed at least.
type demand struct{ n, want, need uint64 }

// errEndMoves: each attempt asked for fewer numbers, and fewer than that remained.
var errEndMoves = errors.New("the end of the sequence moves")

// remedy prepares the next attempt, and returns the count of numbers that it asks for. t.Err is the
// reason if there is no next attempt.
func (v *Server) remedy(ctx context.Context, among *Among, name string, epoch uint64, d demand, do remedy, t *Attempt) (n uint64, err error) {
	switch do {
	case remedyPutBack:
		if seg := t.Grant.Segment; seg.Remaining() > 0 {
			// Nobody got those numbers. If they cannot be returned either they are a gap.
			done, _ := v.GiveBack(ctx, name, epoch, seg)
			v.counters.Lose(name, stats.ReturnedOr(stats.UnusedAlter, done), seg.Remaining())
		}
	case remedyAwait:
		// the next heartbeat notices, discards the cached numbers, and has the entry made again
		v.Registry.Missing.Store(true)
	case remedyLift:
		return d.n, v.lift(ctx, among, name, max(t.Mark, v.Marks.Of(name)), t.Row)
	case remedyFit:
		t.Err = errEndMoves
		return v.fit(ctx, name, d.want, d.need)
	case remedyWitness:
		remaining, err := v.raiseByWitness(ctx, among, name, d.n)
		switch {
		case errors.Is(err, store.OutcomeNoRoom):
			t.Err = errEndMoves
			return v.fit(ctx, name, d.want, d.need)
		case err != nil && remaining >= d.need && remaining-remaining%d.need < d.n:
			t.Err = err
			return remaining - remaining%d.need, nil // the numbers below may be given
		}
		return d.n, err
	case remedyCeiling:
		n, err := v.Ceilings.MakeRoom(ctx, name, d.n, d.need)
		if errors.Is(err, store.OutcomeNoRoom) {
			return v.fit(ctx, name, d.want, d.need)
		}
		return n, err
	case remedyHold:
		return d.n, v.Ceilings.TakeOver(ctx, name, limit.Holder{})
	case remedyMove:
		v.Moved()
	}
	return d.n, nil
}

// admit counts the numbers of an attempt as reserved by this process, unless some were given
// before: the row was seen at low, or the marks are higher.
func (v *Server) admit(ctx context.Context, name string, epoch, low uint64, t Attempt) Attempt {
	seg := t.Grant.Segment
	mark, ok := v.Marks.Admit(name, epoch, low, seg)
	switch {
	case ok || t.Grant.Cycle && mark != 0:
		if err := v.Marks.Keep(name); err != nil {
			v.TakeBack(ctx, name, epoch, seg)
			return Attempt{Attempt: store.Attempt{Outcome: store.OutcomeRefused, Err: err}}
		}
		v.reserved(name, epoch, &t.Grant)
		return t
	case mark == 0:
		v.counters.Lose(name, stats.UnusedRestart, seg.Remaining())
		return Attempt{Attempt: store.Ended(store.OutcomeRestarted)}
	}
	v.counters.Lose(name, stats.UnusedRewind, seg.Remaining())
	return Attempt{Attempt: store.Attempt{Outcome: store.OutcomeWentBack, Row: seg.Next(), Mark: mark, Err: fmt.Errorf("the row keeps going back below %d", mark)}}
}

// due returns the work that follows a reservation.
func (v *Server) due(among *Among, name string, n uint64, t *Attempt) Due {
	last, h := t.Grant.Segment.Last(), v.Share()
	d := Due{
		Server:  v,
		Plan:    among.Number,
		N:       n,
		Window:  t.UpTo.Grouped && v.Ceilings.WindowDue(name, last, n),
		Witness: t.UpTo.Witnessed && v.witnessDue(name, h, last, t.Grant.Max, v.aheadOf(among, name)),
	}
	if !d.Window && !d.Witness {
		return Due{}
	}
	if define.IsWorker(name) { // n may be for all the time that it was idle
		d.N = 1
	}
	return d
}

// Attempt is an attempt to take numbers, with its result.
type Attempt struct {
	store.Attempt

	// Grant has the numbers with OutcomeDone. With OutcomeNewRule it may have numbers by the old
	// rule.
	Grant store.Grant
	UpTo  limit.UpTo // what limited it

	lost uint64       // numbers that were taken, and that nobody gives
	why  stats.Unused // why nobody gives them
}

// Attempt takes n numbers on a server that this process is registered with, below the ceiling. It
// takes none if the plan is no longer that of among: the home is chosen among the members of one
// plan.
func (v *Server) Attempt(ctx context.Context, among *Among, name string, n uint64) Attempt {
	failed := func(err error) Attempt { return Attempt{Attempt: v.FailedWith(err)} }
	if err := v.Enlist(ctx); err != nil {
		return failed(err)
	}
	conn, err := v.Conn(ctx)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = conn.Close() }() // returns it; the pool closes a broken one

	used := v.Rules.Of(name)
	t := store.Taking{Name: name, N: n, Used: used, Share: v.ShareOf(name, used)}
	if t.Share.Plan != among.Number {
		return Attempt{Attempt: store.Ended(store.OutcomeOldPlan)}
	}
	if t.UpTo, err = v.Ceilings.UpTo(ctx, conn, name); err != nil {
		return failed(err)
	}
	if t.Share.Shared() && !planted.Fault(planted.CeilingMember) {
		t.UpTo.Witnessed = true
		if t.UpTo.Recorded, err = v.RecordedCeiling(ctx, conn, name, t.Share.Plan); err != nil {
			return failed(err)
		}
	}
	if t.Share.Shared() && !planted.Fault(planted.Floor) {
		t.Floor = v.Marks.Of(name)
	}
	t.Epoch, t.Low = v.Marks.Epoch(name), v.lowestOf(name, t.Share)
	if err := v.LimitTaking(&t); err != nil {
		return failed(err)
	}
	did := Attempt{Attempt: v.Take(ctx, conn, &t)}
	switch {
	case did.Asked:
		v.Ceilings.Drop(name)
		if did.Outcome == store.OutcomeAtCeiling {
			v.Ceilings.Learn(name, did.Ceiling)
		}
	case did.Taken && did.Outcome == store.OutcomeDone:
		if err := v.MayGive(ctx, conn, among, &t, &did.Stored); err != nil {
			did.Outcome, did.Err = v.OutcomeOf(err), err
		}
	}
	if did.Taken {
		v.granted(&t, &did)
	}
	return did
}

// granted makes a grant of taken numbers, if the outcome allows to give them.
func (v *Server) granted(t *store.Taking, did *Attempt) {
	h, stored := t.Share, &did.Stored
	switch did.Outcome {
	case store.OutcomeDone:
	case store.OutcomeNewRule:
		v.LogReserved(t.Name, t.Numbers(did.Last), t.Floor)
		did.Grant.Segment = t.Numbers(did.Last)
		return
	case store.OutcomeOldPlan, store.OutcomeFrozen, store.OutcomeNotHome:
		did.lost, did.why = h.Whole(t.N), stats.UnusedAlter
		return
	default:
		did.lost, did.why = h.Whole(t.N), stats.UnusedRefused
		return
	}
	v.LogReserved(t.Name, t.Numbers(did.Last), t.Floor)
	g := store.Grant{
		Segment: t.Numbers(did.Last), Max: stored.Max, Exact: stored.Exact, Rule: h.Common(stored.Rule()), Cycle: stored.Def.Cycle, Order: stored.Def.Order,
		Shared: h.Shared(), Version: stored.Version,
	}
	if first := g.Segment.Next(); h.Shared() && (first <= t.Floor || !h.Has(first) || !h.Has(did.Last)) {
		did.Outcome = store.OutcomeDoubtful
		did.Err = v.Momentary(fmt.Sprintf("sequence %q: it gave %d to %d, which are not its own", t.Name, first, did.Last), "look for triggers on the table")
		did.lost, did.why = h.Whole(t.N), stats.UnusedRefused
		return
	}
	did.Grant, did.UpTo = g, t.UpTo
}

// MayGive checks, after numbers were taken, that the server is still the one to give them.
func (v *Server) MayGive(ctx context.Context, conn *sql.Conn, among *Among, t *store.Taking, stored *store.Row) error {
	if t.Node != nil && t.Node.Cluster != "" {
		if err := v.LeadsTo(ctx, conn, t.Node); err != nil {
			return err
		}
	}
	if !stored.Def.Order {
		return nil
	}
	if t.Share.Shared() {
		if o := isHome(among.Members, t.Share, stored.Home); o != store.OutcomeDone {
			return o
		}
	}
	if t.UpTo.Grouped && !v.options.OrderWithoutReplica() {
		if err := v.Ceilings.StillHolds(ctx, conn); err != nil {
			return err
		}
	}
	if t.Share.Shared() {
		return v.stillHome(ctx, conn, among.Members, t.Share)
	}
	return nil
}

// fit returns how many numbers to reserve after a reservation of want exceeded the column's
// maximum.
func (v *Server) fit(ctx context.Context, name string, want, need uint64) (uint64, error) {
	stored, err := v.Find(ctx, name)
	if err != nil {
		return need, err
	}
	v.LearnAs(name, &stored)
	if stored.Frozen {
		return need, store.OutcomeFrozen
	}
	if stored.Plan != v.Share().Plan {
		return need, store.OutcomeOldPlan
	}
	remaining := v.Remaining(name, &stored, stored.Max)
	switch {
	case remaining >= need:
		return fitting(remaining, want, need), nil
	case stored.Def.Cycle:
		return need, &define.NameError{Name: define.ShownName(name), Err: errCycles}
	}
	return need, &define.NameError{Name: define.ShownName(name), Err: define.ErrExhausted}
}

// errCycles: a sequence that restarts at its end has run out.
var errCycles = fmt.Errorf("%w, and was to begin again", define.ErrExhausted)

// fitting returns how many numbers to reserve, at least need, where so many remain.
func fitting(remaining, want, need uint64) uint64 {
	n := max(need, min(want, remaining/segment.CeilingShare))
	return n - n%need // whole steps, where the counter moves in steps
}
