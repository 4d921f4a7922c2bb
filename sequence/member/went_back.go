package member

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// This file notices that the row of a sequence has gone back: by a restored backup, a server that
// lost its last second, or somebody's UPDATE. [floor.Marks] knows the numbers that this process
// had. The row itself shows those of other proxies: the follower looks at it in each round, and
// nobody lowers it within an epoch while another proxy is registered (see GiveBack). So a row that
// is lower than it was seen has gone back. The row of a worker's ticks may be lowered by its last
// user: what others saw of it does not count. Nor does what was seen on another node of a group.

// lowest has the ids below which a row of one server has gone back.
type lowest struct {
	mu sync.Mutex
	// guarded by mu; by the table's spelling; where this process, on one of several servers,
	// reserved last
	by map[string]lowestID
	// guarded by mu; the plan under which the other members were asked for their rows; see witness
	asked map[string]uint64

	// guarded by mu; by the table's spelling; where the follower saw the row
	seen map[string]lowestID
	node uint64 // guarded by mu; the node of seen, as Changes counts them
	// guarded by mu; rises when this process begins to lower a row, and when it ends
	lowered uint64
	alarmed map[string]time.Time // guarded by mu; when it was last logged that the row went back
}

// ask reports whether the other members have yet to be asked for their rows of a sequence under a
// plan, which happens once.
func (l *lowest) ask(name string, plan uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked == nil {
		l.asked = make(map[string]uint64)
	}
	was, ok := l.asked[name]
	l.asked[name] = plan
	return !ok || was != plan
}

// forget makes them be asked again.
func (l *lowest) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.asked)
}

// lowestID counts in one epoch of its sequence and under one plan.
type lowestID struct{ epoch, plan, id uint64 }

// of returns the lowest id that the row of a sequence may have, 0 if any.
func (l *lowest) of(name string, epoch, plan uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.by[name]; known.epoch == epoch && known.plan == plan {
		return known.id
	}
	return 0
}

// set records to where this process moved a row.
func (l *lowest) set(name string, epoch, plan, id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = make(map[string]lowestID)
	}
	l.by[name] = lowestID{epoch, plan, id}
}

// lower forgets where the row of a sequence was seen, before this process lowers it and again after
// that.
func (l *lowest) lower(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lowered++
	delete(l.seen, name)
}

// look begins a look at the rows of a node, for note.
func (l *lowest) look(node uint64) (begun uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.node != node {
		l.node = node
		clear(l.seen)
	}
	return l.lowered
}

// note records where a row stands, as a look found it. It returns where the row was seen before, 0
// if that is not known. ok is false, and nothing is recorded, if this process may have lowered the
// row since the look began. A process that is not registered records nothing: who lowers a row does
// not wait for it.
func (l *lowest) note(begun uint64, name string, is lowestID, registered bool) (before uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case begun != l.lowered:
		return 0, false
	case !registered:
		return 0, true
	}
	was, ok := l.seen[name]
	if ok && was.epoch == is.epoch && was.plan == is.plan && is.id <= was.id {
		return was.id, true
	}
	if l.seen == nil {
		l.seen = make(map[string]lowestID)
	}
	l.seen[name] = is
	return 0, true
}

// seenAt returns where the follower saw a row, 0 if it did not. A reservation asks before it is
// sent: later the follower may see the row where the reservation has moved it.
func (l *lowest) seenAt(name string, epoch, plan uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen := l.seen[name]; seen.epoch == epoch && seen.plan == plan && !planted.Fault(planted.Floor) {
		return seen.id
	}
	return 0
}

// overlook forgets where the follower saw a row.
func (l *lowest) overlook(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, name)
}

// alarm reports whether to log that a row went back. The follower and several reservations may meet
// the same row, so it is logged once in rest.
func (l *lowest) alarm(name string, rest time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.alarmed[name]; ok && time.Since(last) < rest {
		return false
	}
	if l.alarmed == nil {
		l.alarmed = make(map[string]time.Time)
	}
	l.alarmed[name] = time.Now()
	return true
}

// SeenAt returns where the row of a sequence was last seen in its epoch, 0 if it was not.
func (v *Server) SeenAt(name string) uint64 {
	return v.lowest.seenAt(name, v.Marks.Epoch(name), v.Share().Plan)
}

// lowestOf returns the lowest id that the row of a sequence may have on this one of several
// servers, 0 if any.
func (v *Server) lowestOf(name string, h segment.Share) uint64 {
	if !h.Shared() || planted.Fault(planted.Floor) {
		return 0
	}
	return v.lowest.of(name, v.Marks.Epoch(name), h.Plan)
}

// WatchRows records where rows stand here, and raises those that have gone back. It is called after
// changes were obeyed, so that new epochs and rules are known. It returns no error: the next round
// looks again.
func (v *Server) WatchRows(ctx context.Context, among *Among, names []string) {
	node := v.Changes()
	registered := v.Registry.ListedID() != "" && v.Registry.On.Load() == node
	h := v.Share()
	begun, before := v.lowest.look(node), make(map[string]floor.Mark, len(names))
	for _, name := range names {
		// now: the row may be read before a reservation that is in flight
		mark := v.Marks.Mark(name)
		if h.Shared() || v.Grouped() {
			mark.High = 0 // it is of all members or nodes, and says nothing of the row of one
			if define.IsWorker(name) {
				mark.High = v.lowest.of(name, mark.Epoch, h.Plan) // no look counts there, see note
			}
		}
		before[name] = mark
	}
	rows, err := v.StandsOf(ctx, names)
	if err != nil {
		v.Log.Debug("rows not looked at", logfield.Err(err))
		return
	}
	if v.Changes() != node {
		return
	}
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Cycle:
			v.lowest.overlook(r.Name)
			continue
		case r.Plan != h.Plan || r.Epoch != before[r.Name].Epoch || r.Epoch != v.Marks.Epoch(r.Name) || r.ID >= v.Seen.Load().Max:
			// at the end it may be frozen
			continue
		}
		low, ok := v.lowest.note(begun, r.Name, lowestID{r.Epoch, r.Plan, r.ID}, registered && !define.IsWorker(r.Name))
		low = max(low, before[r.Name].High)
		if !ok || r.ID >= low || !v.holdsAt(ctx, node, r) {
			continue
		}
		if err := v.lift(ctx, among, r.Name, low, r.ID); err != nil {
			v.Log.Debug("row not raised", logfield.Sequence(define.ShownName(r.Name)), logfield.Err(err))
		}
	}
}

// holdsAt reports whether a node of a group gives numbers from where a row was seen on it. If not,
// the row is of an earlier holder and came late: the node raises it when it takes over.
func (v *Server) holdsAt(ctx context.Context, node uint64, r *store.Stand) bool {
	if !v.Grouped() {
		return true
	}
	conn, err := v.Conn(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	now := v.Current()
	known, err := v.Limits.Read(ctx, conn, limit.Scope{Name: r.Name})
	if now == nil || err != nil || v.Changes() != node {
		return false
	}
	_, err = v.Limits.Admitted(known, now, r.ID)
	return err == nil
}

// reserved records a reservation in the given epoch. A single server needs none: [floor.Marks] has
// it.
func (v *Server) reserved(name string, epoch uint64, g *store.Grant) {
	if h := v.Share(); h.Shared() && h.Plan == g.Segment.Plan && !g.Cycle {
		v.lowest.set(name, epoch, h.Plan, g.Segment.Last())
	}
}

// witness keeps this process from taking numbers of a sequence below the highest row of the other
// members that can be reached. It asks them before its first reservation on v, and again when v was
// away: v's row may have gone back, as in a backup, from where this process never saw it. The
// others' rows are close, since nobody takes a number below what came from another member. newer
// says that one of them obeys a newer plan: v may have been removed, and have come back.
func (v *Server) witness(ctx context.Context, among *Among, name string) (newer bool) {
	h := v.Share()
	if !h.Shared() || h.Plan != among.Number || planted.Fault(planted.Floor) || !v.lowest.ask(name, h.Plan) {
		return false
	}
	patience := v.TryTime() / 2 // one that hangs does not keep this one from serving
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)/2)
	}
	limited, stop := context.WithTimeoutCause(ctx, patience, await.ErrPatience)
	defer stop()
	var later atomic.Bool
	eachOther(among.Members, v, there, func(o *Server) {
		found, err := o.Look(limited, name)
		switch {
		case err == nil && found.Plan > h.Plan:
			later.Store(true)
			v.lowest.forget()
		case err == nil && (found.Frozen || found.ID < o.Seen.Load().Max):
			// not where nothing remains
			v.Marks.Raise(name, found.Position())
		case err != nil && ctx.Err() == nil && !errors.Is(err, define.ErrUnknown) && !errors.Is(err, link.ErrUnfit):
			v.lowest.forget() // unless it is left out by then, the next reservation asks it again
		}
	})
	return later.Load()
}

// there reports whether a member is not left out.
func there(o *Server) bool { return !o.Away() }

// eachOther calls f, at the same time, for the members other than v that which selects, and waits
// for all of them.
func eachOther(members []*Server, v *Server, which func(o *Server) bool, f func(o *Server)) {
	var wg sync.WaitGroup
	for _, o := range members {
		if o != v && which(o) {
			wg.Go(func() { f(o) })
		}
	}
	wg.Wait()
}

// lift raises a row of v that has gone back to the mark. gave is its last number, or where it
// stands.
func (v *Server) lift(ctx context.Context, among *Among, name string, mark, gave uint64) error {
	v.forgot.Store(true)
	v.lowest.forget()
	if v.witness(ctx, among, name) {
		return store.OutcomeOldPlan
	}
	mark = max(mark, v.Marks.Of(name))
	if v.lowest.alarm(name, v.timing.Alarm) {
		v.counters.WentBack(name, &v.Trials)
		v.Log.Error("sequence row went back",
			logfield.Sequence(define.ShownName(name)), zap.Uint64("gave", gave), zap.Uint64("given_before", mark),
			zap.String("remedy", "REPAIR SEQUENCE "+define.Quote(name)))
	}
	_, low, err := v.TryRaise(ctx, name, mark, mark, 0)
	switch {
	case err != nil || low == nil:
		return err
	case low.Frozen:
		return store.OutcomeFrozen
	}
	return store.OutcomeNewRule
}
