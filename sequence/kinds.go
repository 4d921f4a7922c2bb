package sequence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/store"
)

// This file is how a sequence has a kind of keys. What reserves and gives numbers knows nothing of
// kinds: it gives counters, of which Sequences.take makes keys. The counter of a sequence `photos`
// with a kind has the row `photos#counter`, so that an application which counts in the table itself
// finds no row, and would not use counters as keys. A kind never changes under one name, not even
// after DROP: two functions of one counter could give one key.

// withoutHidden leaves out the rows of workers and periods, and plain rows beside those of
// counters: see either of [store.Table].
func withoutHidden(rows []store.Row) []store.Row {
	rows = slices.DeleteFunc(rows, func(r store.Row) bool { return define.IsHidden(r.Name) })
	counters := make(map[string]bool)
	for i := range rows {
		if define.IsCounter(rows[i].Name) {
			counters[define.ShownName(rows[i].Name)] = true
		}
	}
	if len(counters) == 0 {
		return rows
	}
	return slices.DeleteFunc(rows, func(r store.Row) bool { return counters[r.Name] })
}

// eachAlone is the way out where several numbers would be asked for at once.
const eachAlone = "write NEXTVAL in each row, or ask for one number at a time, as the next key is not this one and 1"

// refused is the error for something that is not done for the sequence.
func (q *sequence) refused(what, wayOut string) error {
	return &define.KindError{Sequence: define.ShownName(q.name), Kind: q.kind, Refused: what, WayOut: wayOut}
}

// drawn are numbers that were taken, and what the clock said, where keys have a date.
type drawn struct {
	first, step uint64
	at          time.Time
}

// counters takes counters for n keys; of SNOWFLAKE, the keys. A deadline of zero is that of the
// caller's patience.
func (q *sequence) counters(ctx context.Context, n uint64, deadline time.Time) (took drawn, err error) {
	switch {
	case q.plain:
	case q.clocked != nil:
		took.first, took.step, err = q.clocked.take(ctx, n, deadline)
		return took, err
	case q.periods != nil:
		return q.periods.take(ctx, deadline)
	case !q.kind.Counts():
		return drawn{step: 1}, q.makeOne()
	case q.kind.Dated():
		took.at = q.all.clock.wall()
	}
	took.first, took.step, err = q.numbers.Take(ctx, n, deadline)
	return took, err
}

// key is the key of the first of several counters that were taken together. They share a shard. It
// is the counter where keys are texts.
func (q *sequence) key(took drawn) (uint64, error) {
	counter := took.first
	switch {
	case q.kind.IsPlain() || q.kind.IsText():
		return counter, nil
	case q.kind.Dated():
		key, err := q.kind.Number(counter, took.at)
		return key, noKey(q.name, err)
	case q.kind.Name() == kind.ShardBits:
		return q.kind.Key(counter, rand.Uint64()), nil
	}
	return q.kind.Key(counter, 0), nil
}

// text is the key of a counter where keys are texts.
func (q *sequence) text(took drawn) (string, error) {
	text, err := q.kind.Text(took.first, took.at)
	return text, noKey(q.name, err)
}

// noKey tells of which sequence, by its row, a counter has no key.
func noKey(row string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sequence %q: %w", define.ShownName(row), err)
}

// makeOne counts a key that takes no counter, such as a UUID. It fails if the sequence has ended.
func (q *sequence) makeOne() error {
	if err := q.numbers.Ended(); err != nil {
		return err
	}
	q.uncounted.Add(1)
	return nil
}

// Form is what keys are.
type Form uint8

// The forms.
const (
	Numbers Form = iota
	Texts
	Bytes
)

// FormOf returns what the keys of a sequence are. TakeRun alone gives those that are no numbers,
// one by one. A sequence that does not exist has Numbers. Errors are those of Exists.
func (s *Sequences) FormOf(ctx context.Context, name []byte) (Form, error) {
	q, err := s.find(ctx, name, s.patience(ctx))
	switch {
	case errors.Is(err, ErrUnknown):
		return Numbers, nil
	case err != nil:
		return Numbers, err
	}
	return formOf(q.kind), nil
}

func formOf(k kind.Kind) Form {
	switch {
	case k.IsBinary():
		return Bytes
	case k.IsText():
		return Texts
	}
	return Numbers
}

// countersOf are those of which numbers are keys.
func (q *sequence) countersOf(numbers []uint64) []uint64 {
	counters := make([]uint64, 0, len(numbers))
	for _, n := range numbers {
		if counter, _, ok := q.kind.Counter(n); ok {
			counters = append(counters, counter)
		}
	}
	return counters
}

// Consecutive is nil where somebody may count on from a number that he is given: not where keys are
// made of the numbers, as the client cannot be told which of them are his. Other errors are those
// of Take.
func (s *Sequences) Consecutive(ctx context.Context, name []byte) error {
	q, err := s.findOrCreate(ctx, name, time.Now().Add(s.patience(ctx)))
	if err == nil && !q.kind.IsPlain() {
		err = q.refused("NEXTVAL with a count", eachAlone)
	}
	return err
}

// mayAlter refuses to set the time of keys, or a counter that there is not.
func (q *sequence) mayAlter(a *Alteration) error {
	if a.Restart != nil && q.clocked != nil {
		return q.refused("RESTART", ofTime)
	}
	if q.kind.Counts() {
		return nil
	}
	for _, o := range [...]struct {
		name  string
		given bool
	}{{"RESTART", a.Restart != nil}, {"START", a.Start != nil}, {"MINVALUE", a.Min != nil}, {"MAXVALUE", a.Max != nil}, {"CACHE", a.Cache != nil}, {"OUTAGE_COVER", a.Cover != nil}} {
		if o.given {
			return q.refused(o.name, ofNoCounter)
		}
	}
	return nil
}

// Why a counter cannot be set.
const (
	ofTime      = "its keys begin with the time; leave it out"
	ofNoCounter = "its keys are of no counter; leave it out"
)
