package group

import (
	"context"
	"errors"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// WindowDue reports whether it is time to open the next window of a sequence, after a reservation
// of n numbers that end at last. Those for ticks are opened when they are needed.
func (g *Ceilings) WindowDue(name string, last, n uint64) bool {
	if define.IsWorker(name) {
		return false
	}
	ceiling, ok := g.Ceiling(name)
	width, fits := g.Width(name, last, n)
	return ok && fits && limit.WindowLow(last, width, ceiling, g.Highest(name))
}

// OpenNext opens the next window of a sequence that reserves n numbers at a time, unless another
// caller does.
func (g *Ceilings) OpenNext(ctx context.Context, name string, n uint64) {
	g.recorded.Once(name, func() {
		if err := g.openWindow(ctx, name, n); g.IsMoved(err) {
			// Otherwise it is logged; a caller that reaches the ceiling gets the error again.
			g.Moved()
		}
	})
}

// openWindow raises the ceiling of a sequence that reserves n numbers at a time, unless another
// caller did. OutcomeNoRoom: fewer numbers remain.
func (g *Ceilings) openWindow(ctx context.Context, name string, n uint64) error {
	var err error
	for attempt := 1; ; attempt++ {
		err = g.tryWindow(ctx, name, n, false)
		// A lock wait is long already.
		if !link.IsConflict(err) || link.HasCode(err, gomysql.ER_LOCK_WAIT_TIMEOUT) || !g.MayRetry(ctx, attempt) {
			break
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	lost := errors.As(err, new(*limit.SeenError))
	switch {
	case lost && !g.failing:
		ceiling, _ := g.Ceiling(name)
		g.Log.Warn("windows not raised", logfield.Sequence(define.ShownName(name)),
			zap.Uint64("ceiling", ceiling), logfield.Err(err))
	case err == nil && g.failing:
		g.Log.Info("windows raised again", logfield.Sequence(define.ShownName(name)))
	}
	if lost || err == nil {
		g.failing = lost
	}
	return err
}

// tryWindow is openWindow that logs nothing. With closed, a sequence with fewer numbers gets a
// window that ends where it stands, so that nothing begins below after a fail-over.
func (g *Ceilings) tryWindow(ctx context.Context, name string, n uint64, closed bool) error {
	conn, now, err := g.toChosen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	w, err := g.Group(conn, now).Open(ctx, name, n, closed)
	switch {
	case errors.Is(err, limit.ErrNotHolder):
		g.Drop(name)
		return store.OutcomeNotHolder
	case errors.Is(err, limit.ErrNoRoom):
		err = store.OutcomeNoRoom
	}
	if w.Granted > 0 {
		g.Learn(name, w.Granted)
	}
	if err == nil && !w.Found && !w.Exact {
		g.Log.Info("ceiling raised", logfield.Sequence(define.ShownName(name)), zap.Uint64("ceiling", w.Granted),
			zap.Uint64("first", w.First), zap.Strings("seen_on", w.SeenOn))
	}
	return err
}

// MakeRoom makes room below the ceiling for n numbers, and returns how many the next attempt may
// ask for: some may remain where no more windows are opened, in steps of need. OutcomeNoRoom: fewer
// numbers remain.
func (g *Ceilings) MakeRoom(ctx context.Context, name string, n, need uint64) (uint64, error) {
	err := g.openWindow(ctx, name, n)
	lost := new(limit.SeenError)
	switch {
	case g.IsMoved(err):
		g.Moved()
		return n, nil
	case errors.As(err, &lost) && lost.Newer.Term != 0:
		// Another node has taken over after this one. If all nodes, looked at again, say that this
		// is the primary after all, it takes over anew.
		g.Moved()
		return n, g.TakeOver(ctx, name, lost.Newer)
	case errors.Is(err, store.OutcomeNotHolder):
		return n, g.TakeOver(ctx, name, limit.Holder{})
	case errors.As(err, new(*limit.SeenError)):
		// The rest below the ceiling may be given.
		stored, again := g.Find(ctx, name)
		if again != nil {
			return n, again
		}
		ceiling, _ := g.Ceiling(name)
		left := g.Remaining(name, &stored, min(ceiling, stored.Max))
		if left -= left % need; left >= need && left < n {
			return left, nil
		}
	}
	return n, err
}

// TakeOver makes the chosen node the holder of all sequences, unless it is that already as far as
// name is concerned, and no claim that was seen on another node counts more. Where the node turns
// out to be read only, another is looked for.
func (g *Ceilings) TakeOver(ctx context.Context, name string, over limit.Holder) error {
	err := g.takeOverChosen(ctx, name, over)
	if g.IsMoved(err) {
		g.Moved()
		return nil
	}
	return err
}

// holding calls f, which needs the chosen node to be the holder, and again where it was not, or was
// not writable, or another commit was first.
func (g *Ceilings) holding(ctx context.Context, name string, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		switch {
		case g.IsMoved(err):
			g.Moved()
		case errors.Is(err, store.OutcomeNotHolder):
			if failed := g.TakeOver(ctx, name, limit.Holder{}); failed != nil {
				return failed
			}
		case !link.IsConflict(err):
			return err
		}
		if !g.MayRetry(ctx, attempt) {
			return err
		}
	}
}

// errWentBelow: a row that was moved ahead is no longer there.
var errWentBelow = errors.New("it has taken over, or the sequence was set back meanwhile; try again")

// KeepAbove makes sure that a sequence that was moved ahead, to go on above n, does so after a
// fail-over, too: either n is below a window that a majority of the nodes has seen, above which the
// next holder begins, or they have the row itself.
func (g *Ceilings) KeepAbove(ctx context.Context, name string, n uint64) error {
	if !g.InForce() {
		return nil
	}
	err := g.holding(ctx, name, func() error {
		err := g.belowCeiling(ctx, name, n)
		if errors.Is(err, store.OutcomeAtCeiling) {
			err = g.openWindow(ctx, name, 1)
		}
		if errors.Is(err, store.OutcomeNoRoom) {
			err = g.tryWindow(ctx, name, 1, true)
		}
		return err
	})
	var stored store.Row
	if err == nil {
		stored, err = g.Look(ctx, name)
	}
	if err == nil && stored.Position() < min(n, g.Seen.Load().Max) {
		err = fmt.Errorf("%s has the sequence at %d: %w", g.At(), stored.Position(), errWentBelow)
	}
	if err != nil {
		return fmt.Errorf("a fail-over could lose that sequence %q goes on above %d: %w", name, n, err)
	}
	return nil
}

// MoveAhead moves a counter to floor, which is n or above, if it stands below, and is KeepAbove of
// n. at is n or above: up to there no number is given any more, even after a fail-over.
func (g *Ceilings) MoveAhead(ctx context.Context, name string, n, floor, end uint64) (at uint64, err error) {
	for range link.MaxAttempts {
		var to uint64
		if to, err = g.openTo(ctx, name, n, floor); err == nil {
			at, err = g.RaiseTo(ctx, name, n, to, end)
		}
		if err == nil {
			err = g.KeepAbove(ctx, name, n)
		}
		if !errors.Is(err, errWentBelow) {
			break
		}
	}
	if ceiling, ok := g.Ceiling(name); ok && g.InForce() {
		at = min(at, max(ceiling, n)) // above the ceiling a fail-over may lose it
	}
	return at, err
}

// openTo makes sure that a sequence may be moved to n, and returns how far it may be moved: to
// floor, or only to n where the ceiling is below floor. Above the ceiling it would give nothing
// until other nodes answer.
func (g *Ceilings) openTo(ctx context.Context, name string, n, floor uint64) (to uint64, err error) {
	if !g.InForce() {
		return floor, nil
	}
	if err = g.holding(ctx, name, func() error { return g.belowCeiling(ctx, name, floor) }); err == nil {
		return floor, nil
	}
	if err := g.belowCeiling(ctx, name, n); !errors.Is(err, store.OutcomeAtCeiling) {
		return n, nil // KeepAbove returns any other error
	}
	stored, err := g.Look(ctx, name)
	if err == nil && stored.Position() < n {
		err = g.openWindow(ctx, name, (n-stored.Position())/max(stored.Rule().Step, 1)+2)
	}
	if err != nil && !errors.Is(err, store.OutcomeNoRoom) {
		return 0, fmt.Errorf("a fail-over could lose that sequence %q goes on above %d: %w", name, n, err)
	}
	return n, nil
}

// belowCeiling returns OutcomeAtCeiling for a number that a sequence may not give yet.
func (g *Ceilings) belowCeiling(ctx context.Context, name string, n uint64) error {
	conn, err := g.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	to, err := g.UpTo(ctx, conn, name)
	if err == nil && to.Grouped && to.Ceiling < n {
		err = store.OutcomeAtCeiling
	}
	return err
}
