package sequence

import (
	"context"
	"errors"

	"seqproxy/internal/logfield"
)

// makeOrdered makes an ORDER sequence of one, and changes whatever else a says. As soon as the change is committed nobody reserves
// numbers to hold them; but what other proxies hold already they give until they hear of it. So it returns when all have confirmed
// that. Before that the new order is not promised to anybody; if somebody does not confirm, it is taken back.
func (s *Sequences) makeOrdered(ctx context.Context, name []byte, a Alteration) (Altered, error) {
	r, stop := s.requestWithin(ctx, restartPatience)
	defer stop()
	ctx = r.ctx
	s.startFollowing()

	changed, err := s.alter(r, name, a)
	if err != nil {
		return Altered{}, err
	}
	if err = s.waitForProxies(ctx, changed.version); err == nil {
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
