package sequence

import (
	"context"
	"errors"
	"fmt"

	"seqproxy/internal/logfield"
)

// makeOrdered makes an ORDER sequence of one, and changes whatever else a says. As soon as the change is committed nobody reserves
// numbers to hold them; but what other proxies hold already they give until they hear of it. So it returns when all have confirmed
// that, and no fail-over can lose it. Before that the new order is not promised to anybody; if somebody does not confirm, it is taken back.
func (s *Sequences) makeOrdered(ctx context.Context, name []byte, a Alteration) (Altered, error) {
	r, stop := s.requestWithin(ctx, restartPatience)
	defer stop()
	ctx = r.ctx
	s.startFollowing()

	changed, err := s.alter(r, name, a)
	if err != nil {
		return Altered{}, err
	}
	if err = s.waitForAll(ctx, changed.version); err == nil {
		err = s.servers.orderedForGood(ctx, &changed)
	}
	if err == nil {
		return changed.altered(), nil
	}
	// The caller's patience may be over.
	after, stopAfter := context.WithTimeoutCause(context.WithoutCancel(ctx), thawTimeout, errPatience)
	defer stopAfter()
	if _, err := s.servers.alter(after, changed.name, Alteration{Order: new(bool)}); err != nil {
		s.log.Warn("order not confirmed by all",
			logfield.Sequence(changed.name), logfield.Err(err))
	}
	s.seeChanges(after)
	var held *HeldError
	if errors.As(err, &held) {
		held.Sequence, held.Table, held.Order = changed.name, s.servers.first().table.proxies, true
		return Altered{}, held
	}
	return Altered{}, r.failed(string(name), err)
}

// orderedForGood makes sure that a sequence that was made an ORDER sequence, as r was written, stays one after a fail-over. Where such numbers are given without replicas
// it is enough that no fail-over has lost that yet.
func (a *servers) orderedForGood(ctx context.Context, r *row) error {
	return errors.Join(a.each(ctx, a.members(), func(ctx context.Context, _ int, v *server) error {
		if !v.guarded() {
			return nil
		}
		if !v.tuning.Load().OrderWithoutReplica {
			if err := v.replicated(ctx, nil); err != nil {
				return err
			}
		}
		// Another node may have taken over since it was written, and have been asked instead.
		stored, err := v.look(ctx, r.name)
		if err == nil && (!stored.def.Order || stored.version < r.version) {
			err = fmt.Errorf("at %s sequence %q has not become an ORDER sequence: a fail-over has lost that, or somebody has changed it back; try again", v.at(), r.name)
		}
		return err
	})...)
}
