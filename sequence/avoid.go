package sequence

import (
	"context"
	"errors"
	"slices"
	"time"

	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// Avoid is called before somebody uses numbers that he has chosen himself. They are not given any
// more. What is in memory here is taken out of it. A number above all that this proxy has reserved,
// or moved the counter to, moves the counter. A counter below the number goes to it and a segment
// further, so an import of rising numbers moves it once for a segment. With a typed CACHE n it goes
// to the number alone. Any other counter goes on by one number, in steps by one step, so that
// nobody puts numbers back below it.
//
// Numbers that other proxies have in memory are not known here. A number above the sequence's
// maximum changes nothing. Of several sequence servers all that can be reached are moved. Where
// keys do not rise with their counter, no counter is moved.
//
// Errors are those of Take. numbers is not kept, and may be in any order; 0 is no number.
func (s *Sequences) Avoid(ctx context.Context, name []byte, numbers []uint64) error {
	deadline := time.Now().Add(s.patience(ctx))
	for again := true; ; again = false {
		c, err := s.findOrCreate(ctx, name, deadline)
		if err != nil {
			return err
		}
		if !c.kind.IsPlain() {
			if c.kind.HasClock() {
				return nil // no two keys are of one tick, worker and counter
			}
			if c.periods != nil {
				c.periods.avoid(numbers)
				return nil // as below
			}
			numbers = c.countersOf(numbers)
			if !c.kind.Rises() {
				takeOut(s.cachesOf(c), numbers)
				return nil // the counter of a key of somebody else's may be anywhere
			}
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
	if highest <= takeOut(caches, numbers) {
		return nil
	}
	// While this is held no reservation is in flight: the caches have all that was reserved here.
	r, stop := s.requestWithin(ctx, time.Until(deadline))
	defer stop()
	if err := c.reserving.Acquire(r.ctx); err != nil {
		return r.failed(c.name, err)
	}
	defer c.reserving.Release()
	if highest <= takeOut(caches, numbers) {
		return nil
	}
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	for {
		err := s.moveAbove(r.ctx, c, highest)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, store.OutcomeRestarted):
			return r.failed(c.name, err)
		}
	}
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

// takeOut takes numbers out of what the caches of a counter hold, and returns how far the counter
// is spent. It looks at that twice. What one cache reserves while another one is looked at counts
// the next time, and so does what is put back meanwhile.
func takeOut(caches []*cache, numbers []uint64) uint64 {
	before, spent := uint64(0), uint64(0)
	for _, c := range caches {
		c.mu.Lock()
		before = max(before, c.spent)
		c.mu.Unlock()
	}
	for i, c := range caches {
		c.mu.Lock()
		for _, n := range numbers {
			switch {
			case !c.holdsLocked(n):
			case i == 0:
				c.cutLocked(n)
			default:
				c.discardLocked(stats.UnusedChosen) // its numbers are good in whole steps only
			}
		}
		spent = max(spent, c.spent)
		c.mu.Unlock()
	}
	return min(before, spent)
}

func (c *cache) holdsLocked(n uint64) bool {
	return c.cur.Has(n) || slices.ContainsFunc(c.queue, func(s segment.Segment) bool { return s.Has(n) })
}

// cutLocked takes n, which is held, out of what is held. Where that would leave too many pieces,
// the numbers of its segment that lie before it are given up.
func (c *cache) cutLocked(n uint64) {
	at := slices.IndexFunc(c.queue, func(s segment.Segment) bool { return s.Has(n) })
	whole := &c.cur
	if at >= 0 {
		whole = &c.queue[at]
	}
	before, behind := whole.Around(n)
	lost := uint64(1)
	if before.Remaining() > 0 && behind.Remaining() > 0 && len(c.queue) >= maxQueued {
		lost += before.Remaining()
		before = segment.Segment{}
	}
	c.cached -= lost
	c.gaps[stats.UnusedChosen] += lost
	if *whole = before; before.Remaining() == 0 {
		*whole = behind
	} else if behind.Remaining() > 0 {
		c.queue = slices.Insert(c.queue, at+1, behind)
	}
	c.queue = slices.DeleteFunc(c.queue, func(s segment.Segment) bool { return s.Remaining() == 0 })
	if c.cur.Remaining() == 0 {
		c.advanceLocked(1)
	}
}

// moveAbove moves a counter to n and a segment further. OutcomeRestarted: the sequence may have
// begun again meanwhile, and the counter may be below. c.reserving is held.
func (s *Sequences) moveAbove(ctx context.Context, c *cache, n uint64) error {
	c.mu.Lock()
	err, generation, end, floor := c.end, c.generation, c.max, n
	if step := max(c.rule.Step, 1); c.exact == 0 {
		// near the end of the sequence less than a segment
		floor += min(c.size, (end-min(n, end))/segment.CeilingShare/step) * step
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	at, err := s.servers.raiseTo(ctx, c.name, n, floor, end)
	s.takeNote()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, ErrUnknown):
		c.goneLocked(err)
		return err
	case err != nil:
		return err
	case c.generation != generation:
		return store.OutcomeRestarted
	}
	c.top, c.spent = max(c.top, at), max(c.spent, at)
	return nil
}

// Step returns how far apart the numbers of a sequence are, its INCREMENT. Errors are those of
// Take.
func (s *Sequences) Step(ctx context.Context, name []byte) (uint64, error) {
	c, err := s.findOrCreate(ctx, name, time.Now().Add(s.patience(ctx)))
	if err != nil {
		return 0, err
	}
	if !c.kind.Steady() {
		return 0, c.refused("several rows that are filled in", eachAlone)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.rule.Step, 1), nil
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
