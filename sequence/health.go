package sequence

import (
	"context"
	"errors"

	"seqproxy/sequence/define"
	"seqproxy/sequence/member"
	"seqproxy/sequence/members"
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
	if err := s.anyAnswers(ctx, s.members.Now()); err != nil {
		return &UnavailableError{Server: s.serverName(), Err: err}
	}
	return nil
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
	if err := s.members.Now().LastFailure(); err != nil {
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
	if home == nil {
		if err = s.anyAnswers(ctx, w); err == nil {
			return nil
		}
	} else if err = home.Answers(ctx); err == nil {
		return nil
	}
	return &UnavailableError{Sequence: define.ShownName(q.name), Server: s.members.NameFor(q.name), Ordered: q.numbers.Ordered(), Err: err}
}
