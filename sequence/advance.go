package sequence

import (
	"context"
	"errors"
	"time"

	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
)

// MaxAdvance is the most that Advance adds at once.
const MaxAdvance = 1_000_000

// maxSteps bounds the different steps of one sequence: each holds numbers in memory, and they come
// from clients.
const maxSteps = 16

// ErrStep: Advance leaves this step to the server. It is no multiple of the sequence's INCREMENT,
// or so many other steps have caches already (maxSteps), or the INCREMENT changes meanwhile.
var ErrStep = errors.New("the sequence is not advanced by this step here")

// Advance does what `UPDATE sequence SET id = LAST_INSERT_ID(id + n) WHERE name = ...` does, and
// returns the new id: the n numbers up to it are the caller's alone. n is 1 to MaxAdvance.
//
// Where n is not 1 the applications may mean one of two things: that they use n numbers, or that n
// sequence servers divide the numbers and only every n-th is theirs. So numbers by n come out of
// segments of their own, in whole steps: as long as everybody adds n, the row and all ids stay
// congruent modulo n.
//
// A sequence with INCREMENT d is advanced in multiples of d. Errors are those of Take, and ErrStep.
// No sequence is created.
func (s *Sequences) Advance(ctx context.Context, name []byte, n uint64) (id uint64, err error) {
	if n == 0 || n > MaxAdvance {
		return 0, define.BadOption("sequence %q: advanced by %d, want 1 to %d", name, n, MaxAdvance)
	}
	deadline := time.Now().Add(s.patience(ctx))
	for again := true; ; again = false {
		q, err := s.find(ctx, name, time.Until(deadline))
		if err != nil {
			return 0, err
		}
		if !q.kind.IsPlain() {
			return 0, q.refused("a statement of a ticket server", "ask with SELECT NEXTVAL")
		}
		d := q.numbers.Increment()
		if n%d != 0 {
			return 0, ErrStep
		}
		from := q.numbers
		if n > d && !q.numbers.Ordered() {
			from, err = s.stepCache(q, n/d)
		}
		var first, step uint64
		if err == nil {
			first, step, err = from.Take(ctx, n/d, deadline)
		}
		switch {
		case err == nil && step == d:
			return first + n - d, nil
		case err == nil: // ALTER SEQUENCE came between; these numbers are a gap
			if !again {
				return 0, ErrStep
			}
		case !again || !errors.Is(err, ErrUnknown):
			return 0, err
		default:
			s.forget(name, q)
		}
	}
}

// AdvanceOrCreate is Advance for a sequence that may not exist: then it is created, as the row is
// by `INSERT INTO sequence (name) VALUES (...) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id +
// n)`, and its first n numbers are the caller's, where that statement gives whatever
// LAST_INSERT_ID() was before. created says that it did not exist.
func (s *Sequences) AdvanceOrCreate(ctx context.Context, name []byte, n uint64) (id uint64, created bool, err error) {
	for again := true; ; again = false {
		id, err = s.Advance(ctx, name, n)
		if !again || !errors.Is(err, ErrUnknown) {
			return id, created, err
		}
		made, err := s.createUnknown(ctx, string(name))
		if err != nil {
			return 0, false, err
		}
		created = !made.Existed
	}
}

// stepCache returns the cache of a sequence for steps of n. ErrUnknown: q was dropped meanwhile, so
// that nobody would end it.
func (s *Sequences) stepCache(q *sequence, n uint64) (*cache.Cache, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.sequences[q.name] != q {
		return nil, &NameError{Name: q.name, Err: ErrUnknown}
	}
	if found := q.steps[n]; found != nil {
		return found, nil
	}
	if len(q.steps) >= maxSteps {
		return nil, ErrStep
	}
	made := q.numbers.InSteps(n)
	if q.steps == nil {
		q.steps = make(map[uint64]*cache.Cache)
	}
	q.steps[n] = made
	return made, nil
}
