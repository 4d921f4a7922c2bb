package sequence

import (
	"context"
	"errors"

	"seqproxy/sequence/define"
	"seqproxy/sequence/member"
)

// Usable says why no keys can be given; nil: numbers are in memory, or a sequence server answers.
// It asks one at most every two seconds, whoever calls, and until ctx is done.
func (s *Sequences) Usable(ctx context.Context) error {
	if s.Stats().Cached > 0 {
		return nil
	}
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	if err := s.anyAnswers(ctx, s.servers.view.Load()); err != nil {
		return &UnavailableError{Server: s.serverName(), Err: err}
	}
	return nil
}

// anyAnswers says why none of the members can be reserved from.
func (s *Sequences) anyAnswers(ctx context.Context, w *view) error {
	live := w.live()
	failed := member.Each(ctx, live, func(ctx context.Context, _ int, v *server) error { return v.Answers(ctx) })
	if len(failed) < len(live) {
		return nil
	}
	return errors.Join(failed...)
}

// LastUsable is Usable by what is known already: it does not ask.
func (s *Sequences) LastUsable() error {
	if s.Stats().Cached > 0 {
		return nil
	}
	if err := s.servers.now().LastFailure(); err != nil {
		return &UnavailableError{Server: s.serverName(), Err: err}
	}
	return nil
}

// UsableFor says why a sequence gives no number now; nil: numbers of it are in memory, or can be
// reserved as far as one can tell without doing it. A name that is not known here yet is asked for.
// Errors are those of Known, ErrUnknown and ErrExhausted. name is not kept.
func (s *Sequences) UsableFor(ctx context.Context, name []byte) error {
	c, err := s.find(ctx, name, s.patience(ctx))
	if err != nil {
		return err
	}
	c = c.now()
	if held, err := c.givesNow(); held || err != nil {
		return err
	}
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	w := s.servers.view.Load()
	home := s.servers.next.Home(s.servers.among(w), c.name)
	if home == nil {
		if err = s.anyAnswers(ctx, w); err == nil {
			return nil
		}
	} else if err = home.Answers(ctx); err == nil {
		return nil
	}
	return &UnavailableError{Sequence: define.ShownName(c.name), Server: s.servers.nameFor(c.name), Ordered: c.ordered(), Err: err}
}

// givesNow reports whether numbers are in memory, and if not, why none can be reserved, as far as
// it is known.
func (c *cache) givesNow() (held bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.end != nil:
		return false, c.end
	case c.cached > 0, c.clocked != nil && c.clocked.State().Ticks > 0:
		return true, nil
	case c.flying && c.lastErr != nil:
		// being tried again; what failed and is not tried again says nothing of now
		return false, c.unavailableLocked(0, c.lastErr)
	}
	if _, ok := c.rule.Next(c.top, c.max); !ok && !c.cycle {
		return false, &NameError{Name: define.ShownName(c.name), Err: ErrExhausted}
	}
	return false, nil
}
