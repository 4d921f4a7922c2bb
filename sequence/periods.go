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

// periodRows is where the counters of periods are, as the sequence servers have them.
type periodRows interface {
	// counter returns the row of a period of the sequence that q is, and makes it if it is new.
	// changes is what obeyed said before it was read.
	counter(ctx context.Context, q *sequence, name string) (found store.Row, changes uint64, err error)
}

// period is a period whose counter is known here.
type period struct {
	is  kind.Period
	seq *sequence
}

// periods are those of one sequence. It is safe for concurrent use.
type periods struct {
	seq     *sequence     // of the sequence itself, which gives nothing
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
func newPeriods(q *sequence) *periods {
	if !q.kind.Resets() || define.IsPeriod(q.name) {
		return nil
	}
	t := q.owner.timing
	return &periods{seq: q, ahead: t.periodAhead - rand.N(t.periodSpread)}
}

// now is the sequence that counts in the present period, as far as it is known here; q itself where
// the counter does not begin again.
func (q *sequence) now() *sequence {
	if q.periods == nil {
		return q
	}
	p, ok := q.kind.Period(q.owner.clock.wall())
	if of := q.periods.of(p); ok && of != nil {
		return of.seq
	}
	return q
}

// take takes a counter of the present period. A deadline of zero is that of the caller's patience.
func (p *periods) take(ctx context.Context, deadline time.Time) (t drawn, err error) {
	s := p.seq.owner
	for tries := 0; ; tries++ {
		if err = p.seq.numbers.Ended(); err != nil {
			return t, err
		}
		t.at = s.clock.wall()
		of, err := p.at(t.at)
		if of == nil || err != nil || !s.clock.agrees(t.at) {
			if deadline.IsZero() {
				deadline = time.Now().Add(s.patience(ctx))
			}
			if of, t.at, err = p.await(ctx, deadline); err != nil {
				return t, err
			}
		}
		t.first, t.step, err = of.seq.numbers.Take(ctx, 1, deadline)
		if planted.Fault(planted.Date) {
			t.at = s.clock.wall()
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
	is, ok := p.seq.kind.Period(moment)
	if !ok {
		_, err := p.seq.kind.Text(1, moment)
		return nil, p.seq.noKey(err)
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
	s, begin := p.seq.owner, time.Now()
	ctx, stop := context.WithDeadlineCause(ctx, deadline, await.ErrPatience)
	defer stop()
	for backoff := s.timing.firstBackoff; ; backoff = min(2*backoff, s.timing.lastBackoff) {
		at = s.clock.wall()
		if of, err = p.at(at); err == nil {
			switch is, _ := p.seq.kind.Period(at); {
			case of == nil:
				of, err = p.meet(ctx, is)
			case !s.clock.agrees(at):
				err = s.clock.check(ctx, define.ShownName(p.seq.name))
			}
		}
		if err == nil && s.clock.agrees(at) {
			return of, at, nil
		}
		if err != nil && final(err) || !await.Pause(ctx, await.Jitter(backoff)) {
			break
		}
	}
	err = p.failed(ctx, err, time.Since(begin))
	p.seq.numbers.Score.Ended(time.Since(begin), endOf(err))
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
			err = p.seq.owner.shared.whyNot()
		}
	}
	var away *UnavailableError
	if errors.As(err, &away) {
		err = away.Err
	}
	return p.seq.owner.shared.unavailable(p.seq.name, waited, err)
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
	answer := p.meeting.DoChan(p.seq.kind.PeriodName(is), func() (any, error) {
		s := p.seq.owner
		if !s.begin() {
			return nil, ErrClosed
		}
		defer s.tasks.Done()
		ctx, stop := context.WithTimeoutCause(s.ctx, s.patience(s.ctx), await.ErrPatience)
		defer stop()
		return p.find(ctx, is)
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
	s := p.seq.owner
	if err := p.seq.numbers.Ended(); err != nil {
		return nil, err
	}
	if of := p.of(is); of != nil {
		return of, nil
	}
	if err := p.lastUnfit(); err != nil {
		return nil, err
	}
	if err := s.clock.check(ctx, define.ShownName(p.seq.name)); err != nil {
		return nil, err
	}
	name := define.PeriodName(define.ShownName(p.seq.name), p.seq.kind, is)
	found, changes, err := s.periodRows.counter(ctx, p.seq, name)
	if errors.Is(err, ErrUnfit) {
		err = p.noteUnfit(err)
	}
	if err != nil {
		return nil, err
	}
	q, err := s.sequenceFor(found.Name, found, changes)
	if err != nil {
		return nil, err
	}
	s.startFollowing() // who has the next period prepared
	of := &period{is, q}
	p.mu.Lock()
	p.known = append(p.known, of)
	p.mu.Unlock()
	if err := p.seq.numbers.Ended(); err != nil { // meanwhile; nobody else would end it
		p.drop(of)
		s.forget([]byte(q.name), q)
		return nil, err
	}
	return of, nil
}

// lastUnfit is the error of a moment ago that waiting does not mend: not every caller asks again.
func (p *periods) lastUnfit() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.unfitAt) < p.seq.owner.timing.unknown {
		return p.unfit
	}
	return nil
}

// noteUnfit remembers, and logs now and then, why the counter of a period is not used.
func (p *periods) noteUnfit(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.warnedAt) >= p.seq.owner.timing.warnAgain {
		p.warnedAt = now
		p.seq.owner.log.Warn("reserving numbers fails", logfield.Sequence(define.ShownName(p.seq.name)), zap.Uint64("left", 0), logfield.Err(err))
	}
	p.unfit, p.unfitAt = &aboutError{Sequence: define.ShownName(p.seq.name), Err: err}, now
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

// all are the sequences of the periods that are known here.
func (p *periods) all() (all []*sequence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.known {
		all = append(all, of.seq)
	}
	return all
}

// keepUp has the next period prepared when that is due, and those that are over forgotten. It waits
// for nothing. Sequences.mu is held, so that Close has not begun to wait.
func (p *periods) keepUp() {
	q := p.seq
	at := q.owner.clock.wall()
	next, due := p.due(at)
	past := p.past(at)
	if !due && len(past) == 0 {
		return
	}
	if q.owner.closed || q.numbers.Ended() != nil || !p.begin() {
		return
	}
	q.owner.spawn(func() {
		for _, of := range past {
			p.drop(of)
			q.owner.forget([]byte(of.seq.name), of.seq) // what is left of its numbers is a gap
		}
		failed := due && !p.prepare(next)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy = false
		if failed {
			p.again = time.Now().Add(await.Jitter(q.owner.timing.periodAgain))
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
	present, _ := p.seq.kind.Period(at)
	next, ok := p.seq.kind.Period(at.Add(p.ahead))
	now := p.of(present)
	if !ok || next == present || now == nil || p.of(next) != nil || !p.seq.owner.clock.agrees(at) {
		return next, false
	}
	return next, now.seq.numbers.Used()
}

// past are the periods that are over for a while.
func (p *periods) past(at time.Time) (over []*period) {
	var kept []kind.Period
	for _, by := range []time.Duration{-p.seq.owner.timing.periodPast, 0, p.seq.owner.timing.periodAhead} {
		if is, ok := p.seq.kind.Period(at.Add(by)); ok {
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
func (p *periods) prepare(next kind.Period) (done bool) {
	of, err := p.meet(p.seq.owner.ctx, next)
	if err != nil {
		p.seq.owner.log.Warn("next period not prepared", logfield.Sequence(define.ShownName(p.seq.name)), zap.String("period", p.seq.kind.PeriodName(next)), logfield.Err(err))
		return errors.Is(err, ErrUnknown) || errors.Is(err, ErrClosed)
	}
	of.seq.numbers.Expect(p.seq.now().numbers.Pace())
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
	if endsBefore(q.kind, q.owner.clock.wall(), d) {
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
		counter, _, ok := p.seq.kind.Counter(key)
		is, of := p.seq.kind.PeriodOf(strconv.FormatUint(key, 10))
		if known := p.of(is); ok && of && known != nil {
			takeOutOf([]*cache.Cache{known.seq.numbers}, []uint64{counter})
		}
	}
}

// dropPeriodsLocked ends the counters of a sequence that was dropped. s.mu is held.
func (s *Sequences) dropPeriodsLocked(q *sequence) {
	if q.periods == nil {
		return
	}
	for _, of := range q.periods.all() {
		of.shut(&NameError{Name: define.ShownName(q.name), Err: ErrUnknown})
		s.removeLocked(of)
	}
}
