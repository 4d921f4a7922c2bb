package stats

import (
	"sync"
	"sync/atomic"
	"time"

	"seqproxy/sequence/define"
)

// MaxNamed is how many sequences are counted by their names. Further ones are counted together, as
// [Others].
const MaxNamed = 1000

// Others is the name of the sequences that are counted together.
const Others = "other"

// Score counts for one sequence what its caches do not count themselves: what is rare, or takes
// long anyway. It is safe for concurrent use.
type Score struct {
	name string // Others: for all that are not named

	waits    atomic.Uint64 // that have ended
	waited   atomic.Int64  // how long they took together
	unserved atomic.Uint64 // of them, those without a number, other than by their callers
	clocks   atomic.Uint64 // of these, those because of a clock

	attempts [Results]atomic.Uint64 // attempts to reserve numbers
	rewinds  atomic.Uint64
	lost     Lost

	mu   sync.Mutex
	gone Tally // guarded by mu; of caches that were dropped
}

// End is how a wait for numbers ended.
type End uint8

// The ends.
const (
	// Served: with a number, or by the caller, or because there is no such sequence.
	Served End = iota
	// Unserved: without a number.
	Unserved
	// ByClock: without a number, because of a clock.
	ByClock
)

// Ended counts a wait for numbers.
func (l *Score) Ended(after time.Duration, end End) {
	l.waits.Add(1)
	l.waited.Add(int64(after))
	switch end {
	case Served:
	case ByClock:
		l.clocks.Add(1)
		fallthrough
	case Unserved:
		l.unserved.Add(1)
	}
}

// Counts are the counts of a score.
type Counts struct {
	Name string // of the sequence, or Others

	Waits                   uint64
	Waited                  time.Duration
	Unserved, ClockRefusals uint64

	Attempts [Results]uint64
	Rewinds  uint64
	Lost     UnusedCounts
	Gone     Tally
}

// Read returns the counts.
func (l *Score) Read() *Counts {
	c := &Counts{
		Name: l.name, Waits: l.waits.Load(), Waited: time.Duration(l.waited.Load()), Unserved: l.unserved.Load(), ClockRefusals: l.clocks.Load(),
		Rewinds: l.rewinds.Load(), Lost: l.lost.Read(),
	}
	for i := range c.Attempts {
		c.Attempts[i] = l.attempts[i].Load()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Gone = l.gone
	return c
}

// Bury keeps the counts of a cache that was dropped, with its cached numbers.
func (l *Score) Bury(t *Tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone.Add(t)
}

// Scores are those of all sequences. It is safe for concurrent use.
type Scores struct {
	mu     sync.Mutex
	named  map[string]*Score // guarded by mu
	Others Score
}

func NewScores() *Scores {
	return &Scores{named: make(map[string]*Score), Others: Score{name: Others}}
}

// Of returns the score of a sequence, by the table's spelling, and makes it while there are few. A
// sequence with the name of Others is one of them.
func (l *Scores) Of(name string) *Score {
	name = define.ScoredName(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if one := l.named[name]; one != nil {
		return one
	}
	if len(l.named) >= MaxNamed || name == Others {
		return &l.Others
	}
	one := &Score{name: name}
	l.named[name] = one
	return one
}

// Find returns the score of a sequence that has a cache, or that of the others.
func (l *Scores) Find(name string) *Score {
	name = define.ScoredName(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if one := l.named[name]; one != nil {
		return one
	}
	return &l.Others
}

// Drop forgets the score of a dropped sequence, so that another one may be named.
func (l *Scores) Drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.named, define.ScoredName(name))
}

// All returns the scores of named sequences, and that of the others.
func (l *Scores) All() []*Score {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*Score, 0, len(l.named)+1)
	for _, one := range l.named {
		all = append(all, one)
	}
	return append(all, &l.Others)
}
