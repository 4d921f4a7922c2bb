package sequence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
)

// This file is how it is noticed that the row of a sequence has gone back: because of a restored backup, a server that lost its last second,
// or somebody's UPDATE. A single server then gives numbers that this process had before, which [marks] tells. With several servers
// none gives a number at or below the highest that this process got anywhere, so there the row is what tells: it is below what it was when this
// process reserved there last.

// errWentBack: the row of a sequence has gone back.
var errWentBack = errors.New("the row has gone back")

// lowRow is a row of one of several servers that has gone back. It is an errWentBack.
type lowRow struct {
	id   uint64 // of the row
	mark uint64 // what it was
}

func (e *lowRow) Error() string {
	return fmt.Sprintf("%v from %d to %d", errWentBack, e.mark, e.id)
}

// Unwrap returns errWentBack.
func (e *lowRow) Unwrap() error { return errWentBack }

// lowest remembers, for one of several servers, below which id a row has gone back.
type lowest struct {
	mu    sync.Mutex
	by    map[string]lowestID // guarded by mu; by the table's spelling
	asked map[string]uint64   // guarded by mu; under which plan the other members were asked for their rows; see witness
}

// ask reports whether the other members are to be asked for their rows of a sequence under a plan, which is done once.
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

// forget has them asked again.
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

// set takes note of what a row has become by this process.
func (l *lowest) set(name string, epoch, plan, id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = make(map[string]lowestID)
	}
	l.by[name] = lowestID{epoch, plan, id}
}

// lowestOf is the lowest id that the row of a sequence may have on this one of several servers, 0 if any.
func (v *server) lowestOf(name string, h share) uint64 {
	if !h.shared() || planted.Fault(planted.Floor) {
		return 0
	}
	return v.lowest.of(name, v.marks.epoch(name), h.plan)
}

// reserved takes note of a reservation in the given epoch.
func (v *server) reserved(name string, epoch uint64, g *grant) {
	if h := v.share(); h.shared() && h.plan == g.seg.plan && !g.cycle {
		v.lowest.set(name, epoch, h.plan, g.seg.Last())
	}
}

// witness has this process take no number of a sequence up to the highest row of the other members that can be reached. It asks them before its first reservation on this one, and again when this one
// was away: its row may have gone back, as in a backup, from where this process never saw it. The others stand close to that, since nobody takes a number below what he got elsewhere.
func (v *server) witness(ctx context.Context, name string) {
	h := v.share()
	if !h.shared() || planted.Fault(planted.Floor) || !v.lowest.ask(name, h.plan) {
		return
	}
	patience := v.timing.peer
	if end, ok := ctx.Deadline(); ok {
		patience = time.Until(end) / 2 // one that stands still does not keep this one from serving
	}
	limited, stop := context.WithTimeoutCause(ctx, patience, errPatience)
	defer stop()
	v.eachPeer(h, func(o *server) {
		found, err := o.look(limited, name)
		switch {
		case err == nil && (found.frozen || found.id < o.seen.Load().max): // not where nothing is left
			v.marks.raise(name, found.position())
		case err != nil && ctx.Err() == nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrUnfit):
			v.lowest.forget() // unless it is left out by then, the next reservation asks it again
		}
	})
}

// eachPeer calls f for the other members that are not left out, at the same time, and waits for all of them.
func (v *server) eachPeer(h share, f func(o *server)) {
	var wg sync.WaitGroup
	for position := range h.count {
		if o := v.peer(int(position)); o != nil && o != v && !o.away.Load() {
			wg.Go(func() { f(o) })
		}
	}
	wg.Wait()
}

// lift raises a row that has gone back to the mark. gave is what it gave, or where it stands.
func (v *server) lift(ctx context.Context, name string, mark, gave uint64) error {
	v.counters.wentBack(name, &v.trials)
	v.follow.forgot.Store(true)
	v.lowest.forget()
	v.witness(ctx, name)
	mark = max(mark, v.marks.of(name))
	v.log.Error("sequence row went back",
		logfield.Sequence(name), zap.Uint64("gave", gave), zap.Uint64("given_before", mark),
		zap.String("remedy", "REPAIR SEQUENCE "+quote(name)))
	_, low, err := v.tryRaise(ctx, name, mark, mark, 0)
	switch {
	case err != nil || low == nil:
		return err
	case low.frozen:
		return errPlanChanging
	}
	return errRuleChanged
}
