package sequence

import (
	"context"
	"errors"
	"time"

	"seqproxy/sequence/define"
	"seqproxy/sequence/store"
)

// MaxAdvance is the most that Advance adds at once.
const MaxAdvance = 1_000_000

// maxSteps bounds the different steps of one sequence: each holds numbers in memory, and they come
// from clients.
const maxSteps = 16

// ErrStep is Advance by a step that is left to the server: none of the sequence's INCREMENT, or one
// more than is worth a cache of its own.
var ErrStep = errors.New("the sequence is not advanced by this step here")

// step names the cache of a sequence that is advanced by n of its numbers at once.
type step struct {
	of *cache
	n  uint64
}

// Advance does what `UPDATE sequence SET id = LAST_INSERT_ID(id + n) WHERE name = ...` does, and
// returns the new id: the n numbers up to it are the caller's alone. n is 1 to MaxAdvance.
//
// Where n is not 1 the applications may mean one of two things: that they use n numbers, or that n
// sequence servers take turns and only every n-th number is theirs. So numbers by n come out of
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
		c, err := s.find(ctx, name, time.Until(deadline))
		if err != nil {
			return 0, err
		}
		if !c.kind.IsPlain() {
			return 0, c.refused("a statement of a ticket server", "ask with SELECT NEXTVAL")
		}
		d := c.increment()
		if n%d != 0 {
			return 0, ErrStep
		}
		from := c
		if n > d && !c.ordered() {
			from, err = s.stepped(c, n/d)
		}
		var first, step uint64
		if err == nil {
			first, step, err = from.takeRun(ctx, n/d, deadline)
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
			s.forget(name, c)
		}
	}
}

// increment is the distance between the sequence's numbers.
func (c *cache) increment() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.rule.Step, 1)
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
		made, err := s.Create(ctx, CreateOptions{Name: string(name), IfNotExists: true})
		if err != nil {
			return 0, false, err
		}
		created = !made.Existed
	}
}

// stepped returns the cache of a sequence for steps of n. ErrUnknown: c was dropped meanwhile, so
// that nobody would end it.
func (s *Sequences) stepped(c *cache, n uint64) (*cache, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.caches[c.name] != c {
		return nil, &NameError{Name: c.name, Err: ErrUnknown}
	}
	key := step{c, n}
	if found := s.steps[key]; found != nil {
		return found, nil
	}
	steps := 0
	for other := range s.steps {
		if other.of == c {
			steps++
		}
	}
	if steps >= maxSteps {
		return nil, ErrStep
	}
	made := newCache(s, store.Row{Name: c.name})
	made.reserver, made.reserving = wholeSteps{c.reserver, n}, c.reserving
	c.mu.Lock()
	made.top, made.max, made.exact = c.top, c.max, c.exact
	made.rule, made.limits, made.cycle, made.past, made.version = c.rule, c.limits, c.cycle, c.past, c.version
	made.cover = c.cover
	made.order = c.order
	made.warned = len(warnAt) // the other warns
	c.mu.Unlock()
	made.replan(time.Now())
	made.low = 0
	if s.steps == nil {
		s.steps = make(map[step]*cache)
	}
	s.steps[key] = made
	return made, nil
}

// dropStepsLocked ends the stepped caches of a cache that was dropped. s.mu is held.
func (s *Sequences) dropStepsLocked(c *cache) {
	for key, stepped := range s.steps {
		if key.of == c {
			stepped.shut(&NameError{Name: c.name, Err: ErrUnknown})
			s.bury(stepped)
			delete(s.steps, key)
		}
	}
}

// wholeSteps reserves multiples of n.
type wholeSteps struct {
	reserver
	n uint64
}

func (r wholeSteps) reserve(ctx context.Context, name string, want, need uint64) (grant, error) {
	return r.reserver.reserve(ctx, name, r.whole(want), r.whole(need))
}

// whole rounds up; what is asked for is far from the end of 64 bits.
func (r wholeSteps) whole(numbers uint64) uint64 { return (numbers + r.n - 1) / r.n * r.n }
