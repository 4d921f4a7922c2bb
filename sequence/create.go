package sequence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"seqproxy/sequence/agree"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
)

// What CREATE says, and what has become of it; see packages define and agree.
type (
	CreateOptions = define.CreateOptions
	Created       = agree.Created
)

// whatBecame says for people what CREATE did.
func whatBecame(c *Created) string {
	switch {
	case c.Existed:
		return "exists"
	case c.Replaced:
		return "was replaced"
	}
	return "was created"
}

// Create makes a sequence. If one of that name was dropped before, it continues above the dropped
// one's last number, because other proxies may still hold numbers of it; with Order it waits for
// those, as Alter does. Errors: ErrExists, ErrBadOption, ErrExhausted (the dropped one had reached
// the maximum), ErrUnfit, ErrClosed, ctx's cause, *UnavailableError.
func (s *Sequences) Create(ctx context.Context, o CreateOptions) (Created, error) {
	return s.create(ctx, agree.New{CreateOptions: o})
}

// create is Create, also of the counter of a period.
func (s *Sequences) create(ctx context.Context, o agree.New) (Created, error) {
	if err := checkName(&o); err != nil {
		return Created{}, err
	}
	def := o.Definition()
	if err := def.Check(math.MaxUint64); err != nil {
		return Created{}, err
	}
	if !s.begin() {
		return Created{}, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	made, err := s.members.Create(r.ctx, o, def)
	if err != nil {
		return Created{}, r.failed(o.Name, err)
	}
	if o.DryRun {
		return made.Created, nil
	}
	s.unknown.clear()
	var lost error
	if made.Above > 0 {
		if lost = s.members.First().Ceilings.KeepAbove(r.ctx, made.Row, made.Above); lost != nil {
			without := ""
			if made.Unordered {
				without = ", without ORDER"
			}
			lost = fmt.Errorf("sequence %q %s%s, but a fail-over could undo that: %w", o.Name, whatBecame(&made.Created), without, r.failed(o.Name, lost))
		}
	}
	if q := s.names.get([]byte(o.Name)); q != nil && made.Replaced {
		q.replaced.Add(1)
	}
	s.seeChanges(r.ctx)
	if lost != nil {
		return Created{}, lost
	}
	if made.Unordered {
		if _, err := s.makeOrdered(ctx, []byte(o.Name), Alteration{Order: &o.Order}); err != nil {
			return Created{}, fmt.Errorf("sequence %q %s, but its ORDER is not confirmed: %w", o.Name, whatBecame(&made.Created), err)
		}
	}
	return made.Created, nil
}

// checkName returns an error if no sequence may have the name.
func checkName(o *agree.New) error {
	if o.Name == "" || len(o.Name) > maxNameBytes {
		return define.BadOption("sequence name of %d bytes, want 1 to %d", len(o.Name), maxNameBytes)
	}
	if strings.Trim(o.Name, " ") == "" {
		return define.BadOption("sequence name %q, want more than blanks", o.Name)
	}
	if strings.HasSuffix(o.Name, " ") {
		// Most servers take it for the name without them.
		return define.BadOption("sequence name %q ends in a blank", o.Name)
	}
	if define.IsCounter(o.Name) {
		return define.BadOption("sequence name %q ends in %s, as the rows of sequences with a kind of keys do", o.Name, define.CounterSuffix)
	}
	if _, ok := define.WorkerOf(o.Name); ok && !o.Kind.IsPlain() && o.Kind != kind.NewTicks() {
		return define.BadOption("sequence name %q ends as the rows of the workers of SNOWFLAKE do, in %s and a number", o.Name, define.WorkerMark)
	}
	if _, ok := define.PeriodOf(o.Name); ok && !o.Kind.IsPlain() && !o.Period {
		return define.BadOption("sequence name %q ends as the rows of the periods of FORMAT ... RESET do, in %s and 4, 6 or 8 digits", o.Name, define.PeriodMark)
	}
	return nil
}

// Drop removes a sequence and returns its definition, or nil if there was none. Its last number is
// kept as a tombstone, above which a later Create of the name continues. Numbers in memory here are
// not given any more; other proxies notice within a second. Errors: ErrUnknown (not if ifExists),
// ErrUnfit, ErrClosed, ctx's cause, *UnavailableError.
func (s *Sequences) Drop(ctx context.Context, name []byte, ifExists bool) (*Definition, error) {
	if !s.begin() {
		return nil, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	row, err := s.members.Drop(r.ctx, string(name))
	if errors.Is(err, ErrUnknown) && ifExists {
		return nil, nil
	}
	if err != nil {
		return nil, r.failed(string(name), err)
	}
	s.end(row.Name)
	s.seeChanges(r.ctx)
	return &row.Def, nil
}

// end stops giving numbers of a sequence that was dropped.
func (s *Sequences) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(name)
}

func (s *Sequences) endLocked(name string) {
	if q := s.sequences[name]; q != nil {
		q.shut(&NameError{Name: define.ShownName(name), Err: ErrUnknown})
		s.removeLocked(q)
	}
}
