package sequence

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/store"
)

// This file is how the counter of FORMAT ... RESET begins again. The row of the sequence `po` says
// what it is, and its counter stands still. For each period there is one more sequence of the same
// kind: `po@20261125`, in the row `po@20261125#counter`. It is a sequence as any other, so
// ceilings, floors, groups and fail-overs hold for its numbers; but nobody reaches it by that name.
// The clock is read once for a key: the name of the counter and the date in the key are made of
// that. So a wrong clock makes a wrong date, and no key twice.

// periodsOwner is Sequences, as the periods of a sequence see it.
type periodsOwner interface {
	// Go runs f on a goroutine that the owner waits for, and ends ctx when it no longer waits.
	// Sequences.mu is held, and Close has not begun.
	Go(f func(ctx context.Context))
	// Run runs f, which the owner waits for, with the time of a caller. It fails if Close has begun.
	Run(f func(ctx context.Context) error) error
	// Patience returns how long a caller with ctx waits.
	Patience(ctx context.Context) time.Duration
	// Counter returns the numbers of a period. It makes the row if that is new, and has changes
	// followed. See [periodRows].
	Counter(ctx context.Context, of string, is kind.Kind, name string) (*cache.Cache, error)
	// Forget drops what is known of a period that has these numbers.
	Forget(numbers *cache.Cache)
}

// period is a period whose counter is known here.
type period struct {
	is      kind.Period
	numbers *cache.Cache
}

// periods are those of one sequence. It is safe for concurrent use.
type periods struct {
	all     *shared
	kind    kind.Kind
	numbers *cache.Cache  // of the sequence itself, which gives nothing
	ahead   time.Duration // how long before a period its counter is made
	present atomic.Pointer[period]
	meeting singleflight.Group

	mu    sync.Mutex
	known []*period // guarded by mu; the present one, the next, and the last for a while
	busy  bool      // guarded by mu; somebody prepares the next one, or forgets the last
	again time.Time // guarded by mu; not before that

	unfit             error     // guarded by mu; see lastUnfit
	unfitAt, warnedAt time.Time // guarded by mu
}

// newPeriods makes those of a sequence, nil if its counter does not begin again.
func newPeriods(all *shared, is kind.Kind, numbers *cache.Cache) *periods {
	if !is.Resets() || define.IsPeriod(numbers.Name) {
		return nil
	}
	return &periods{all: all, kind: is, numbers: numbers, ahead: all.timing.periodAhead - rand.N(all.timing.periodSpread)}
}

// shownName is the name of the sequence for people.
func (p *periods) shownName() string { return define.ShownName(p.numbers.Name) }

// now are the numbers of the present period, as far as it is known here; else those of the sequence
// itself.
func (p *periods) now() *cache.Cache {
	is, ok := p.kind.Period(p.all.clock.wall())
	if of := p.of(is); ok && of != nil {
		return of.numbers
	}
	return p.numbers
}

// take takes a counter of the present period. A deadline of zero is that of the caller's patience.
func (p *periods) take(ctx context.Context, deadline time.Time) (t drawn, err error) {
	clock := p.all.clock
	for tries := 0; ; tries++ {
		if err = p.numbers.Ended(); err != nil {
			return t, err
		}
		t.at = clock.wall()
		of, err := p.at(t.at)
		if of == nil || err != nil || !clock.agrees(t.at) {
			if deadline.IsZero() {
				deadline = time.Now().Add(p.all.periods.Patience(ctx))
			}
			if of, t.at, err = p.await(ctx, deadline); err != nil {
				return t, err
			}
		}
		t.first, t.step, err = of.numbers.Take(ctx, 1, deadline)
		if planted.Fault(planted.Date) {
			t.at = clock.wall()
		}
		if err == nil || tries == maxMeetings || !errors.Is(err, ErrUnknown) {
			return t, err
		}
		p.drop(of) // its row went, or its period was over
	}
}

// maxMeetings bounds how often a caller looks for the counter of the period again.
const maxMeetings = 3

// at is the period of a moment, nil if its counter is not known here.
func (p *periods) at(moment time.Time) (*period, error) {
	is, ok := p.kind.Period(moment)
	if !ok {
		_, err := p.kind.Text(1, moment)
		return nil, noKey(p.numbers.Name, err)
	}
	if now := p.present.Load(); now != nil && now.is == is {
		return now, nil
	}
	of := p.of(is)
	if of != nil {
		p.present.Store(of)
	}
	return of, nil
}

// of is a period, nil if its counter is not known here.
func (p *periods) of(is kind.Period) *period {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.known {
		if of.is == is {
			return of
		}
	}
	return nil
}

// await returns the present period, and the time that the clock said. It waits until deadline for
// the period's counter, and for a clock that agrees with the sequence server's.
func (p *periods) await(ctx context.Context, deadline time.Time) (of *period, at time.Time, err error) {
	clock, t, begin := p.all.clock, p.all.timing, time.Now()
	ctx, stop := context.WithDeadlineCause(ctx, deadline, await.ErrPatience)
	defer stop()
	for backoff := t.firstBackoff; ; backoff = min(2*backoff, t.lastBackoff) {
		at = clock.wall()
		if of, err = p.at(at); err == nil {
			switch is, _ := p.kind.Period(at); {
			case of == nil:
				of, err = p.meet(ctx, is)
			case !clock.agrees(at):
				err = clock.check(ctx, p.shownName())
			}
		}
		if err == nil && clock.agrees(at) {
			return of, at, nil
		}
		if err != nil && final(err) || !await.Pause(ctx, await.Jitter(backoff)) {
			break
		}
	}
	err = p.failed(ctx, err, time.Since(begin))
	p.numbers.Score.Ended(time.Since(begin), endOf(err))
	return nil, at, err
}

// failed turns an error into what Take promises.
func (p *periods) failed(ctx context.Context, err error, waited time.Duration) error {
	if final(err) {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, await.ErrPatience) {
			return cause
		}
		if errors.Is(err, cause) {
			err = p.all.whyNot()
		}
	}
	var away *UnavailableError
	if errors.As(err, &away) {
		err = away.Err
	}
	return p.all.unavailable(p.numbers.Name, waited, err)
}

// final reports whether waiting does not mend an error.
func final(err error) bool {
	for _, known := range []error{ErrUnknown, ErrExhausted, ErrUnfit, ErrClosed, define.ErrBadOption} {
		if errors.Is(err, known) {
			return true
		}
	}
	return errors.As(err, new(*define.KindError)) || errors.As(err, new(*snowflake.ClockError))
}

// meet looks for the counter of a period, or makes it, once for all who want it at the same time.
// The work goes on when one of them gives up.
func (p *periods) meet(ctx context.Context, is kind.Period) (*period, error) {
	answer := p.meeting.DoChan(p.kind.PeriodName(is), func() (of any, err error) {
		err = p.all.periods.Run(func(ctx context.Context) error {
			of, err = p.find(ctx, is)
			return err
		})
		return of, err
	})
	select {
	case r := <-answer:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*period), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// find does the work of meet. It first compares the clock with the server's.
func (p *periods) find(ctx context.Context, is kind.Period) (*period, error) {
	if err := p.numbers.Ended(); err != nil {
		return nil, err
	}
	if of := p.of(is); of != nil {
		return of, nil
	}
	if err := p.lastUnfit(); err != nil {
		return nil, err
	}
	if err := p.all.clock.check(ctx, p.shownName()); err != nil {
		return nil, err
	}
	numbers, err := p.all.periods.Counter(ctx, p.numbers.Name, p.kind, define.PeriodName(p.shownName(), p.kind, is))
	if errors.Is(err, ErrUnfit) {
		err = p.noteUnfit(err)
	}
	if err != nil {
		return nil, err
	}
	of := &period{is, numbers}
	p.mu.Lock()
	p.known = append(p.known, of)
	p.mu.Unlock()
	if err := p.numbers.Ended(); err != nil { // meanwhile; nobody else would end it
		p.drop(of)
		p.all.periods.Forget(numbers)
		return nil, err
	}
	return of, nil
}

// lastUnfit is the error of a moment ago that waiting does not mend: not every caller asks again.
func (p *periods) lastUnfit() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.unfitAt) < p.all.timing.unknown {
		return p.unfit
	}
	return nil
}

// noteUnfit remembers, and logs now and then, why the counter of a period is not used.
func (p *periods) noteUnfit(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.warnedAt) >= p.all.timing.warnAgain {
		p.warnedAt = now
		p.all.caches.Log.Warn("reserving numbers fails", logfield.Sequence(p.shownName()), zap.Uint64("left", 0), logfield.Err(err))
	}
	p.unfit, p.unfitAt = &aboutError{Sequence: p.shownName(), Err: err}, now
	return p.unfit
}

// drop forgets a period, so that its counter is looked for again.
func (p *periods) drop(of *period) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.present.CompareAndSwap(of, nil)
	for i, other := range p.known {
		if other == of {
			p.known = append(p.known[:i:i], p.known[i+1:]...)
			return
		}
	}
}

// counters are the numbers of the periods that are known here.
func (p *periods) counters() (all []*cache.Cache) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.known {
		all = append(all, of.numbers)
	}
	return all
}

// keepUp has the next period prepared when that is due, those that are over forgotten, and the
// clock compared from time to time. It waits for nothing. Sequences.mu is held, and Close has not
// begun.
func (p *periods) keepUp() {
	at := p.all.clock.wall()
	next, due := p.due(at)
	past := p.past(at)
	old := p.all.clock.isOld()
	if !due && !old && len(past) == 0 {
		return
	}
	if p.numbers.Ended() != nil || !p.begin() {
		return
	}
	p.all.periods.Go(func(ctx context.Context) {
		if old {
			_ = p.all.clock.check(ctx, p.shownName()) // who takes a number meets the error
		}
		for _, of := range past {
			p.drop(of)
			p.all.periods.Forget(of.numbers) // what is left of them is a gap
		}
		failed := due && !p.prepare(ctx, next)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy = false
		if failed {
			p.again = time.Now().Add(await.Jitter(p.all.timing.periodAgain))
		}
	})
}

// begin reports whether nobody else does what it is about to do.
func (p *periods) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy || time.Now().Before(p.again) {
		return false
	}
	p.busy = true
	return true
}

// due is the next period, if it is time to prepare it and the present one is in use.
func (p *periods) due(at time.Time) (next kind.Period, due bool) {
	present, _ := p.kind.Period(at)
	next, ok := p.kind.Period(at.Add(p.ahead))
	now := p.of(present)
	if !ok || next == present || now == nil || p.of(next) != nil || !p.all.clock.agrees(at) {
		return next, false
	}
	return next, now.numbers.Used()
}

// past are the periods that are over for a while.
func (p *periods) past(at time.Time) (over []*period) {
	var kept []kind.Period
	for _, by := range []time.Duration{-p.all.timing.periodPast, 0, p.all.timing.periodAhead} {
		if is, ok := p.kind.Period(at.Add(by)); ok {
			kept = append(kept, is)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.known {
		if !slices.Contains(kept, of.is) {
			over = append(over, of)
		}
	}
	return over
}

// prepare makes the counter of the next period, with numbers in memory where CACHE asks for some:
// an outage when it begins is not noticed, if it is shorter than they last.
func (p *periods) prepare(ctx context.Context, next kind.Period) (done bool) {
	of, err := p.meet(ctx, next)
	if err != nil {
		p.all.caches.Log.Warn("next period not prepared", logfield.Sequence(p.shownName()), zap.String("period", p.kind.PeriodName(next)), logfield.Err(err))
		return errors.Is(err, ErrUnknown) || errors.Is(err, ErrClosed)
	}
	of.numbers.Expect(p.now().Pace())
	return true
}

// endsBefore reports whether the present period is over before d has passed: the counter begins
// again.
func endsBefore(k kind.Kind, now time.Time, d time.Duration) bool {
	if !k.Resets() || d == Never {
		return false
	}
	present, _ := k.Period(now)
	then, ok := k.Period(now.Add(d))
	return !ok || then != present
}

// untilReset is d, in which the sequence comes to its end; Never if its counter begins again before
// that.
func (q *sequence) untilReset(d time.Duration) time.Duration {
	if endsBefore(q.kind, q.all.clock.wall(), d) {
		return Never
	}
	return d
}

// presentRows are the rows of a list that people see. Of a sequence whose counter begins again it
// is that of the present period, if there is one.
func (s *Sequences) presentRows(rows []store.Row) []store.Row {
	var counts map[string]store.Row
	for i := range rows {
		if define.IsPeriod(rows[i].Name) {
			if counts == nil {
				counts = make(map[string]store.Row)
			}
			counts[rows[i].Name] = rows[i]
		}
	}
	rows = withoutHidden(rows)
	at := s.clock.wall()
	for i := range rows {
		if is, ok := presentName(&rows[i], at); ok {
			if now, known := counts[is]; known {
				rows[i] = now
			}
		}
	}
	return rows
}

// presentRow is that of one sequence. ErrUnknown: there is none.
func (s *Sequences) presentRow(ctx context.Context, base *store.Row) (store.Row, error) {
	is, ok := presentName(base, s.clock.wall())
	if !ok {
		return *base, nil
	}
	return s.members.Find(ctx, is)
}

// presentName is the name of the row that counts for a sequence at a moment; ok is false if that is
// its own.
func presentName(r *store.Row, at time.Time) (stored string, ok bool) {
	if !r.Def.Kind.Resets() || define.IsPeriod(r.Name) {
		return "", false
	}
	is, ok := r.Def.Kind.Period(at)
	return define.CounterName(define.PeriodName(define.ShownName(r.Name), r.Def.Kind, is)), ok
}

// avoid takes the counters of keys that somebody chose out of what is held of their periods.
func (p *periods) avoid(keys []uint64) {
	for _, key := range keys {
		counter, _, ok := p.kind.Counter(key)
		is, of := p.kind.PeriodOf(strconv.FormatUint(key, 10))
		if known := p.of(is); ok && of && known != nil {
			takeOutOf([]*cache.Cache{known.numbers}, []uint64{counter})
		}
	}
}

// dropPeriodsLocked ends the counters of a sequence that was dropped. s.mu is held.
func (s *Sequences) dropPeriodsLocked(q *sequence) {
	if q.periods == nil {
		return
	}
	for _, numbers := range q.periods.counters() {
		if of := s.ofLocked(numbers); of != nil {
			of.shut(&NameError{Name: define.ShownName(q.name), Err: ErrUnknown})
			s.removeLocked(of)
		}
	}
}
