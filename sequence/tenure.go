package sequence

import (
	"context"
	"errors"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/link"
)

// errEnlisting: a fail-over was a moment ago, or this process does not know that none was.
var errEnlisting = errors.New("all proxies register again after a fail-over, and it is too early to say that all have: try again")

// tenure is the time in which this process has known a node of a group as the one that is written
// to, without a break.
type tenure struct {
	node        *link.Choice
	since, last time.Time
}

// stays takes note of a sign of life that this process has just given to a node. One caller at a
// time.
func (v *server) stays(now *link.Choice) {
	if now == nil || now != v.Current() {
		return
	}
	next := tenure{node: now, since: time.Now(), last: time.Now()}
	if t := v.tenure.Load(); t != nil && t.node == now && next.last.Sub(t.last) < v.timing.stale {
		next.since = t.since
	}
	v.tenure.Store(&next)
}

// servingFor is for how long the node in use has been known, by signs of life, or by who asks again
// and again with the same seen.
func (v *server) servingFor(seen map[*server]tenure) time.Duration {
	now := v.Current()
	if seen[v].node != now || now == nil {
		seen[v] = tenure{node: now, since: time.Now()}
	}
	since := seen[v].since
	if t := v.tenure.Load(); t != nil && t.node == now && time.Since(t.last) < v.timing.stale && t.since.Before(since) {
		since = t.since
	}
	return time.Since(since)
}

// enlisted reports whether all proxies have had the time to be registered on the nodes in use (see
// timing.tenure), who asks again and again with the same seen.
func (a *servers) enlisted(seen map[*server]tenure) bool {
	all := true
	for _, v := range a.view.Load().live() {
		all = (!v.ceilings.InForce() || v.servingFor(seen) >= a.timing.tenure) && all
	}
	return all
}

// waitForAll is waitForProxies, also for those whose registration a fail-over has lost.
func (s *Sequences) waitForAll(ctx context.Context, version uint64) error {
	seen := make(map[*server]tenure)
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
