package sequence

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
)

// restart has a sequence, or the counter of a period, continue at a lower number, if no other proxy
// is registered: one that is not gives no numbers.
func (s *Sequences) restart(ctx context.Context, name string, a Alteration, ofPeriod bool) (Altered, error) {
	r, stop := s.requestWithin(ctx, s.timing.confirm)
	defer stop()
	s.startFollowing()

	seen := new(member.Tenure)
	for !s.members.Now().Enlisted(seen, s.timing.tenure) {
		if !await.Pause(r.ctx, s.timing.follow) {
			return Altered{}, r.failed(name, errEnlisting)
		}
	}
	done, was, err := s.members.Restart(r.ctx, name, a, ofPeriod, func() error {
		if !s.members.Now().Enlisted(seen, s.timing.tenure) {
			return errEnlisting
		}
		return nil
	})
	if err != nil {
		if errors.Is(err, link.ErrOutcome) && done.Name != "" {
			s.voidBefore(done.Name, done.Epoch) // it may have begun again
		}
		var others *RegisteredError
		if errors.As(err, &others) {
			return Altered{}, others
		}
		return Altered{}, r.failed(name, err)
	}
	s.voidBefore(done.Name, done.Epoch)
	s.log.Info("sequence restarted", logfield.Sequence(define.ShownName(done.Name)), zap.Uint64("at", done.Anchor), zap.Uint64("was", was))
	s.seeChanges(r.ctx)
	return Altered{Next: done.Anchor, Cycle: done.Def.Cycle}, nil
}
