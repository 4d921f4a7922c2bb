package sequence

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// SetValue has a sequence go on behind n, or at n itself if it was not used, as MariaDB's SETVAL
// does; it only raises. ok is false, and nothing has changed, if this proxy has given n (or the
// number that would be next) already. Lower numbers that are in memory are given up here at once,
// and by other proxies within a second, whatever fails over (see passedForGood). Errors are those
// of Drop.
func (s *Sequences) SetValue(ctx context.Context, name []byte, n uint64, used bool) (value uint64, ok bool, err error) {
	if !s.begin() {
		return 0, false, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	q, err := s.find(r.ctx, name, s.patience(r.ctx))
	if err != nil {
		return 0, false, err
	}
	switch {
	case q.clocked != nil:
		return 0, false, q.refused("SETVAL", ofTime)
	case !q.kind.Counts():
		return 0, false, q.refused("SETVAL", ofNoCounter)
	case !q.kind.IsPlain():
		return 0, false, q.refused("SETVAL", "ALTER SEQUENCE ... RESTART WITH n raises its counter")
	}
	changed, ok, err := s.setValue(r.ctx, q, n, used)
	if err == nil && ok {
		err = s.passedForGood(r.ctx, &changed)
	}
	if err != nil {
		return 0, false, r.failed(q.name, err)
	}
	return n, ok, nil
}

func (s *Sequences) setValue(ctx context.Context, q *sequence, n uint64, used bool) (changed store.Row, ok bool, err error) {
	// A reservation that is under way meanwhile would be of no use, and leave a gap behind n.
	if err := q.numbers.Reserving.Acquire(ctx); err != nil {
		return store.Row{}, false, err
	}
	defer q.numbers.Reserving.Release()
	if changed, ok, err = s.members.SetValue(ctx, q.name, n, used, q.numbers.Next()); ok && err == nil {
		s.obeyHere(ctx, &changed)
	}
	return changed, ok, err
}

// Raise has a sequence go on above floor, if it would not by itself: for numbers that are in use
// without having been given by it, as a column may hold them. Lower numbers that proxies have in
// memory are given up, as by SetValue. It reports whether the counter was below. A floor above the
// sequence's maximum is nothing that it could give, and changes nothing. Errors are those of
// SetValue.
func (s *Sequences) Raise(ctx context.Context, name []byte, floor uint64) (raised bool, err error) {
	if !s.begin() {
		return false, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	q, err := s.find(r.ctx, name, s.patience(r.ctx))
	if err != nil {
		return false, err
	}
	changed, raised, err := s.raise(r.ctx, q, floor)
	if err == nil && changed.Name != "" {
		err = s.passedForGood(r.ctx, &changed)
	}
	if err != nil {
		return false, r.failed(q.name, err)
	}
	return raised, nil
}

func (s *Sequences) raise(ctx context.Context, q *sequence, floor uint64) (changed store.Row, raised bool, err error) {
	if err := q.numbers.Reserving.Acquire(ctx); err != nil {
		return store.Row{}, false, err
	}
	defer q.numbers.Reserving.Release()
	if changed, raised, err = s.members.RaiseAbove(ctx, q.name, floor); err == nil {
		s.obeyHere(ctx, &changed)
	}
	return changed, raised, err
}

// Flush gives up the numbers that this proxy has in memory, of one sequence or ticket table (see
// [ticket.Tables.Named]) or, if name is nil, of all. Those of sequences that nobody has reserved
// after are given back; the others are a gap. Errors are those of Drop.
func (s *Sequences) Flush(ctx context.Context, name []byte) error {
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	only := ""
	if name != nil {
		q, err := s.find(r.ctx, name, s.patience(r.ctx))
		if table := s.tickets.Named(string(name)); table != nil && errors.Is(err, ErrUnknown) {
			table.Flush()
			return nil
		}
		if err != nil {
			return err
		}
		only = q.name
	}
	s.mu.Lock()
	var caches []*cache.Cache
	for known, q := range s.sequences {
		if only == "" || known == only || define.IsPeriod(known) && define.BaseRow(known) == only {
			caches = append(caches, q.cachesLocked()...)
		}
	}
	s.mu.Unlock()
	if only == "" {
		for _, table := range s.tickets.All() {
			table.Flush()
		}
	}
	group, within := errgroup.WithContext(r.ctx)
	group.SetLimit(s.opts.Servers[0].MaxConns)
	for _, c := range caches {
		group.Go(func() error { return s.flush(within, c) })
	}
	if err := group.Wait(); err != nil {
		return r.failed(only, err)
	}
	return nil
}

// flush gives up what c holds. While the upper end is given back nothing is reserved, so that what
// is reserved next may begin at it again.
func (s *Sequences) flush(ctx context.Context, c *cache.Cache) error {
	if err := c.Reserving.Acquire(ctx); err != nil {
		return err
	}
	defer c.Reserving.Release()
	epoch := s.epoch(c.Name)
	seg := c.FlushUnused()
	if seg.Remaining() == 0 {
		return nil
	}
	mark := s.members.Marks.Lower(c.Name, seg)
	done, err := s.reserver.GiveBack(ctx, c.Name, epoch, seg)
	if done {
		c.Settle(stats.UnusedReturned, seg.Remaining())
		s.members.Marks.KeepLowered(c.Name)
		c.Returned(seg.Next() - 1)
		return nil
	}
	if errors.Is(err, link.ErrOutcome) {
		// the row may stand there, which is no row gone back; and nobody has the numbers
		s.members.Marks.KeepLowered(c.Name)
		c.Returned(seg.Next() - 1)
	} else {
		s.members.Marks.UndoLower(c.Name, mark)
	}
	c.Settle(stats.UnusedFlush, seg.Remaining())
	if err != nil {
		return fmt.Errorf("give back numbers of sequence %q, which are a gap now: %w", c.Name, err)
	}
	return nil
}
