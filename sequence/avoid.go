package sequence

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// When a counter is pinned; see [Sequences.pin].
const (
	pinEvery = 1000             // how far n is above what is known, and below the end, at least
	pinPause = 10 * time.Second // after a failure
)

// Avoid is told of numbers that somebody has chosen himself, before he uses them: they are not handed out any more, as AUTO_INCREMENT
// does not give what an INSERT gave. What is in memory here is taken out of it; a number above the counter moves the counter there, unless it is above the sequence's maximum.
// Nothing is known of what other proxies hold in memory, and of numbers that were handed out before.
//
// Where the counter is moved a segment behind it is reserved, unless the sequence has a typed CACHE n, or much is held: so an import of a million rising
// numbers moves it every thousand.
//
// Of several sequence servers all that can be reached are moved, and by one segment more than the number, for those that follow.
//
// Errors are those of Take. numbers is not kept, and may be in any order; 0 is no number.
func (s *Sequences) Avoid(ctx context.Context, name []byte, numbers []uint64) error {
	deadline := time.Now().Add(s.patience(ctx))
	for again := true; ; again = false {
		c, err := s.findOrCreate(ctx, name, deadline)
		if err != nil {
			return err
		}
		err = s.avoid(ctx, c, numbers, deadline)
		if !again || !errors.Is(err, ErrUnknown) {
			return err
		}
		s.forget(name, c)
	}
}

func (s *Sequences) avoid(ctx context.Context, c *cache, numbers []uint64, deadline time.Time) error {
	c.mu.Lock()
	highest, end := uint64(0), c.max
	c.mu.Unlock()
	for _, n := range numbers {
		if n <= end { // what is above its maximum the sequence never gives
			highest = max(highest, n)
		}
	}
	caches := s.cachesOf(c)
	if s.avoidHeld(caches, numbers, highest) {
		return nil
	}
	// Nobody reserves in this proxy meanwhile, and what was reserved is in the caches.
	r, stop := s.requestWithin(ctx, time.Until(deadline))
	defer stop()
	if err := c.reserving.take(r.ctx); err != nil {
		return r.failed(c.name, err)
	}
	defer c.reserving.end()
	if s.avoidHeld(caches, numbers, highest) {
		return nil
	}
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	for {
		err := s.moveAbove(r.ctx, c, numbers, highest)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, errVoid):
			return r.failed(c.name, err)
		}
	}
}

// moveAbove moves a counter above n, the highest of numbers, and where that is allowed holds the numbers behind: so those that follow n in an import are taken
// out of memory. errVoid: the sequence may have begun again meanwhile, so that the counter may be below. c.reserving is held.
func (s *Sequences) moveAbove(ctx context.Context, c *cache, numbers []uint64, n uint64) error {
	c.mu.Lock()
	err, top, size, generation := c.end, c.top, c.size, c.generation
	// Of several servers the one that would give n has to be moved, whichever the next numbers come from.
	several := s.servers.view.Load().several()
	pin := !several && c.worthPinningLocked(n)
	hold := !several && c.exact == 0 && len(c.queue) < maxQueued/2 && n < c.max
	floor := min(n, c.max)
	if c.exact == 0 && !hold {
		floor += min(size, c.max-floor)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	near := hold && n-top <= size
	moved := false
	if !near {
		if moved, err = s.raiseCounter(ctx, c, floor, n, generation); err != nil {
			return err
		}
	}
	if !hold {
		if !moved && pin {
			return s.pin(ctx, c, n, generation)
		}
		return nil
	}
	g, err := c.reserver.reserve(ctx, c.name, size, 1)
	switch {
	case err == nil:
	case !near:
		return nil // the counter is at n, or above
	case errors.Is(err, ErrExhausted): // others have come nearer to the end
		_, err = s.raiseCounter(ctx, c, floor, n, generation)
		return err
	}
	c.mu.Lock()
	if err != nil {
		if errors.Is(err, ErrUnknown) {
			c.goneLocked(err)
		}
		c.mu.Unlock()
		return err
	}
	if c.generation == generation && c.end == nil {
		// Those who wait must not be served with what is to be taken out.
		first, final := c.first, c.final
		c.first, c.final = nil, nil
		c.installLocked(g)
		for _, n := range numbers {
			c.cutOneLocked(n)
		}
		c.first, c.final = first, final
		c.serveLocked()
	} else {
		c.gaps[c.overtaken] += g.seg.Remaining()
	}
	above := c.kept >= n
	c.mu.Unlock()
	if above {
		return nil
	}
	// Fewer were reserved than that, as few are left.
	_, err = s.raiseCounter(ctx, c, floor, n, generation)
	return err
}

// raiseCounter moves the counter of c to floor, which is as good as to n, unless it is there, and notes that unless the generation is over: then it is errVoid.
func (s *Sequences) raiseCounter(ctx context.Context, c *cache, floor, n, generation uint64) (moved bool, err error) {
	moved, err = s.servers.raiseTo(ctx, c.name, floor)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, ErrUnknown):
		c.goneLocked(err)
		return false, err
	case err != nil:
		return false, err
	case c.generation != generation:
		return false, errVoid
	}
	c.top = max(c.top, floor, n) // beyond the maximum there is nothing to go on with
	if moved {
		c.kept = max(c.kept, floor, n)
	}
	if s.servers.view.Load().several() {
		c.passed = max(c.passed, floor, n)
	}
	return moved, nil
}

// worthPinningLocked reports whether the counter, if it is found above n, is to be pinned: each time takes a number, of which there are enough, and fewer questions are asked for it.
func (c *cache) worthPinningLocked(n uint64) bool {
	switch {
	case c.cycle, time.Now().Before(c.pinAgain):
		return false
	case n >= c.max || c.max-n < pinEvery:
		return false
	}
	return c.kept == 0 || n-c.kept >= pinEvery
}

// pin makes sure that the counter of c, which was found above n, stays there: others may put numbers back, but not below one that was reserved here, which nobody gets. Without it the
// counter would be asked about for each old number that somebody chooses; so it is no error where that fails. errVoid: the counter may be below n by now.
func (s *Sequences) pin(ctx context.Context, c *cache, n, generation uint64) error {
	ctx, stop := context.WithTimeoutCause(ctx, s.servers.tryTime(), errPatience)
	defer stop()
	g, err := c.reserver.reserve(ctx, c.name, 1, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.pinAgain = time.Now().Add(pinPause)
		return nil
	}
	c.gaps[UnusedChosen] += g.seg.Remaining()
	if c.generation != generation || g.seg.Last() < n {
		return errVoid
	}
	c.top, c.kept = max(c.top, g.seg.Last()), max(c.kept, g.seg.Last())
	return nil
}

// cachesOf returns the caches of c's counter, c first.
func (s *Sequences) cachesOf(c *cache) []*cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []*cache{c}
	for key, stepped := range s.steps {
		if key.of == c {
			all = append(all, stepped)
		}
	}
	return all
}

// avoidHeld takes numbers out of what caches hold. It reports whether that is all there is to do: the highest is not above the counter.
func (s *Sequences) avoidHeld(caches []*cache, numbers []uint64, highest uint64) bool {
	top, several := uint64(0), s.servers.view.Load().several()
	for i, c := range caches {
		c.mu.Lock()
		for _, n := range numbers {
			if i == 0 {
				c.cutOneLocked(n)
			} else {
				c.skipLocked(n)
			}
		}
		if several {
			top = max(top, c.passed)
		} else {
			top = max(top, c.kept)
		}
		c.mu.Unlock()
	}
	return highest <= top
}

// cutOneLocked takes n out of what is held. Where that would leave too many pieces, what lies before it is given up.
func (c *cache) cutOneLocked(n uint64) {
	at := -1 // index in queue, or of none: cur
	whole := &c.cur
	for !whole.has(n) {
		if at++; at >= len(c.queue) {
			if n <= c.top { // it may be one that is about to be put back
				c.avoided++
			}
			return
		}
		whole = &c.queue[at]
	}
	behind := *whole
	before := whole.upTo(n) // with n
	behind.drop(before)
	before--
	c.held--
	c.gaps[UnusedChosen]++
	if before > 0 && behind.Remaining() > 0 && len(c.queue) >= maxQueued {
		c.held -= before
		c.gaps[UnusedChosen] += before
		before = 0
	}
	switch {
	case before == 0:
		*whole = behind
	case behind.Remaining() == 0:
		whole.Trim(before)
	default:
		whole.Trim(before)
		c.queue = slices.Insert(c.queue, at+1, behind)
	}
	c.queue = slices.DeleteFunc(c.queue, func(s Segment) bool { return s.Remaining() == 0 })
	if c.cur.Remaining() == 0 {
		c.advanceLocked(1)
	}
}

// skipLocked is cutOneLocked for a cache of whole steps: it gives up everything up to n, if n is held.
func (c *cache) skipLocked(n uint64) {
	held := c.cur.has(n)
	for i := range c.queue {
		held = held || c.queue[i].has(n)
	}
	if held {
		c.discardLocked(UnusedChosen)
	}
}

// Step returns how far apart the numbers of a sequence are, its INCREMENT. Errors are those of Take.
func (s *Sequences) Step(ctx context.Context, name []byte) (uint64, error) {
	c, err := s.findOrCreate(ctx, name, time.Now().Add(s.patience(ctx)))
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.rule.step, 1), nil
}

// findOrCreate is find for a sequence that Take would create.
func (s *Sequences) findOrCreate(ctx context.Context, name []byte, deadline time.Time) (*cache, error) {
	c, err := s.find(ctx, name, time.Until(deadline))
	if errors.Is(err, ErrUnknown) && s.tuning.Load().CreateUnknown {
		if err = s.createUnknown(ctx, name, deadline); err == nil {
			c, err = s.find(ctx, name, time.Until(deadline))
		}
	}
	return c, err
}

// raiseTo moves a counter ahead to floor, should it be below. One that is frozen it awaits.
func (v *server) raiseTo(ctx context.Context, name string, floor uint64) (moved bool, err error) {
	var frozen error
	for {
		moved, low, err := v.tryRaise(ctx, name, floor)
		switch {
		case err != nil && ctx.Err() != nil:
			return false, cmp.Or(frozen, err) // an attempt that was cut off says less than the one before
		case err != nil || low == nil:
			return moved, err
		}
		wait := firstConflict
		if frozen = nil; low.frozen { // else it went on in this moment
			frozen, wait = errPlanChanging, frozenBackoff
		}
		if !pause(ctx, jitter(wait)) {
			return false, fmt.Errorf("raise the counter of %q to %d: %w", name, floor, cmp.Or(frozen, context.Cause(ctx)))
		}
	}
}

// tryRaise is raiseTo that awaits nothing: low is the row where it is frozen, or below floor all the same.
func (v *server) tryRaise(ctx context.Context, name string, floor uint64) (moved bool, low *row, err error) {
	h := v.share()
	seen, err := v.checked(ctx)
	if err != nil {
		return false, nil, err
	}
	highest := seen.max
	floor, ok := h.rest(floor)
	if !ok || floor > highest {
		floor = highest // one of several of which none of the numbers left is
	}
	text, args := v.table.raise()+v.table.underPlan(), []any{floor, name, h.plan} // by another plan the row may not stand there
	var result sql.Result
	for attempt := 1; ; attempt++ {
		v.traceRaise(name, floor, setRaised)
		result, err = v.pool().ExecContext(ctx, text, args...)
		if !isConflict(err) || attempt == maxAttempts || !pause(ctx, jitter(firstConflict<<attempt)) {
			break
		}
	}
	if err != nil {
		return false, nil, fmt.Errorf("raise the counter of %q to %d: %w", name, floor, err)
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err == nil, nil, err
	}
	// It stood above; or it is frozen at the end of its column, and may go on below.
	stored, err := v.find(ctx, name)
	switch {
	case err != nil:
		return false, nil, err
	case stored.plan != h.plan:
		return false, nil, errPlan
	case stored.frozen || stored.id < floor:
		return false, &stored, nil
	}
	return false, nil, nil
}
