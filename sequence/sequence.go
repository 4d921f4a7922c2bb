package sequence

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// sequence is one that is known here: the numbers of its counter, and how keys are made of them.
type sequence struct {
	name     string // as the table spells it
	numbers  *cache.Cache
	all      *shared
	kind     kind.Kind
	plain    bool          // the keys are the numbers
	hidden   bool          // it counts for another sequence, and no client reaches it
	clocked  *clocked      // which makes the keys that have a time; nil: the numbers are counters
	periods  *periods      // whose counters give the keys; nil: the numbers here do
	replaced atomic.Uint64 // how often CREATE OR REPLACE here made another sequence of it
	// keys that took no number; they count as reserved and given
	uncounted atomic.Uint64
	// by n, for those who take n numbers at once; guarded by Sequences.mu; see Advance
	steps map[uint64]*cache.Cache
}

// newSequence makes the sequence whose row was read as found. It starts nothing.
func newSequence(all *shared, found store.Row) *sequence {
	q := &sequence{name: found.Name, numbers: cache.New(all.caches, all.from, found), all: all, kind: found.Def.Kind, plain: found.Def.Kind.IsPlain(), hidden: define.IsHidden(found.Name)}
	q.clocked, q.periods = newClocked(q.all, q.kind, q.numbers, found.Position()), newPeriods(q.all, q.kind, q.numbers)
	return q
}

// cachesLocked returns the caches of the counter, that of single numbers first. Sequences.mu is
// held.
func (q *sequence) cachesLocked() []*cache.Cache {
	return append([]*cache.Cache{q.numbers}, slices.Collect(maps.Values(q.steps))...)
}

// shut has the sequence give nothing any more, and tells those who wait why.
func (q *sequence) shut(err error) {
	q.numbers.Shut(err)
	if q.clocked != nil {
		q.clocked.shut(q.numbers.Ended())
	}
}

// bury ends the caches of steps of a sequence that has ended, and returns the counts of all its
// caches. Sequences.mu is held.
func (q *sequence) bury() stats.Tally {
	t := q.numbers.Bury()
	switch {
	case q.clocked != nil:
		t = q.clocked.tally()
	case q.countsTicks():
		t = stats.Tally{}
	}
	made := q.uncounted.Load()
	t.Reserved, t.Given = t.Reserved+made, t.Given+made
	for _, stepped := range q.steps {
		stepped.Shut(&NameError{Name: q.name, Err: ErrUnknown})
		b := stepped.Bury()
		t.Add(&b)
	}
	q.steps = nil
	return t
}

// pass gives up the numbers up to n, of all its caches. Sequences.mu is held.
func (q *sequence) pass(n uint64) {
	for _, cached := range q.steps {
		cached.Pass(n)
	}
	if q.numbers.Pass(n) && q.clocked != nil {
		q.clocked.keys.PassOver(n)
	}
}

// revise brings its caches in line with the options as they are now. Sequences.mu is held.
func (q *sequence) revise(r *store.Row) {
	for _, cached := range q.steps {
		cached.Revise(r)
	}
	if q.numbers.Revise(r) && q.clocked != nil {
		q.clocked.keys.PassOver(r.Past)
	}
}

// keepUp has what is in memory keep up with how it is used. Sequences.mu is held, and Close has not
// begun.
func (q *sequence) keepUp(now time.Time) {
	switch {
	case q.clocked != nil:
		q.clocked.keys.KeepUp()
	case q.periods != nil:
		q.periods.keepUp()
	default:
		q.numbers.KeepUp(now)
	}
	for _, cached := range q.steps {
		cached.KeepUp(now)
	}
}

// tally counts what was not taken in steps.
func (q *sequence) tally() stats.Tally {
	switch {
	case q.clocked != nil:
		return q.clocked.tally()
	case q.countsTicks():
		return stats.Tally{}
	}
	t, made := q.numbers.Tally(), q.uncounted.Load()
	t.Reserved, t.Given = t.Reserved+made, t.Given+made
	return t
}

// info describes the sequence, but for its steps. r is its row, nil if that was not read.
func (q *sequence) info(r *store.Row) Info {
	now := time.Now()
	if q.clocked != nil {
		q.clocked.note(now)
	}
	i := infoOfState(q.name, q.numbers.Look(r))
	i.Kind, i.ToEnd = q.kind, q.untilReset(i.ToEnd)
	if q.clocked != nil {
		q.clocked.info(&i, now)
	}
	return i
}

// report tells how the sequence stands. Unlike info it changes nothing.
func (q *sequence) report(st *SequenceStats, now time.Time) {
	if q.clocked != nil {
		q.clocked.note(now)
	}
	st.report(q.numbers.State(now))
	st.Kind, st.ToEnd = q.kind, q.untilReset(st.ToEnd)
	if q.clocked != nil {
		q.clocked.report(st)
	}
}

// givesNow reports whether numbers are in memory, and if not, why none can be reserved, as far as
// it is known.
func (q *sequence) givesNow() (cached bool, err error) {
	if q.clocked != nil {
		if cached, err = q.clocked.givesNow(); cached || err != nil {
			return cached, err
		}
	}
	return q.numbers.GivesNow()
}
