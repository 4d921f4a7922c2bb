package sequence

import (
	"context"
	"errors"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// windowDue reports whether it is time to open the next window of a sequence, of which n numbers
// that end at last were reserved.
func (g *ceilings) windowDue(name string, last, n uint64) bool {
	ceiling, ok := g.ceiling(name)
	width, fits := g.Width(name, last, n)
	return ok && fits && limit.WindowLow(last, width, ceiling, g.Highest(name))
}

// openNext opens the next window of a sequence that reserves n numbers at a time, unless somebody
// does.
func (g *ceilings) openNext(ctx context.Context, name string, n uint64) {
	g.mu.Lock()
	if g.opening == nil {
		g.opening = make(map[string]struct{})
	}
	_, begun := g.opening[name]
	g.opening[name] = struct{}{}
	g.mu.Unlock()
	if begun {
		return
	}
	if err := g.openWindow(ctx, name, n); g.IsMoved(err) {
		// else logged; whoever reaches the ceiling is told again
		g.Moved()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.opening, name)
}

// openWindow raises the ceiling of a sequence that reserves n numbers at a time, unless somebody
// else did. OutcomeNoRoom: it has not so many left.
func (g *ceilings) openWindow(ctx context.Context, name string, n uint64) error {
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
		g.Log.Warn("windows not raised", logfield.Sequence(name),
			zap.Uint64("ceiling", g.by[name]), logfield.Err(err))
	case err == nil && g.failing:
		g.Log.Info("windows raised again", logfield.Sequence(name))
	}
	if lost || err == nil {
		g.failing = lost
	}
	return err
}

// tryWindow is openWindow that logs nothing. closed has a sequence that has not so many left get a
// window that ends where it stands: so nobody begins below after a fail-over.
func (g *ceilings) tryWindow(ctx context.Context, name string, n uint64, closed bool) error {
	conn, now, err := g.toChosen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	w, err := g.group(conn, now).Open(ctx, name, n, closed)
	switch {
	case errors.Is(err, limit.ErrNotHolder):
		g.drop(name)
		return store.OutcomeNotHolder
	case errors.Is(err, limit.ErrNoRoom):
		err = store.OutcomeNoRoom
	}
	if w.Granted > 0 {
		g.learn(name, w.Granted)
	}
	if err == nil && !w.Found && !w.Exact {
		g.Log.Info("ceiling raised", logfield.Sequence(name), zap.Uint64("ceiling", w.Granted),
			zap.Uint64("first", w.First), zap.Strings("seen_on", w.SeenOn))
	}
	return err
}

// raiseCeiling has the next attempt find room below the ceiling, and says how many numbers that
// asks for.
func (v *server) raiseCeiling(ctx context.Context, name string, d demand) (uint64, error) {
	n, need := d.n, d.need
	err := v.ceilings.openWindow(ctx, name, n)
	lost := new(limit.SeenError)
	switch {
	case v.IsMoved(err):
		v.Moved()
		return n, nil
	case errors.As(err, &lost) && lost.Newer.Term != 0:
		// Another node was taken over after this one. If all nodes, looked at again, say that this
		// is the primary after all, it is taken over anew.
		v.Moved()
		return n, v.ceilings.takeOverOrMove(ctx, name, lost.Newer)
	case errors.Is(err, store.OutcomeNotHolder):
		return n, v.ceilings.takeOverOrMove(ctx, name, limit.Holder{})
	case errors.Is(err, store.OutcomeNoRoom):
		return v.fit(ctx, name, d.want, need)
	case errors.As(err, new(*limit.SeenError)):
		// What is left below the ceiling may be given.
		stored, again := v.Find(ctx, name)
		if again != nil {
			return n, again
		}
		ceiling, _ := v.ceilings.ceiling(name)
		left := v.Remaining(name, &stored, min(ceiling, stored.Max))
		if left -= left % need; left >= need && left < n {
			return left, nil
		}
	}
	return n, err
}

// takeOverOrMove is takeOver; where the node turns out to be read only, another is looked for.
func (g *ceilings) takeOverOrMove(ctx context.Context, name string, over limit.Holder) error {
	err := g.takeOver(ctx, name, over)
	if g.IsMoved(err) {
		g.Moved()
		return nil
	}
	return err
}

// holding calls f, which needs the chosen node to be the holder, and again where it was not, or was
// not to be written to, or another commit was first.
func (g *ceilings) holding(ctx context.Context, name string, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		switch {
		case g.IsMoved(err):
			g.Moved()
		case errors.Is(err, store.OutcomeNotHolder):
			if failed := g.takeOverOrMove(ctx, name, limit.Holder{}); failed != nil {
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

// errWentBelow: what was moved ahead is not there any more.
var errWentBelow = errors.New("it has taken over, or the sequence was set back meanwhile; try again")

// keepAbove makes sure that a sequence which was moved ahead, to go on above n, does so after a
// fail-over, too: either n is below a window that a majority of the nodes has seen, above which the
// next holder begins, or they have the row itself.
func (g *ceilings) keepAbove(ctx context.Context, name string, n uint64) error {
	if !g.inForce() {
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

// openTo makes sure that a sequence may be moved to n, and returns how far it may be moved: to
// floor, or to n alone where the ceiling is below floor. Above the ceiling it would give nothing to
// anybody until other nodes answer.
func (g *ceilings) openTo(ctx context.Context, name string, n, floor uint64) (to uint64, err error) {
	if !g.inForce() {
		return floor, nil
	}
	if err = g.holding(ctx, name, func() error { return g.belowCeiling(ctx, name, floor) }); err == nil {
		return floor, nil
	}
	if err := g.belowCeiling(ctx, name, n); !errors.Is(err, store.OutcomeAtCeiling) {
		return n, nil // of any other error keepAbove tells
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
func (g *ceilings) belowCeiling(ctx context.Context, name string, n uint64) error {
	conn, err := g.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	to, err := g.upTo(ctx, conn, name)
	if err == nil && to.Grouped && to.Ceiling < n {
		err = store.OutcomeAtCeiling
	}
	return err
}
