package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/agree"
	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/member"
	"seqproxy/sequence/store"
)

// periodRows is where the counters of periods are, as the sequence servers have them.
type periodRows interface {
	// counter returns the row of the period with a name, and makes it if it is new. of is the row of
	// the sequence whose counter begins again, and is its kind. changes is what obeyed said before
	// the row was read.
	counter(ctx context.Context, of string, is kind.Kind, name string) (found store.Row, changes uint64, err error)
}

// periodCounters is Sequences as the periods of a sequence see it.
type periodCounters struct{ s *Sequences }

// Go implements [periodsOwner].
func (o periodCounters) Go(f func(ctx context.Context)) { o.s.spawn(func() { f(o.s.ctx) }) }

// Run implements [periodsOwner].
func (o periodCounters) Run(f func(ctx context.Context) error) error {
	s := o.s
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	ctx, stop := context.WithTimeoutCause(s.ctx, s.patience(s.ctx), await.ErrPatience)
	defer stop()
	return f(ctx)
}

// Patience implements [periodsOwner].
func (o periodCounters) Patience(ctx context.Context) time.Duration { return o.s.patience(ctx) }

// Counter implements [periodsOwner].
func (o periodCounters) Counter(ctx context.Context, of string, is kind.Kind, name string) (*cache.Cache, error) {
	found, changes, err := o.s.periodRows.counter(ctx, of, is, name)
	if err != nil {
		return nil, err
	}
	q, err := o.s.sequenceFor(found.Name, found, changes)
	if err != nil {
		return nil, err
	}
	o.s.startFollowing() // who has the next period prepared
	return q.numbers, nil
}

// Forget implements [periodsOwner].
func (o periodCounters) Forget(numbers *cache.Cache) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	if o.s.ofLocked(numbers) != nil {
		o.s.endLocked(numbers.Name)
	}
}

// ofLocked returns the sequence that has these numbers, nil if it has ended. s.mu is held.
func (s *Sequences) ofLocked(numbers *cache.Cache) *sequence {
	if q := s.sequences[numbers.Name]; q != nil && q.numbers == numbers {
		return q
	}
	return nil
}

// counting is the sequence whose numbers count for q at present: that of the period, as far as it
// is known here; q itself where the counter does not begin again.
func (s *Sequences) counting(q *sequence) *sequence {
	if q.periods == nil {
		return q
	}
	return cmp.Or(s.names.get([]byte(q.periods.now().Name)), q)
}

// periodServers is the way to the rows of periods on the sequence servers.
type periodServers struct{ s *Sequences }

// counter implements [periodRows]. The options of the sequence hold for the counter: what ALTER has
// changed meanwhile, or could not change there, it has from then on.
func (p periodServers) counter(ctx context.Context, of string, is kind.Kind, name string) (found store.Row, changes uint64, err error) {
	s := p.s
	base, err := s.members.Find(ctx, define.ShownName(of))
	if err == nil && base.Def.Kind != is {
		err = &NameError{Name: define.ShownName(of), Err: ErrUnknown}
	}
	if err != nil {
		return store.Row{}, 0, err
	}
	changes = s.obeyed()
	found, err = s.members.Find(ctx, define.CounterName(name))
	if errors.Is(err, ErrUnknown) || member.IsUnfitRow(err) {
		if _, err := s.createPeriod(ctx, &base, name, 0); err != nil {
			return store.Row{}, 0, err
		}
		changes = s.obeyed()
		found, err = s.members.Find(ctx, define.CounterName(name))
	}
	if err != nil {
		return store.Row{}, 0, ofPeriod(err)
	}
	if found.Def.Kind != base.Def.Kind {
		return store.Row{}, 0, &define.KindError{Sequence: name, Kind: found.Def.Kind, Refused: "the counter of a period of sequence " + define.ShownName(of), WayOut: "restore both tables from the same backup"}
	}
	if a := differences(&found.Def, &base.Def); a != (Alteration{}) {
		if found, err = s.members.Alter(ctx, found.Name, a, 0); err != nil {
			return store.Row{}, 0, err
		}
		s.seeChanges(ctx)
		changes = s.obeyed()
	}
	return found, changes, nil
}

// ofPeriod hides ErrUnknown in the error of a counter that is not found: the sequence itself
// exists.
func ofPeriod(err error) error {
	if errors.Is(err, ErrUnknown) {
		return fmt.Errorf("the counter of the period was there a moment ago: %v", err)
	}
	return err
}

// createPeriod makes the counter of a period of a sequence, which has the row base. With first it
// begins there, or above, also where its row was lost.
func (s *Sequences) createPeriod(ctx context.Context, base *store.Row, name string, first uint64) (Created, error) {
	d := &base.Def
	return s.create(ctx, agree.New{Period: true, Anew: first > 0, CreateOptions: CreateOptions{
		Name: name, Kind: d.Kind, Min: d.Min, Max: d.Max, Start: d.Start, Cache: d.Cache, Cover: d.Cover, IfNotExists: true,
		Comment: "a period of sequence " + define.ShownName(base.Name), Floor: max(first, 1) - 1,
	}})
}

// differences is what makes of a counter's options those of its sequence.
func differences(is, want *define.Definition) (a Alteration) {
	change := func(to **uint64, is, want uint64) {
		if is != want {
			*to = &want
		}
	}
	change(&a.Cache, is.Cache, want.Cache)
	change(&a.Cover, is.Cover, want.Cover)
	change(&a.Min, is.Min, want.Min)
	change(&a.Max, is.Max, want.Max)
	change(&a.Start, is.Start, want.Start)
	return a
}

// resetRequest is a request about a sequence whose counter begins again.
type resetRequest struct {
	request
	q *sequence
}

// alter changes the sequence: its own row, and those of the periods that are there already. RESTART
// is for the present period alone, which a clock that is wrong does not know. ctx is the caller's.
func (r resetRequest) alter(ctx context.Context, name []byte, a Alteration) (Altered, error) {
	s, k := r.s, r.q.kind
	if a.Order != nil && *a.Order {
		return Altered{}, r.q.refused("ORDER", define.OrderOfResets)
	}
	base := define.ShownName(r.q.name)
	if a.Restart != nil {
		if err := s.clock.check(r.ctx, base); err != nil {
			return Altered{}, r.failed(base, err)
		}
	}
	options := a
	options.Restart, options.Force = nil, false
	if options != (Alteration{}) {
		if _, err := s.alter(r.request, name, options); err != nil {
			return Altered{}, err
		}
	}
	now := s.clock.wall()
	present, ok := k.Period(now)
	if !ok {
		_, err := r.q.periods.at(now)
		return Altered{}, err
	}
	changed, err := r.revise(define.PeriodName(base, k, present))
	if next, ok := k.Period(now.Add(s.timing.periodAhead)); err == nil && ok && next != present {
		_, err = r.revise(define.PeriodName(base, k, next))
	}
	if err != nil {
		return Altered{}, r.failed(base, fmt.Errorf("sequence %q was changed, and the counter of a period was not yet: repeat the statement: %w", base, err))
	}
	switch {
	case a.Restart == nil && changed.Name == "":
		return Altered{Next: r.q.numbers.Start()}, nil
	case a.Restart == nil:
		return alteredTo(&changed), nil
	}
	return r.restart(ctx, define.PeriodName(base, k, present), changed, &a)
}

// revise has the counter of a period have the options of the sequence. There may be none: the row
// is empty then.
func (r resetRequest) revise(name string) (store.Row, error) {
	_, err := r.s.members.Find(r.ctx, define.CounterName(name))
	switch {
	case errors.Is(err, ErrUnknown), member.IsUnfitRow(err):
		return store.Row{}, nil
	case err != nil:
		return store.Row{}, err
	}
	found, _, err := r.s.periodRows.counter(r.ctx, r.q.name, r.q.kind, name)
	return found, err
}

// restart has the present period go on at a number. stored is its row, which is empty if there is
// none: it may be lost, and whoever says so knows above which numbers it goes on.
func (r resetRequest) restart(ctx context.Context, name string, stored store.Row, a *Alteration) (Altered, error) {
	s := r.s
	base, err := s.members.Find(r.ctx, define.ShownName(r.q.name))
	if err != nil {
		return Altered{}, r.failed(name, err)
	}
	only := Alteration{Restart: a.Restart, Force: a.Force}
	if stored.Name == "" {
		first, err := agree.RestartAt(&base, *a.Restart)
		if err != nil {
			return Altered{}, err
		}
		made, err := s.createPeriod(r.ctx, &base, name, first)
		if err != nil {
			return Altered{}, r.failed(name, err)
		}
		return Altered{Next: made.First}, nil
	}
	if a.Force {
		return s.restart(ctx, stored.Name, only, true)
	}
	q, err := s.findAny(r.ctx, []byte(stored.Name), s.patience(r.ctx))
	if err != nil {
		return Altered{}, r.failed(name, err)
	}
	changed, err := s.alterHere(r.ctx, q, only)
	if err == nil {
		err = s.passedForGood(r.ctx, &changed)
	}
	if err != nil {
		return Altered{}, r.failed(name, err)
	}
	return alteredTo(&changed), nil
}
