package sequence

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// Stats counts since New. Reserved is Given, Cached and Unused together. Only what is Unused, and
// what is in memory at a crash, can be a gap.
type Stats struct {
	Sequences int    // known here
	Cached    uint64 // numbers in memory, not given yet, also while they are given back
	Given     uint64 // numbers handed out
	Reserved  uint64 // numbers reserved, also those of which that is not known
	Unused    stats.UnusedCounts
	Waits     uint64 // takes that found nothing in memory
	Retries   uint64 // reservations repeated after a deadlock or lock timeout
}

// Info is one sequence as it is seen from here.
type Info struct {
	Name string    // as the table spells it, without what it adds to that of a counter
	Kind kind.Kind // the numbers are its counters
	// what the next Take gives here if nobody else reserves first; 0 if none is left, or it is not
	// known
	Next   uint64
	Cached uint64 // numbers left in memory here
	Cache  uint64 // how many are reserved at once now; 0 if it is an ORDER sequence
	Order  bool   // its numbers rise in the order of time, and none is held

	// the lowest of its maximum, its column, its owner's and, if it is JSONSafe, 2^53-1; a warning
	// is due before it
	End  uint64
	Used float64 // how much of the numbers up to End was reserved, in percent
	Rate float64 // numbers per second that are taken here now
	// when End comes at the rate of today; Never if that is far off or not known
	ToEnd     time.Duration
	CachedFor time.Duration // how long Cached lasts at Rate; Never if that is long or not known
	Reserved  time.Time     // when numbers were last reserved here; zero if none were
	// how far from the order of time the numbers may be that all proxies give, if they are used
	// alike; Never as above
	Skew time.Duration

	exact bool // Cache was typed as CACHE n
}

// Never is a time that is too far off to tell.
const Never = cache.Never

// infoOfState returns what an Info says of the state of its numbers.
func infoOfState(name string, st cache.State) Info {
	return Info{
		Name: define.ShownName(name), Next: st.Next, Cached: st.Cached, Cache: st.Size, Order: st.Order,
		End: st.End, Used: st.Used, Rate: st.Rate, ToEnd: st.ToEnd, CachedFor: st.CachedFor, Reserved: st.Reserved, Skew: st.Skew, exact: st.Exact,
	}
}

// Stats returns the counts. It does no I/O.
func (s *Sequences) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, sequences := s.gone, 0
	for _, q := range s.sequences {
		t := q.tally()
		sum.Add(&t)
		if !q.hidden {
			sequences++
		}
		for _, stepped := range q.steps {
			t := stepped.Tally()
			sum.Add(&t)
		}
	}
	for _, table := range s.tickets.All() {
		t := table.Cache().Tally()
		sum.Add(&t)
	}
	lost := s.counters.Lost.Read()
	sum.Unused.Add(&lost)
	return Stats{
		Sequences: sequences,
		Cached:    sum.Cached, Given: sum.Given, Reserved: sum.Reserved + lost.Sum(), Unused: sum.Unused, Waits: sum.Waits,
		Retries: s.counters.Retries.Load(),
	}
}

// List describes all sequences of the table, sorted by name as bytes. It asks the server, for at
// most the allocate timeout; errors are ErrClosed, ErrUnfit, ctx's cause or *UnavailableError. With
// the last one comes what is known of those that were used here, if any was.
func (s *Sequences) List(ctx context.Context) ([]Info, error) {
	if !s.begin() {
		return nil, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	rows, err := s.members.List(r.ctx)
	if err != nil {
		if err = r.failed("", err); errors.As(err, new(*UnavailableError)) {
			return s.listHere(), err
		}
		return nil, err
	}
	rows = s.presentRows(rows)
	proxies := s.countProxies(r.ctx)
	all := make([]Info, 0, len(rows))
	for i := range rows {
		all = append(all, s.infoOf(&rows[i], proxies))
	}
	sortInfos(all)
	return all, nil
}

// Definitions returns what the sequences of the table are, sorted by name as bytes. It asks the
// server, as List does; errors are those of List.
func (s *Sequences) Definitions(ctx context.Context) ([]define.Definition, error) {
	if !s.begin() {
		return nil, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	rows, err := s.members.List(r.ctx)
	if err != nil {
		return nil, r.failed("", err)
	}
	rows = withoutHidden(rows)
	all := make([]define.Definition, 0, len(rows))
	for i := range rows {
		d := rows[i].Def
		d.Name = define.ShownName(rows[i].Name)
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b define.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func sortInfos(all []Info) {
	slices.SortFunc(all, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
}

// listHere describes the sequences that were used here, by what is known without the server. It
// does no I/O.
func (s *Sequences) listHere() []Info {
	s.mu.Lock()
	known := slices.Collect(maps.Values(s.sequences))
	s.mu.Unlock()
	all := make([]Info, 0, len(known))
	for _, q := range known {
		if q.numbers.Ended() != nil || q.hidden {
			continue
		}
		q = s.counting(q)
		i := q.describe(nil, s.cachesOf(q))
		if !i.Order {
			i.Skew = Never // it takes knowing how many proxies there are
		}
		all = append(all, i)
	}
	sortInfos(all)
	return all
}

// countProxies is how many proxies are registered, at least 1.
func (s *Sequences) countProxies(ctx context.Context) int {
	all, err := s.members.Now().Proxies(ctx)
	if err != nil {
		return 1 // not worth an error
	}
	return max(len(all), 1)
}

// infoOf describes the sequence of a row.
func (s *Sequences) infoOf(r *store.Row, proxies int) Info {
	if q := s.names.get([]byte(r.Name)); q != nil && q.numbers.Ended() == nil {
		i := q.describe(r, s.cachesOf(q))
		if i.Skew < Never/time.Duration(proxies) {
			i.Skew *= time.Duration(proxies)
		} else {
			i.Skew = Never
		}
		return i
	}
	ends := cache.LimitsOf(r)
	i := Info{
		Name: define.ShownName(r.Name), Kind: r.Def.Kind, Cache: r.Exact, Order: r.Def.Order, exact: r.Exact > 0,
		End: ends.End, Used: ends.Used(r.Position()), ToEnd: Never, CachedFor: Never, Skew: Never,
	}
	if next, ok := r.Common().Next(r.Position(), r.Max); ok {
		i.Next = next
	}
	if i.Kind.HasClock() {
		clockedInfo(&i, ends, time.Now())
		return i
	}
	if i.Order {
		i.Cache, i.Skew = 0, 0
	}
	if !i.exact {
		p := segment.Pace{Base: s.tuning.Load().CacheSize}
		i.Cache, _ = p.Sizes(r.Max - min(r.Position(), r.Max))
	}
	return i
}
