package sequence

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Stats counts since New. Numbers are gaps only if they are Skipped or Lost, or in memory at a crash.
type Stats struct {
	Sequences    int    // known here
	Held         uint64 // numbers in memory, not given yet
	Given        uint64 // numbers handed out
	Reserved     uint64 // numbers reserved
	Reservations uint64 // segments reserved
	Prefetches   uint64 // reservations begun while nobody waited
	Waits        uint64 // takes that found nothing in memory
	Retries      uint64 // reservations repeated after a deadlock or lock timeout
	Errors       uint64 // requests to the sequence server that failed
	Skipped      uint64 // numbers passed over because a run did not fit or CACHE n was lowered
	Lost         uint64 // numbers whose reservation had an unknown outcome, never used
	Rewinds      uint64 // reservations refused because the row had gone back
	Returned     uint64 // numbers given back by Close
}

// Info is one sequence as it is seen from here.
type Info struct {
	Name   string // as the table spells it
	Next   uint64 // what the next Take gives here if nobody else reserves first; 0 if none is left
	Cached uint64 // numbers left in memory here
	Cache  uint64 // how many are reserved at once now

	exact bool // Cache was typed as CACHE n
}

// tally is the part of Stats that each cache counts for itself.
type tally struct {
	held, given, skipped, waits, fetches uint64
}

func (t *tally) add(o tally) {
	t.given += o.given
	t.skipped += o.skipped
	t.waits += o.waits
	t.fetches += o.fetches
	// held is not kept: what a dropped sequence held is not in memory any more
}

func (c *cache) tally() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return tally{held: c.held, given: c.given, skipped: c.skipped, waits: c.waits, fetches: c.fetches}
}

// info describes the cache. id is the row's value, 0 if it was not read.
func (c *cache) info(id uint64) Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	low := c.low
	c.replan(time.Now())
	if c.given == 0 {
		c.low = low // looking must not make an unused sequence fetch
	}
	i := Info{Name: c.name, Cached: c.held, Cache: c.size, exact: c.exact > 0}
	if i.Next = c.cur.Next(); i.Next == 0 && len(c.queue) > 0 {
		i.Next = c.queue[0].Next()
	}
	if highest := max(id, c.top); i.Next == 0 && highest < c.max {
		i.Next = highest + 1
	}
	return i
}

// Stats returns the counts. It does no I/O.
func (s *Sequences) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.gone
	for _, c := range s.caches {
		t := c.tally()
		sum.add(t)
		sum.held += t.held
	}
	for _, c := range s.steps {
		t := c.tally()
		sum.add(t)
		sum.held += t.held
	}
	return Stats{
		Sequences: len(s.caches),
		Held:      sum.held, Given: sum.given, Skipped: sum.skipped, Waits: sum.waits, Prefetches: sum.fetches,
		Reserved: s.counters.reserved.Load(), Reservations: s.counters.reservations.Load(),
		Retries: s.counters.retries.Load(), Errors: s.counters.errors.Load(), Lost: s.counters.lost.Load(),
		Rewinds: s.counters.rewinds.Load(), Returned: s.counters.returned.Load(),
	}
}

// List describes all sequences of the table, sorted by name as bytes. It asks the server; errors are ErrClosed, ErrUnfit, ctx's
// cause or *UnavailableError.
func (s *Sequences) List(ctx context.Context) ([]Info, error) {
	if !s.begin() {
		return nil, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	rows, err := s.server.list(r.ctx)
	if err != nil {
		return nil, r.failed("", err)
	}
	all := make([]Info, 0, len(rows))
	for _, r := range rows {
		if c := s.names.get([]byte(r.name)); c != nil && c.ended() == nil {
			all = append(all, c.info(r.id))
			continue
		}
		i := Info{Name: r.name, Cache: r.exact, exact: r.exact > 0}
		if r.id < r.max {
			i.Next = r.id + 1
		}
		if !i.exact {
			p := pace{base: s.opts.CacheSize}
			i.Cache, _ = p.plan(r.max - min(r.id, r.max))
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}
