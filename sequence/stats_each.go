package sequence

import (
	"cmp"
	"slices"
	"time"

	"seqproxy/internal/histogram"
	"seqproxy/sequence/cache"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/stats"
)

// SequenceStats is what is known of one sequence without asking, and what was counted since New, or
// since it was made. Of [Others] there are only counts. It is its reader's own.
type SequenceStats struct {
	Name string // as the table spells it; of a ticket table "schema.table"

	Cached   uint64 // numbers in memory
	Given    uint64 // numbers handed out
	Reserved uint64 // numbers; as in Stats
	Unused   stats.UnusedCounts
	Attempts [stats.Results]uint64 // to reserve
	Rewinds  uint64                // times that its row was found to have gone back

	Waits  uint64        // takes that found nothing in memory and have ended
	Waited time.Duration // by all of them
	// of them, those that ended without a number, and not because their callers had gone
	Unserved uint64

	Kind          kind.Kind
	ClockRefusals uint64   // of Unserved, those because of a clock
	ClockSteps    uint64   // of the machine's clock, as SNOWFLAKE has seen
	Workers       []uint64 // of SNOWFLAKE, whose ticks are reserved; the one in use first

	Order bool
	Cycle bool   // it begins again at its end
	Size  uint64 // how many numbers are reserved at once now; 0 with Order
	// how much of the numbers up to the end was reserved, 0 to 1, by what this process has seen
	Used   float64
	Epoch  uint64 // how often it began again, as a time
	HomeUp bool   // with Order: the server that gives its numbers can be used

	// how long Cached lasts at the rate of now; Never if that is long or not known, as with Order
	CachedFor time.Duration
	// how far from the order of time this process's numbers may be; Never if it is not used
	Skew time.Duration
	// when the end comes at the rate of today; Never if that is far off or not known
	ToEnd time.Duration
}

// ServerStats is what is known of one sequence server without asking, and what was counted of it
// since New.
type ServerStats struct {
	Server string // its address; of a group those of all nodes
	Node   string // the address that numbers are reserved at; "" if that is not known
	// Up: nothing is known that keeps numbers from being reserved there.
	Up        bool
	Err       error                              // why not
	Durations [stats.Results]histogram.Histogram // of attempts to reserve, by their result
	Rewinds   uint64                             // rows that were found to have gone back
}

// PlanNumber is that of the plan of the sequence servers, 0 if there is none or it is not known
// yet. It does no I/O.
func (s *Sequences) PlanNumber() uint64 { return s.members.Now().Number }

// StateFailing says whether what has to be remembered in the state directory cannot be written, for
// which no numbers are reserved. kept is false if there is no such directory. It does no I/O.
func (s *Sequences) StateFailing() (failing, kept bool) {
	return s.state.Failing()
}

// ServerStats returns what is known of the servers in use, by position. It does no I/O.
func (s *Sequences) ServerStats() []ServerStats {
	members := s.members.Now().Members
	all := make([]ServerStats, 0, len(members))
	for _, v := range members {
		st := ServerStats{Server: v.Name(), Err: v.Unusable()}
		st.Up = st.Err == nil
		st.Durations, st.Rewinds = v.Trials.Read()
		switch now := v.Current(); {
		case now != nil:
			st.Node = now.Addr
		case !v.Grouped():
			st.Node = v.Name()
		}
		all = append(all, st)
	}
	return all
}

// BySequence returns the counts of each named sequence, sorted by name, and behind them those of
// all others. It does no I/O, and has no sequence fetch numbers.
func (s *Sequences) BySequence() []SequenceStats {
	now := time.Now()
	by := make(map[*stats.Score]*SequenceStats)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.counters.Scores.All() {
		by[one] = countedBy(one.Read())
	}
	count := func(of *stats.Score, t stats.Tally) *SequenceStats {
		st := by[of]
		if st == nil { // a sequence was dropped that had the name of a ticket table
			st = by[&s.counters.Scores.Others]
		}
		st.count(t)
		return st
	}
	for _, q := range s.sequences {
		if q.countsTicks() {
			continue
		}
		if st := count(q.numbers.Score, q.tally()); st.Name != stats.Others && !q.hidden {
			s.counting(q).report(st, now)
			st.Epoch = s.members.Marks.Epoch(q.name)
			st.HomeUp = st.Order && s.members.HomeUp(q.name)
		}
	}
	for _, q := range s.sequences {
		for _, stepped := range q.steps {
			if st := count(stepped.Score, stepped.Tally()); st.Name != stats.Others {
				in := SequenceStats{CachedFor: Never, Skew: Never, ToEnd: Never}
				in.report(stepped.State(now))
				st.fold(&in)
			}
		}
	}
	for _, t := range s.tickets.All() {
		cached := t.Cache()
		if st := count(cached.Score, cached.Tally()); st.Name != stats.Others {
			st.report(cached.State(now))
		}
	}
	all := make([]SequenceStats, 0, len(by))
	for _, st := range by {
		all = append(all, *st)
	}
	slices.SortFunc(all, func(a, b SequenceStats) int {
		return cmp.Or(cmp.Compare(asNumber(a.Name == stats.Others), asNumber(b.Name == stats.Others)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// countedBy are the stats of what a score has counted.
func countedBy(c *stats.Counts) *SequenceStats {
	st := &SequenceStats{
		Name: c.Name, Attempts: c.Attempts, Rewinds: c.Rewinds,
		Waits: c.Waits, Waited: c.Waited, Unserved: c.Unserved, ClockRefusals: c.ClockRefusals,
		Unused: c.Lost, Reserved: c.Lost.Sum(),
		CachedFor: Never, Skew: Never, ToEnd: Never,
	}
	st.count(c.Gone)
	return st
}

// count adds what one of its caches has counted.
func (st *SequenceStats) count(t stats.Tally) {
	st.Reserved += t.Reserved
	st.Cached += t.Cached
	st.Given += t.Given
	st.Unused.Add(&t.Unused)
}

// report fills in the state of a sequence's numbers.
func (st *SequenceStats) report(is cache.State) {
	st.Order, st.Cycle, st.Used = is.Order, is.Cycle, is.Used/100
	if !is.Cycle {
		st.ToEnd = is.ToEnd
	}
	if is.Order {
		st.Skew = 0
		return
	}
	st.Size, st.CachedFor, st.Skew = is.Size, is.CachedFor, is.Skew
}

func asNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}
