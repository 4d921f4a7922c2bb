package sequence

import (
	"context"
	"errors"
	"fmt"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/store"
)

// makeOrdered makes an ORDER sequence of one, and changes whatever else a says. As soon as the
// change is committed nobody reserves numbers to hold them; but what other proxies hold already
// they give until they hear of it. So it returns when all have confirmed that, and no fail-over can
// lose it. Before that the new order is not promised to anybody; if somebody does not confirm, it
// is taken back (see takeBackOrder).
func (s *Sequences) makeOrdered(ctx context.Context, name []byte, a Alteration) (Altered, error) {
	r, stop := s.requestWithin(ctx, s.timing.confirm)
	defer stop()
	ctx = r.ctx
	s.startFollowing()

	changed, err := s.alter(r, name, a)
	if err != nil {
		if changed.Name != "" {
			err = fmt.Errorf("%w; sequence %q %s", err, changed.Name, s.takeBackOrder(ctx, &changed))
		}
		return Altered{}, err
	}
	if err = s.waitForAll(ctx, changed.Version); err == nil {
		err = s.members.OrderedForGood(ctx, &changed, s.tuning.Load().OrderWithoutReplica, s.timing.confirm)
	}
	if err == nil {
		return alteredTo(&changed), nil
	}
	after := s.takeBackOrder(ctx, &changed)
	var cached *CachedError
	if errors.As(err, &cached) {
		cached.Sequence, cached.Table, cached.Order = changed.Name, s.members.First().Table.Proxies, after
		return Altered{}, cached
	}
	return Altered{}, r.failed(string(name), err)
}

// takeBackOrder makes a sequence whose ORDER is not confirmed what it was before r was written, and
// says what it is then, for people. One that was changed again since stays as it is: somebody may
// have been told that it is an ORDER sequence.
func (s *Sequences) takeBackOrder(ctx context.Context, r *store.Row) string {
	// The caller's patience may be over.
	ctx, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), s.timing.takeBack, await.ErrPatience)
	defer stop()
	now, err := s.members.Alter(ctx, r.Name, Alteration{Order: &r.WasOrder}, r.Version)
	s.seeChanges(ctx)
	switch {
	case errors.Is(err, ErrUnknown):
		return "was dropped meanwhile"
	case err != nil:
		s.log.Warn("order not confirmed by all",
			logfield.Sequence(define.ShownName(r.Name)), logfield.Err(err))
		return "may be an ORDER sequence"
	case now.Def.Order && r.WasOrder:
		return "is an ORDER sequence, as before"
	case now.Def.Order:
		return "is an ORDER sequence, as it was changed again meanwhile"
	case r.WasOrder:
		return "is no ORDER sequence any more, as it was changed again meanwhile"
	}
	return "is no ORDER sequence"
}
