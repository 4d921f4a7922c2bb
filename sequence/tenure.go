package sequence

import (
	"context"
	"errors"

	"seqproxy/internal/await"
	"seqproxy/sequence/member"
)

// errEnlisting: a fail-over was a moment ago, or this process does not know that none was.
var errEnlisting = errors.New("all proxies register again after a fail-over, and it is too early to say that all have: try again")

// waitForAll is waitForProxies, also for those whose registration a fail-over has lost.
func (s *Sequences) waitForAll(ctx context.Context, version uint64) error {
	seen := new(member.Tenure)
	for s.members.Now().Enlisted(seen, s.timing.tenure); ; {
		if err := s.waitForProxies(ctx, version); err != nil {
			return err
		}
		if s.members.Now().Enlisted(seen, s.timing.tenure) { // still: the list was of these nodes
			return nil
		}
		if !await.Pause(ctx, s.timing.follow) {
			return errEnlisting
		}
	}
}
