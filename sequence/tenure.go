package sequence

import (
	"context"
	"errors"

	"seqproxy/internal/await"
	"seqproxy/sequence/member"
)

// errEnlisting: a fail-over was a moment ago, or this process does not know that none was.
var errEnlisting = errors.New("all proxies register again after a fail-over, and it is too early to say that all have: try again")

// enlisted reports whether all proxies have had the time to be registered on the nodes in use (see
// timing.tenure), who asks again and again with the same seen.
func (a *servers) enlisted(seen map[*server]member.Tenure) bool {
	all := true
	for _, v := range a.view.Load().live() {
		all = (!v.Ceilings.InForce() || v.ServingFor(seen) >= a.timing.tenure) && all
	}
	return all
}

// waitForAll is waitForProxies, also for those whose registration a fail-over has lost.
func (s *Sequences) waitForAll(ctx context.Context, version uint64) error {
	seen := make(map[*server]member.Tenure)
	for s.servers.enlisted(seen); ; {
		if err := s.waitForProxies(ctx, version); err != nil {
			return err
		}
		if s.servers.enlisted(seen) { // still: the list was of these nodes
			return nil
		}
		if !await.Pause(ctx, s.timing.follow) {
			return errEnlisting
		}
	}
}
