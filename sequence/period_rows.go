package sequence

import (
	"context"
	"errors"
	"fmt"

	"seqproxy/sequence/agree"
	"seqproxy/sequence/define"
	"seqproxy/sequence/member"
	"seqproxy/sequence/store"
)

// periodServers is the way to the rows of periods on the sequence servers.
type periodServers struct{ s *Sequences }

// counter implements [periodRows]. The options of the sequence hold for the counter: what ALTER has
// changed meanwhile, or could not change there, it has from then on.
func (p periodServers) counter(ctx context.Context, q *sequence, name string) (found store.Row, changes uint64, err error) {
	s := p.s
	base, err := s.members.Find(ctx, define.ShownName(q.name))
	if err == nil && base.Def.Kind != q.kind {
		err = &NameError{Name: define.ShownName(q.name), Err: ErrUnknown}
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
		return store.Row{}, 0, &define.KindError{Sequence: name, Kind: found.Def.Kind, Refused: "the counter of a period of sequence " + define.ShownName(q.name), WayOut: "restore both tables from the same backup"}
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

// alter changes a sequence whose counter begins again: its own row, and those of the periods that
// are there already. RESTART is for the present period alone, which a clock that is wrong does not
// know.
func (p *periods) alter(ctx context.Context, r request, name []byte, a Alteration) (Altered, error) {
	s, k := p.seq.owner, p.seq.kind
	if a.Order != nil && *a.Order {
		return Altered{}, p.seq.refused("ORDER", define.OrderOfResets)
	}
	base := define.ShownName(p.seq.name)
	if a.Restart != nil {
		if err := s.clock.check(r.ctx, base); err != nil {
			return Altered{}, r.failed(base, err)
		}
	}
	own := a
	own.Restart, own.Force = nil, false
	if own != (Alteration{}) {
		if _, err := s.alter(r, name, own); err != nil {
			return Altered{}, err
		}
	}
	now := s.clock.wall()
	present, ok := k.Period(now)
	if !ok {
		_, err := p.at(now)
		return Altered{}, err
	}
	changed, err := p.revise(r.ctx, define.PeriodName(base, k, present))
	if next, ok := k.Period(now.Add(s.timing.periodAhead)); err == nil && ok && next != present {
		_, err = p.revise(r.ctx, define.PeriodName(base, k, next))
	}
	if err != nil {
		return Altered{}, r.failed(base, fmt.Errorf("sequence %q was changed, and the counter of a period was not yet: repeat the statement: %w", base, err))
	}
	switch {
	case a.Restart == nil && changed.Name == "":
		return Altered{Next: p.seq.numbers.Start()}, nil
	case a.Restart == nil:
		return alteredTo(&changed), nil
	}
	return p.restart(ctx, r, define.PeriodName(base, k, present), changed, &a)
}

// revise has the counter of a period have the options of the sequence. There may be none: the row
// is empty then.
func (p *periods) revise(ctx context.Context, name string) (store.Row, error) {
	s := p.seq.owner
	_, err := s.members.Find(ctx, define.CounterName(name))
	switch {
	case errors.Is(err, ErrUnknown), member.IsUnfitRow(err):
		return store.Row{}, nil
	case err != nil:
		return store.Row{}, err
	}
	found, _, err := s.periodRows.counter(ctx, p.seq, name)
	return found, err
}

// restart has the present period go on at a number. stored is its row, which is empty if there is
// none: it may be lost, and whoever says so knows above which numbers it goes on.
func (p *periods) restart(ctx context.Context, r request, name string, stored store.Row, a *Alteration) (Altered, error) {
	s := p.seq.owner
	base, err := s.members.Find(r.ctx, define.ShownName(p.seq.name))
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
