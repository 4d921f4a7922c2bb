package snowflake

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/planted"
	"seqproxy/sequence/kind"
)

// Ticks reserves the ticks of workers on a sequence server.
type Ticks interface {
	// Last returns the last reserved tick of a worker. A new worker begins at first. busy: the
	// worker cannot be taken. ErrAway: nor until its server is back.
	Last(ctx context.Context, worker, first uint64) (last uint64, busy bool, err error)
	// Reserve returns the first of n consecutive ticks of a worker, which no other process has or
	// will have; 0 if the worker has not so many left. Errors are as with Last.
	Reserve(ctx context.Context, worker, n uint64) (first uint64, err error)
	// Homes returns how many servers can be away independently. The server at a worker's number
	// modulo this gives the ticks of the worker.
	Homes() uint64
	// Time returns the server's clock at the time of the return.
	Time(ctx context.Context) (time.Time, error)
	// Holders describes the other live processes that may take only this worker. It is empty if
	// unknown.
	Holders(ctx context.Context, worker uint64) string
}

// Options are the settings of a Generator.
type Options struct {
	Name  string // of the sequence, in errors
	Kind  kind.Kind
	Ticks Ticks
	// Worker is the only worker to take; nil: any that is free.
	Worker *uint64
	// Cover is how long ticks are reserved ahead, at least.
	Cover func() time.Duration
	// RenewSoon makes Renew be called soon, unless it runs. It does not wait.
	RenewSoon func()
	Wall      func() time.Time // the clock of the machine
	Bounds    Bounds
	Log       *zap.Logger
}

// Bounds say how far clocks are believed.
type Bounds struct {
	// Off bounds the distance of this machine's clock to that of the sequence server.
	Off time.Duration
	// Behind bounds how far the first tick of a worker may lie ahead, so that it is waited for.
	Behind time.Duration
	// Look is the interval of looks for a step of the clock, and the least time between two
	// renewals.
	Look time.Duration
}

// Generator gives the keys of one sequence in one process. It is safe for concurrent use. It starts
// no goroutine.
type Generator struct {
	o     Options
	size  uint64 // keys in a tick
	clock *steadyClock

	queue chan struct{} // a lock for the first waiting caller

	mu      sync.Mutex
	tick    uint64 // of the last key
	counter uint64 // of the next key in that tick; size if none remains
	now     span   // the span of tick
	later   []span // reserved, and not begun
	given   uint64
	steps   uint64        // of the clock
	waiting int           // callers
	dueAt   uint64        // the tick in which ticks must be reserved
	changed chan struct{} // closed when ticks were reserved, or a renewal or the generator has ended
	begun   uint64        // how many renewals have begun
	ended   uint64        // how many had begun when the last one ended
	failed  error         // the error of that one; nil after a success
	end     error         // why it gives nothing any more

	// of Renew alone
	workers  [mostWorkers]renewal
	compared struct {
		begun  bool // it was compared with the server's
		warned bool // a step that is not followed was logged
	}
}

// span is reserved ticks of a worker, both ends included.
type span struct{ worker, from, to uint64 }

func (s span) has(tick uint64) bool { return tick >= s.from && tick <= s.to }

// New returns a Generator without ticks.
func New(o Options) *Generator {
	size := uint64(1) << o.Kind.Layout().CounterBits
	g := &Generator{
		o: o, size: size, queue: make(chan struct{}, 1), changed: make(chan struct{}),
		counter: size, now: span{from: 1}, clock: newSteadyClock(o.Wall),
	}
	return g
}

// Take returns the first of n consecutive keys of one tick, if it need not wait. Keys rise.
func (g *Generator) Take(n uint64) (key uint64, ok bool) {
	g.mu.Lock()
	if g.waiting > 0 || g.end != nil || n > g.size {
		g.mu.Unlock()
		return 0, false
	}
	now := g.tickNow()
	due := g.dueLocked(now)
	key, ok, _ = g.nextLocked(now, n)
	if g.mu.Unlock(); due {
		g.o.RenewSoon()
	}
	return key, ok
}

// tickNow returns the present tick. The clock may be behind the last tick.
func (g *Generator) tickNow() uint64 {
	if planted.Fault(planted.Clock) {
		return g.o.Kind.TickAt(g.clock.wall().UnixNano())
	}
	return g.o.Kind.TickAt(g.clock.now())
}

// nextLocked takes n keys. If it cannot, again is the tick in which to try again soon, or 0 if
// ticks must first be reserved.
func (g *Generator) nextLocked(now, n uint64) (key uint64, ok bool, again uint64) {
	if now > g.tick || planted.Fault(planted.Clock) && now != g.tick {
		if !g.now.has(now) && !g.advanceLocked(now) {
			soon := now + g.ticksIn(g.o.Bounds.Behind)
			for _, s := range g.later {
				if s.from > now && s.from <= soon {
					again, soon = s.from, s.from
				}
			}
			return 0, false, again
		}
		g.tick, g.counter = now, 0
	}
	if g.counter+n > g.size {
		return 0, false, g.tick + 1
	}
	key = g.o.Kind.Compose(g.tick, g.now.worker, g.counter)
	g.counter += n
	g.given += n
	return key, true, 0
}

// advanceLocked moves on to ticks that include the present one.
func (g *Generator) advanceLocked(now uint64) bool {
	for i, s := range g.later {
		if s.has(now) {
			g.now = s
			g.later = append(g.later[:i], g.later[i+1:]...)
			return true
		}
	}
	return false
}

// dueLocked reports, once for a while, that ticks must be reserved.
func (g *Generator) dueLocked(now uint64) bool {
	if now < g.dueAt {
		return false
	}
	g.dueAt = now + g.ticksIn(g.o.Bounds.Look)
	return true
}

// ticksIn returns how many ticks last for d, at least one.
func (g *Generator) ticksIn(d time.Duration) uint64 {
	return max(uint64(d/g.o.Kind.Layout().Tick), 1)
}

// until returns how long it is until a tick begins. Ticks far ahead come after all others.
func (g *Generator) until(tick uint64) time.Duration {
	return g.o.Kind.TimeOf(tick).Sub(time.Unix(0, g.clock.now()))
}

// Wait is Take that waits until ctx is done. Callers go in the order in which they came: else
// single keys would starve a caller that wants a whole tick. Errors: *ClockError, *WorkersError,
// *WorkerError, *FullError, *RunError, *EndError, *WaitError, and that of End.
func (g *Generator) Wait(ctx context.Context, n uint64) (uint64, error) {
	if n > g.size {
		return 0, &RunError{Sequence: g.o.Name, Wanted: n, Most: g.size}
	}
	g.count(1)
	defer g.count(-1)
	select {
	case g.queue <- struct{}{}:
	case <-ctx.Done():
		return 0, g.why(ctx)
	}
	defer func() { <-g.queue }()
	// A renewal that had begun before this call asked for one does not know how things are now.
	for before := uint64(math.MaxUint64); ; {
		g.mu.Lock()
		now := g.tickNow()
		key, ok, again := g.nextLocked(now, n)
		changed, failed, end, begun, ended := g.changed, g.failed, g.end, g.begun, g.ended
		g.mu.Unlock()
		var pause time.Duration
		switch {
		case end != nil:
			return 0, end
		case ok:
			return key, nil
		case again == 0 && ended > before && refused(failed):
			return 0, failed
		case again == 0:
			before = min(before, begun)
			g.o.RenewSoon()
		default:
			pause = g.until(again)
			if pause <= 0 {
				continue
			}
			if until, ok := ctx.Deadline(); ok && pause > time.Until(until) && now < again-1 {
				return 0, &ClockError{Sequence: g.o.Name, Behind: pause}
			}
		}
		if !pauseOr(ctx, pause, changed) {
			return 0, g.why(ctx)
		}
	}
}

// pauseOr waits for a pause, or without one for changed, which ends the wait in any case. It is
// false if ctx was done first.
func pauseOr(ctx context.Context, pause time.Duration, changed <-chan struct{}) bool {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-changed:
	case <-ctx.Done():
		return false
	}
	return true
}

func (g *Generator) count(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting += n
}

// IsAwaited reports whether a caller waits.
func (g *Generator) IsAwaited() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting > 0
}

// PassOver skips all ticks up to tick.
func (g *Generator) PassOver(tick uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if tick >= g.tick {
		g.tick, g.counter = tick, g.size
	}
}

// why is the error of a caller whose ctx is done: why there are no ticks, if that is known, or that
// the present ticks have too few keys.
func (g *Generator) why(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.failed
	if now := g.tickNow(); err == nil && g.coveredLocked(now) >= now {
		err = &FullError{Sequence: g.o.Name, Keys: g.size, Tick: g.o.Kind.Layout().Tick}
	}
	return &WaitError{Cause: context.Cause(ctx), Err: err}
}

// End makes every Take fail with err from now on.
func (g *Generator) End(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.end == nil {
		g.end = err
		g.changedLocked()
	}
}

func (g *Generator) changedLocked() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// State describes a Generator.
type State struct {
	Given   uint64        // keys
	Tick    uint64        // the present one
	Ticks   uint64        // reserved ticks from now on, without a gap
	Covered time.Duration // how long they last
	Used    bool          // ticks were reserved here
	Steps   uint64        // steps of the clock of more than Bounds.Behind
}

// State returns the present State. It does no I/O.
func (g *Generator) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := State{Given: g.given, Tick: g.tickNow(), Used: g.dueAt > 0, Steps: g.steps}
	isBehind := g.tick > st.Tick+g.ticksIn(g.o.Bounds.Behind) // no key is given until the clock comes to that tick
	if covered := g.coveredLocked(st.Tick); covered >= st.Tick && g.end == nil && !isBehind {
		st.Ticks = covered + 1 - st.Tick
	}
	st.Covered = time.Duration(st.Ticks) * g.o.Kind.Layout().Tick
	return st
}

// Workers returns the workers whose ticks are reserved now, the one in use first. It does no I/O.
func (g *Generator) Workers() (all []uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.end != nil {
		return nil
	}
	now := g.tickNow()
	for _, s := range g.spansLocked() {
		if s.has(now) && !slices.Contains(all, s.worker) {
			all = append(all, s.worker)
		}
	}
	return all
}

// spansLocked returns all spans, that of the last key first.
func (g *Generator) spansLocked() []span { return append([]span{g.now}, g.later...) }

// coveredLocked returns the last tick up to which all from now on are reserved; one before now if
// now is not.
func (g *Generator) coveredLocked(now uint64) uint64 {
	covered, spans := max(now, 1)-1, g.spansLocked()
	for grown := true; grown; {
		grown = false
		for _, s := range spans {
			if s.from <= covered+1 && s.to > covered {
				covered, grown = s.to, true
			}
		}
	}
	return covered
}

// KeepUp makes ticks be reserved if that is due without callers, or after a step of the clock, once
// for a while. It does nothing before the first key was wanted.
func (g *Generator) KeepUp() {
	g.mu.Lock()
	due := g.end == nil && g.dueAt > 0 && (g.dueLocked(g.tickNow()) || g.clock.stepped(g.o.Bounds))
	if g.mu.Unlock(); due {
		g.o.RenewSoon()
	}
}
