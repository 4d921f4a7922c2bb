package snowflake

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// renewal is what renewals remember of a worker in use.
type renewal struct {
	claimed     bool
	id          uint64
	begin       uint64 // its first tick that was reserved here; fail-overs may have skipped some since
	first, last uint64 // its last ticks that were reserved without a gap
}

// has reports whether ticks are reserved.
func (w *renewal) has(from, to uint64) bool { return w.claimed && w.begin <= from && w.last >= to }

// mostWorkers is how many workers a Generator uses with several sequence servers: of different
// servers, so that one server may be away for long.
const mostWorkers = 2

// claimAhead is how many workers are looked at together, in random order, so that proxies which
// begin at the same time seldom meet.
const claimAhead = 16

// maxTries is how many workers a renewal loses to others before it gives up.
const maxTries = 20

// Renew reserves ticks for twice the cover. Only one call runs at a time. After an error it is
// called again when a caller waits, or at the next KeepUp.
func (g *Generator) Renew(ctx context.Context) error {
	g.mu.Lock()
	g.begun++
	g.mu.Unlock()
	err := g.renew(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed, g.ended = err, g.begun
	g.changedLocked()
	return err
}

func (g *Generator) renew(ctx context.Context) error {
	if err := g.adjust(ctx); err != nil {
		return err
	}
	now, end := g.tickNow(), g.o.Kind.MaxCounter()
	switch {
	case now > end:
		return &EndError{g.o.Name}
	case now == 0: // before the first tick
		return &ClockError{Sequence: g.o.Name, Behind: g.until(1)}
	}
	cover := g.CoverTicks()
	want := min(now+2*cover, end)
	from := min(now+g.ticksIn(g.o.Bounds.Behind), want)
	var failed error
	for i := range g.inUse() {
		failed = cmp.Or(failed, g.keep(ctx, int(i), now, from, want))
	}
	covered := g.covered(from)
	if failed == nil && covered < from { // the only worker has ticks again later
		failed = g.noWorker(ctx, 0, g.until(g.workers[0].first))
	}
	if failed != nil && covered < want {
		return failed
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dueAt = now + g.ticksIn(g.o.Bounds.Look)
	if early := cover + cover/2; want > g.dueAt+early {
		g.dueAt = want - early
	}
	return nil
}

// CoverTicks returns how many ticks last for the cover. Ticks are reserved each Look at most.
func (g *Generator) CoverTicks() uint64 { return g.ticksIn(max(g.o.Cover(), g.o.Bounds.Look)) }

// inUse returns how many workers are to be used.
func (g *Generator) inUse() uint64 {
	if g.o.Worker != nil {
		return 1
	}
	return min(g.o.Ticks.Homes(), mostWorkers)
}

// keep makes sure that a worker in use has ticks.
func (g *Generator) keep(ctx context.Context, i int, now, from, want uint64) error {
	w := &g.workers[i]
	if i > 0 && w.claimed && w.id%g.o.Ticks.Homes() == g.workers[0].id%g.o.Ticks.Homes() {
		w.claimed = false // the servers were changed
	}
	for tries := 0; !w.has(from, want) && !g.keepsOn(w, want); tries++ {
		if tries == maxTries {
			return g.noWorker(ctx, 0, 0)
		}
		if w.last >= want { // the clock was set back to before the first of these
			w.claimed = false
		}
		if !w.claimed {
			if err := g.claim(ctx, i, now); err != nil {
				return err
			}
		}
		switch err := g.extend(ctx, w, now, want); {
		case errors.Is(err, ErrAway):
			w.claimed = false
		case err != nil:
			return err
		}
	}
	return nil
}

// keepsOn reports whether the ticks of the only worker reach as far as wanted. Others may have
// ticks between its reserved ones, as after a fail-over: no other worker would fill that gap.
func (g *Generator) keepsOn(w *renewal, want uint64) bool {
	return g.o.Worker != nil && w.claimed && w.last >= want
}

// skipped is how many ticks a fail-over skips of a worker whose windows end with a reservation. Any
// other process reserves more.
const skipped = 1

// extend reserves ticks of a worker in use. If another process has reserved some, or none are left,
// the worker is given up.
func (g *Generator) extend(ctx context.Context, w *renewal, now, want uint64) error {
	if w.last < now { // it was free for a while
		last, busy, err := g.o.Ticks.Last(ctx, w.id, now)
		if w.claimed = !busy && last-w.last <= skipped; err != nil || !w.claimed {
			return err
		}
	}
	n := max(want, w.last+1) - w.last
	first, err := g.o.Ticks.Reserve(ctx, w.id, n)
	switch {
	case err != nil:
		return err
	case first == 0:
		w.claimed = false
		return nil
	}
	if first != w.last+1 {
		w.first = first
	}
	if first > w.last+1+skipped {
		w.claimed, w.begin = g.o.Worker != nil, first
	}
	w.last = first + n - 1
	g.add(span{w.id, first, w.last})
	return nil
}

// Unused is ticks of a worker, both ends included.
type Unused struct{ Worker, First, Last uint64 }

// Unused returns the reserved ticks of each worker in use above the last tick with a key. It is
// called after End, when no renewal runs.
func (g *Generator) Unused() (all []Unused) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.workers {
		if w := &g.workers[i]; w.claimed && w.last > g.tick {
			all = append(all, Unused{w.id, max(w.first, g.tick+1), w.last})
		}
	}
	return all
}

func (g *Generator) covered(now uint64) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.coveredLocked(now)
}

// claim takes a free worker, with a few ticks from now on: if two proxies take it at the same
// moment, one of them has wasted no more.
func (g *Generator) claim(ctx context.Context, i int, now uint64) error {
	homes, other := g.o.Ticks.Homes(), &g.workers[len(g.workers)-1-i]
	begin, end := uint64(0), uint64(1)<<g.o.Kind.Layout().WorkerBits
	if w := g.o.Worker; w != nil {
		if *w >= end {
			return g.noWorker(ctx, 0, 0)
		}
		begin, end = *w, *w+1
	}
	few := min(now+g.ticksIn(g.o.Bounds.Look), g.o.Kind.MaxCounter())
	soonest, away := uint64(0), uint64(0)
	for base := begin; base < end; base += claimAhead {
		for _, at := range rand.Perm(int(min(claimAhead, end-base))) {
			id := base + uint64(at)
			if other.claimed && homes > 1 && id%homes == other.id%homes {
				continue
			}
			last, busy, err := g.o.Ticks.Last(ctx, id, now)
			switch {
			case errors.Is(err, ErrAway):
				away++
				continue
			case err != nil:
				return err
			case busy:
				continue
			case last > now+g.ticksIn(g.o.Bounds.Behind):
				if soonest == 0 || last < soonest {
					soonest = last
				}
				continue
			}
			n := max(few, last+1) - last
			first, err := g.o.Ticks.Reserve(ctx, id, n)
			switch {
			case errors.Is(err, ErrAway):
				away++
				continue
			case err != nil:
				return err
			case first != last+1:
				continue
			}
			g.workers[i] = renewal{claimed: true, id: id, begin: first, first: first, last: last + n}
			g.add(span{id, first, last + n})
			return nil
		}
	}
	free := time.Duration(0)
	if soonest > 0 {
		free = g.until(soonest)
	}
	return g.noWorker(ctx, away, free)
}

// noWorker is the error when no worker is available.
func (g *Generator) noWorker(ctx context.Context, away uint64, free time.Duration) error {
	workers := uint64(1) << g.o.Kind.Layout().WorkerBits
	if w := g.o.Worker; w != nil {
		return &WorkerError{Sequence: g.o.Name, Worker: *w, Workers: workers, Away: away > 0, Free: free, Holders: g.o.Ticks.Holders(ctx, *w)}
	}
	return &WorkersError{Sequence: g.o.Name, Workers: workers, Away: away, Free: free}
}

// add takes over reserved ticks, and forgets those that have passed. Waiting callers go on at once,
// since the rest of a renewal may take long.
func (g *Generator) add(s span) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.changedLocked()
	now := g.tickNow()
	kept := g.later[:0]
	for _, old := range g.later {
		if old.to >= now {
			kept = append(kept, old)
		}
	}
	g.later = kept
	if g.now.worker == s.worker && g.now.to+1 == s.from {
		g.now.to = s.to
		return
	}
	for i := range g.later {
		if old := &g.later[i]; old.worker == s.worker && old.to+1 == s.from {
			old.to = s.to
			return
		}
	}
	g.later = append(g.later, s)
}

// adjust compares the clock of this machine with that of the sequence server. The steady clock
// follows a small difference. It follows a large one, after a step of the clock or a sleep of the
// machine, if the server agrees.
func (g *Generator) adjust(ctx context.Context) error {
	server, err := g.o.Ticks.Time(ctx)
	if err != nil {
		return err
	}
	most := g.o.Bounds.Off
	wall := g.clock.wall()
	off, ahead := wall.Sub(server), g.clock.off()
	agreed := off.Abs() <= most
	switch {
	case !g.compared.begun && !agreed:
		return &ClockError{Sequence: g.o.Name, Off: off, Most: most}
	case agreed, ahead.Abs() <= g.o.Bounds.Behind:
		if ahead.Abs() > g.o.Bounds.Behind {
			g.countStep()
			g.o.Log.Warn("clock was set, which keys follow", logfield.Sequence(g.o.Name), zap.Duration("step", ahead))
		}
		g.clock.set(wall.UnixNano())
		g.compared.warned = false
	case !g.compared.warned:
		g.compared.warned = true
		g.countStep()
		g.o.Log.Warn("clock was set, which keys do not follow", logfield.Sequence(g.o.Name), zap.Duration("step", ahead), zap.Duration("ahead_of_server", off))
	}
	g.compared.begun = true
	return nil
}

func (g *Generator) countStep() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.steps++
}
