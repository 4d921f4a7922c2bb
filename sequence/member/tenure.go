package member

import (
	"time"

	"seqproxy/sequence/link"
)

// Tenure is the time in which this process has seen, without a break, the same node of a group be
// the writable one.
type Tenure struct {
	node        *link.Choice
	since, last time.Time
}

// stays records a heartbeat that this process has just written to a node. One caller at a time.
func (v *Server) stays(now *link.Choice) {
	if now == nil || now != v.Current() {
		return
	}
	next := Tenure{node: now, since: time.Now(), last: time.Now()}
	if t := v.tenure.Load(); t != nil && t.node == now && next.last.Sub(t.last) < v.timing.Stale {
		next.since = t.since
	}
	v.tenure.Store(&next)
}

// servingFor is for how long the node in use has been the same, by heartbeats, or by a caller that
// asks repeatedly with the same seen.
func (v *Server) servingFor(seen *Tenure) time.Duration {
	now := v.Current()
	if seen.node != now || now == nil {
		*seen = Tenure{node: now, since: time.Now()}
	}
	since := seen.since
	if t := v.tenure.Load(); t != nil && t.node == now && time.Since(t.last) < v.timing.Stale && t.since.Before(since) {
		since = t.since
	}
	return time.Since(since)
}

// HeartbeatsTo returns the node that gets the heartbeats, and since when it does.
func (v *Server) HeartbeatsTo() (node *link.Node, since time.Time) {
	if t := v.tenure.Load(); t != nil {
		return t.node.Node, t.since
	}
	return nil, time.Time{}
}
