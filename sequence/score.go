package sequence

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"seqproxy/internal/histogram"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/store"
)

// MaxNamed is how many sequences are counted by their names. What happens to more of them is
// counted together, as [Others].
const MaxNamed = 1000

// Others is how those sequences are called that are counted together.
const Others = "other"

// score counts what becomes of one sequence, apart from what its caches count for themselves: what
// is rare, or takes long anyway. It is safe for concurrent use.
type score struct {
	name string // Others: of all that are not named

	waits    atomic.Uint64 // that have ended
	waited   atomic.Int64  // how long they took together
	unserved atomic.Uint64 // of them, those that ended without a number, and not by their callers
	clocks   atomic.Uint64 // of these, those because of a clock

	attempts [results]atomic.Uint64 // to reserve numbers
	rewinds  atomic.Uint64
	lost     lost

	mu   sync.Mutex
	gone tally // guarded by mu; of caches that were dropped
}

// Result is how one attempt to reserve numbers ended.
type Result uint8

// The results.
const (
	// ReservedOK: the numbers are there.
	ReservedOK Result = iota
	// ReservedConflict: a deadlock, or a lock that was not had in time.
	ReservedConflict
	// ReservedChanged: the sequence, or the plan of the servers, was changed meanwhile, or is being
	// changed.
	ReservedChanged
	// ReservedEnd: so many numbers are not left.
	ReservedEnd
	// ReservedNoRow: there is no such sequence there.
	ReservedNoRow
	// ReservedNoCeiling: in a group, the ceiling has to be raised first, or the node is not the one
	// that holds the sequences.
	ReservedNoCeiling
	// ReservedRewind: the row had gone back.
	ReservedRewind
	// ReservedUnknown: nobody knows whether it was committed.
	ReservedUnknown
	// ReservedUnfit: the server or its table could repeat numbers, and is not used.
	ReservedUnfit
	// ReservedError: it could not be reached, or refused it for another reason.
	ReservedError

	results
)

var resultNames = [results]string{"ok", "conflict", "changed", "end", "no_row", "no_ceiling", "rewind", "unknown", "unfit", "error"}

// String is the result in a word, as metrics have it.
func (r Result) String() string { return resultNames[r] }

// resultOf is what is counted of an attempt.
func resultOf(o store.Outcome, err error) Result {
	switch o {
	case store.OutcomeDone:
		return ReservedOK
	case store.OutcomeWentBack:
		return ReservedRewind
	case store.OutcomeUnknown:
		return ReservedUnknown
	case store.OutcomeNewRule, store.OutcomeRestarted, store.OutcomeOldPlan, store.OutcomeFrozen, store.OutcomeNotHome, store.OutcomeDoubtful:
		return ReservedChanged
	case store.OutcomeNoRoom:
		return ReservedEnd
	case store.OutcomeConflict, store.OutcomeLocked:
		return ReservedConflict
	case store.OutcomeNotHolder, store.OutcomeAtCeiling:
		return ReservedNoCeiling
	}
	switch {
	case errors.Is(err, ErrExhausted):
		return ReservedEnd
	case errors.Is(err, ErrUnknown):
		return ReservedNoRow
	case errors.Is(err, link.ErrUnchosen):
		return ReservedNoCeiling
	case errors.Is(err, ErrUnfit):
		return ReservedUnfit
	}
	return ReservedError
}

// lastResult is that of an attempt which no other follows by itself, as err is still there: then it
// was not somebody's change in that moment, and the ceiling is not to be had.
func lastResult(result Result, o store.Outcome, err error) Result {
	switch {
	case o == store.OutcomeDoubtful:
		return ReservedUnfit
	case result == ReservedNoCeiling:
		return resultOf(o, err)
	}
	return result
}

// ended counts a wait for numbers.
func (l *score) ended(after time.Duration, err error) {
	l.waits.Add(1)
	l.waited.Add(int64(after))
	if unserved(err) {
		l.unserved.Add(1)
	}
	if errors.As(err, new(*snowflake.ClockError)) {
		l.clocks.Add(1)
	}
}

// unserved says whether a wait ended without a number, and not by its caller or because there is no
// such sequence.
func unserved(err error) bool {
	for _, known := range []any{
		new(*UnavailableError), new(*snowflake.ClockError), new(*snowflake.WorkersError), new(*snowflake.WorkerError), new(*snowflake.FullError),
	} {
		if errors.As(err, known) {
			return true
		}
	}
	return errors.Is(err, ErrExhausted) || errors.Is(err, ErrUnfit)
}

// bury keeps the counts of a cache that was dropped, with the numbers that it held.
func (l *score) bury(t *tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone.add(t)
}

// scores are those of all sequences. It is safe for concurrent use.
type scores struct {
	mu     sync.Mutex
	named  map[string]*score // guarded by mu
	others score
}

func newScores() *scores {
	return &scores{named: make(map[string]*score), others: score{name: Others}}
}

// of returns that of a sequence, by the table's spelling, and makes it while there are few. One
// that bears the name of Others is one of them.
func (l *scores) of(name string) *score {
	name = define.ScoredName(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if one := l.named[name]; one != nil {
		return one
	}
	if len(l.named) >= MaxNamed || name == Others {
		return &l.others
	}
	one := &score{name: name}
	l.named[name] = one
	return one
}

// find returns that of a sequence that a cache was made of, or that of the others.
func (l *scores) find(name string) *score {
	name = define.ScoredName(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if one := l.named[name]; one != nil {
		return one
	}
	return &l.others
}

// drop forgets that of a sequence that is gone, so that another one may be named.
func (l *scores) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.named, define.ScoredName(name))
}

// all are those of named sequences, and that of the others.
func (l *scores) all() []*score {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*score, 0, len(l.named)+1)
	for _, one := range l.named {
		all = append(all, one)
	}
	return append(all, &l.others)
}

// trials counts the attempts to reserve on one server.
type trials struct {
	durations [results]histogram.Shared
	rewinds   atomic.Uint64
}
