package proxy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"seqproxy/backend"
	"seqproxy/proxy/session"
)

// A paused shard gets no new statement: commands for it wait before they go there, in
// enter, and whoever has paused it waits for those that were there before. Neither side
// takes a lock that both share: a session says which shard it is about to use and looks
// then whether that is paused; a pause is in force before its maker looks at the sessions.
// So of the two at least one sees the other.

const (
	// pausePatience bounds how long Pause waits for the sessions that use a shard.
	pausePatience = 10 * time.Second
	pausePoll     = 20 * time.Millisecond
)

// Paused is what a Pause has come to. If both lists are empty, there is no such shard.
type Paused struct {
	Shards  []*backend.Shard // those that are paused
	Resumed []*backend.Shard // those that were, but are not any more
	Busy    int              // how many sessions still use some of these
}

// Pause holds statements for a shard back from now on; "" is all shards, with those that a
// reload adds meanwhile. It waits until no session uses one of them, but for a bounded
// time. The session with the connection id by asks for it, and does not count.
func (s *Server) Pause(ctx context.Context, shard string, by uint32) (out Paused) {
	ctx, cancel := context.WithTimeout(ctx, pausePatience)
	defer cancel()
	var set *backend.ShardSet
	pauses := make(map[*backend.Pause]*backend.Shard)
	for {
		before := set
		s.pausing.Lock()
		for _, p := range s.shared.Settings.Load().Routes.Named(shard) {
			if !set.Has(p) {
				pauses[p.Pause()] = p
				set = set.With(p)
			}
		}
		s.pausing.Unlock()
		if set == before {
			break
		}
		out.Busy = s.awaitUnused(ctx, set, by)
	}
	for pause, p := range pauses {
		if p.Paused() == pause {
			out.Shards = append(out.Shards, p)
		} else { // by a Resume, or since a reload has taken it away
			out.Resumed = append(out.Resumed, p)
		}
	}
	byName := func(a, b *backend.Shard) int { return cmp.Compare(a.Name(), b.Name()) }
	slices.SortFunc(out.Shards, byName)
	slices.SortFunc(out.Resumed, byName)
	return out
}

// awaitUnused waits until no session but one uses one of some shards, or ctx is done, and
// returns how many still do.
func (s *Server) awaitUnused(ctx context.Context, shards *backend.ShardSet, but uint32) (busy int) {
	tick := time.NewTicker(pausePoll)
	defer tick.Stop()
	for {
		if busy = s.using(shards, but); busy == 0 {
			return 0
		}
		select {
		case <-tick.C:
		case <-s.shared.Stopping:
			return busy
		case <-ctx.Done():
			return busy
		}
	}
}

// using counts the sessions but one that use one of some shards.
func (s *Server) using(shards *backend.ShardSet, but uint32) (n int) {
	s.eachAt(false, func(sess *session.Session) {
		if sess.ID() != but && sess.Uses(shards) {
			n++
		}
	})
	return n
}

// Resume lets the statements for a shard go on; "" is all shards. It returns those whose
// pause it has ended; exists is false if there is no shard of that name.
func (s *Server) Resume(shard string) (resumed []*backend.Shard, exists bool) {
	s.pausing.Lock()
	defer s.pausing.Unlock()
	named := s.shared.Settings.Load().Routes.Named(shard)
	for _, p := range named {
		if p.Resume() {
			resumed = append(resumed, p)
		}
	}
	return resumed, len(named) > 0
}

// PausedSessions counts the sessions that wait for a shard that is paused.
func (s *Server) PausedSessions() int { return int(s.shared.PausedSessions.Load()) }
