package sequence

import (
	"context"
	"errors"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/cache"
	"seqproxy/sequence/store"
)

// Avoid keeps numbers that a client has chosen itself from being given: call it before the client
// uses them. It takes them out of memory here. If the highest is above all that this proxy has
// reserved, or moved the counter to, it moves the counter. A counter below the number goes to it
// and a segment further, so an import of rising numbers moves it once for each segment. With a
// typed CACHE n it goes to the number alone. Any other counter goes on by one number (in steps: one
// step), so that nobody puts numbers back below it.
//
// Numbers that other proxies have in memory are not known here. A number above the sequence's
// maximum changes nothing, nor does one of SHARD BITS by which the counter would pass half. Of
// several sequence servers all that can be reached are moved. Where keys do not rise with their
// counter, no counter is moved.
//
// Errors are those of Take. numbers is not kept, and may be in any order; 0 is no number.
func (s *Sequences) Avoid(ctx context.Context, name []byte, numbers []uint64) error {
	deadline := time.Now().Add(s.patience(ctx))
	for again := true; ; again = false {
		q, err := s.findOrCreate(ctx, name, deadline)
		if err != nil {
			return err
		}
		if s.takeOut(q, numbers) == 0 {
			return nil
		}
		err = s.moveFor(ctx, q, numbers, deadline)
		if away := new(UnavailableError); errors.As(err, &away) {
			away.Chosen = true
		}
		if !again || !errors.Is(err, ErrUnknown) {
			return err
		}
		s.forget(name, q)
	}
}

// AvoidHere takes numbers out of memory, as Avoid does. enough reports whether Avoid would do no
// more than that, and not move the counter.
func (s *Sequences) AvoidHere(ctx context.Context, name []byte, numbers []uint64) (enough bool, err error) {
	q, err := s.findOrCreate(ctx, name, time.Now().Add(s.patience(ctx)))
	if err != nil {
		return false, err
	}
	return s.takeOut(q, numbers) == 0, nil
}

// takeOut takes numbers out of memory. If the counter has to move above some of them, it returns
// the highest of these, as a counter; else 0.
func (s *Sequences) takeOut(q *sequence, numbers []uint64) (highest uint64) {
	if !q.kind.IsPlain() {
		if q.kind.HasClock() {
			return 0 // no two keys are of one tick, worker and counter
		}
		if q.periods != nil {
			q.periods.avoid(numbers)
			return 0 // as below
		}
		numbers = q.countersOf(numbers)
	}
	spent := takeOutOf(s.cachesOf(q), numbers)
	if !q.kind.Rises() {
		return 0 // the counter of a key of somebody else's may be anywhere
	}
	end := min(q.numbers.Highest(), q.kind.LastOwn(spent))
	for _, n := range numbers {
		if n <= end { // above its maximum the sequence gives nothing
			highest = max(highest, n)
		}
	}
	if highest <= spent {
		return 0
	}
	return highest
}

// moveFor moves a counter above numbers that a client has chosen.
func (s *Sequences) moveFor(ctx context.Context, q *sequence, numbers []uint64, deadline time.Time) error {
	// While this is held no reservation is in flight: the caches have all that was reserved here.
	r, stop := s.requestWithin(ctx, time.Until(deadline))
	defer stop()
	if err := q.numbers.Reserving.Acquire(r.ctx); err != nil {
		return r.failed(q.name, err)
	}
	defer q.numbers.Reserving.Release()
	highest := s.takeOut(q, numbers)
	if highest == 0 {
		return nil
	}
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	for {
		err := s.moveAbove(r.ctx, q, highest)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, store.OutcomeRestarted):
			return r.failed(q.name, err)
		}
	}
}

// cachesOf returns the caches of q's counter, that of single numbers first.
func (s *Sequences) cachesOf(q *sequence) []*cache.Cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	return q.cachesLocked()
}

// takeOutOf takes numbers out of what the caches of a counter hold, and returns how far the counter
// is spent. It looks at that twice. What one cache reserves while another one is looked at counts
// the next time, and so does what is put back meanwhile.
func takeOutOf(caches []*cache.Cache, numbers []uint64) uint64 {
	before, spent := uint64(0), uint64(0)
	for _, c := range caches {
		before = max(before, c.Spent())
	}
	for i, c := range caches {
		spent = max(spent, c.TakeOut(numbers, i > 0))
	}
	return min(before, spent)
}

// moveAbove moves a counter to n and a segment further. OutcomeRestarted: the sequence may have
// begun again meanwhile, and the counter may be below. The counter's lock is held.
func (s *Sequences) moveAbove(ctx context.Context, q *sequence, n uint64) error {
	m, err := q.numbers.ToMoveAbove(n)
	if err != nil {
		return err
	}
	at, err := s.members.RaiseTo(ctx, q.name, n, m.Floor, m.End)
	s.takeNote()
	return q.numbers.Moved(m, at, err)
}

// Step returns how far apart the numbers of a sequence are, its INCREMENT. Errors are those of
// Take.
func (s *Sequences) Step(ctx context.Context, name []byte) (uint64, error) {
	q, err := s.findOrCreate(ctx, name, time.Now().Add(s.patience(ctx)))
	if err != nil {
		return 0, err
	}
	if !q.kind.Steady() {
		return 0, q.refused("several rows that are filled in", eachAlone)
	}
	return q.numbers.Increment(), nil
}

// findOrCreate is find for a sequence that Take would create.
func (s *Sequences) findOrCreate(ctx context.Context, name []byte, deadline time.Time) (*sequence, error) {
	q, err := s.find(ctx, name, time.Until(deadline))
	if errors.Is(err, ErrUnknown) && s.tuning.Load().CreateUnknown {
		waiting, stop := context.WithDeadlineCause(ctx, deadline, await.ErrPatience)
		defer stop()
		if _, err = s.createUnknown(waiting, string(name)); err == nil {
			q, err = s.find(ctx, name, time.Until(deadline))
		}
	}
	return q, err
}
