package sequence

import (
	"context"
	"errors"
	"fmt"

	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/member"
	"seqproxy/sequence/members"
)

// Usable says why no keys can be given; nil: numbers are in memory, or a sequence server answers
// and the state file can be written. It asks a server at most every two seconds, whoever calls, and
// until ctx is done. If the last write of the state file failed, it tries again.
func (s *Sequences) Usable(ctx context.Context) error {
	if s.Stats().Cached > 0 {
		return nil
	}
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	err := s.remembers()
	if err == nil {
		err = s.anyAnswers(ctx, s.members.Now())
	}
	if err != nil {
		return &UnavailableError{Server: s.serverName(), Err: err}
	}
	return nil
}

// remembers says why nothing can be remembered in the state directory. A file that was written last
// is not asked, since a write under way may take long.
func (s *Sequences) remembers() error {
	if failing, _ := s.state.Failing(); !failing {
		return nil
	}
	return s.state.Ready()
}

// anyAnswers says why none of the members can be reserved from.
func (s *Sequences) anyAnswers(ctx context.Context, w *members.View) error {
	live := w.Live()
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
	err := s.members.Now().LastFailure()
	if failing, _ := s.state.Failing(); failing {
		err = fmt.Errorf("the state file cannot be written: %w", floor.ErrNotKept)
	}
	if err != nil {
		return &UnavailableError{Server: s.serverName(), Err: err}
	}
	return nil
}

// UsableFor says why a sequence gives no number now; nil: numbers of it are in memory, or can be
// reserved as far as one can tell without doing it. A name that is not known here yet is asked for.
// Errors are those of Exists, ErrUnknown and ErrExhausted. name is not kept.
func (s *Sequences) UsableFor(ctx context.Context, name []byte) error {
	q, err := s.find(ctx, name, s.patience(ctx))
	if err != nil {
		return err
	}
	q = s.counting(q)
	if cached, err := q.givesNow(); cached || err != nil {
		return err
	}
	if !s.begin() {
		return ErrClosed
	}
	defer s.tasks.Done()
	w := s.members.Now()
	home := s.members.Next.Home(&w.Among, q.name)
	switch err = s.remembers(); {
	case err != nil:
	case home == nil:
		err = s.anyAnswers(ctx, w)
	default:
		err = home.Answers(ctx)
	}
	if err == nil {
		return nil
	}
	return &UnavailableError{Sequence: define.ShownName(q.name), Server: s.members.NameFor(q.name), Ordered: q.numbers.Ordered(), Err: err}
}
