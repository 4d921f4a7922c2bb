package proxy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/login"
)

// A paused shard gets no new statement: commands for it wait before they go there, in
// enter, and whoever has paused it waits for those that were there before. Neither side
// takes a lock that both share: a session says which shard it is about to use and looks
// then whether that is paused; a pause is in force before its maker looks at the sessions.
// So of the two at least one sees the other.

// enter has the command being handled wait while a shard is paused, unless the session has
// a transaction open or has begun the command there before. What came before the command
// may be sent and answered meanwhile.
func (a *attachment) enter(shard *backend.Shard) error {
	if engaged := a.engaged.Load(); !engaged.Has(shard) {
		a.engaged.Store(engaged.With(shard))
	}
	if shard.Paused() != nil && !a.entered.Has(shard) {
		if err := a.above.settle(); err != nil { // it may begin a transaction, or end one
			return err
		}
		if !a.state.InTransaction() {
			if err := a.awaitResume(shard); err != nil {
				return err
			}
			a.waited = true
		}
	}
	a.entered = a.entered.With(shard)
	return nil
}

// enterBoth is enter for a command that needs two shards at the same time.
func (a *attachment) enterBoth(one, other *backend.Shard) error {
	for {
		if err := a.enter(one); err != nil {
			return err
		}
		if err := a.enter(other); err != nil || a.engaged.Load().Has(one) {
			// or it has waited, and the first may be paused now
			return err
		}
	}
}

// awaitResume waits until a shard is not paused any more. It ends with the session, by
// KILL QUERY, by a shutdown, and after Options.PauseTimeout.
func (a *attachment) awaitResume(shard *backend.Shard) (err error) {
	if err := a.client.flush(); err != nil { // the answers of our own to what came before
		return err
	}
	a.login.Leave() // others need not wait for it
	a.shared.held.Add(1)
	defer a.shared.held.Add(-1)
	timer := time.NewTimer(a.set.PauseTimeout)
	defer timer.Stop()
	spent := a.patience.Spent()
	defer func() {
		err = a.patience.Over(err)
		a.patience.Restore(spent) // it was no sequence server that the command waited for
		a.unreached = err != nil
	}()
	for {
		p := shard.Paused()
		if p == nil {
			return a.prolongLogin()
		}
		a.engaged.Store(nil)
		a.entered = nil
		select {
		case <-p.Resumed():
		case <-a.patience.Done():
			return a.patience.Err()
		case <-a.shared.stopping:
			return login.ErrShutdown
		case <-timer.C:
			return protocol.Errorf(erShardLost, "HY000", "seqproxy: shard %s is paused since %s by SEQPROXY PAUSE, and was not resumed within %s",
				shard.Name(), p.Since().Format("2006-01-02 15:04:05 MST"), a.set.PauseTimeout)
		}
		a.engaged.Store(a.entered.With(shard)) // before it is looked at again
	}
}

// disengage takes note that what the session does now needs no server. Nothing is in flight.
func (a *attachment) disengage() {
	if !a.state.InTransaction() {
		a.engaged.Store(nil)
	}
}

// restLocked takes note that the session waits for a command.
func (a *attachment) restLocked() {
	a.resting, a.transacting = true, a.state.InTransaction()
	if a.engaged.Load().Many() { // of these it can be in a transaction on one alone
		var one *backend.ShardSet
		if a.cur != nil {
			one = one.With(a.cur.Shard())
		}
		a.engaged.Store(one)
	}
}

// usesLocked says, from outside, whether a session has a statement or a transaction on
// some shards.
func (a *attachment) usesLocked(shards *backend.ShardSet) bool {
	return a.engaged.Load().Meets(shards) && (!a.resting || a.transacting)
}

const (
	// pausePatience bounds how long Pause waits for the sessions that use a shard.
	pausePatience = 10 * time.Second
	pausePoll     = 20 * time.Millisecond
)

// Paused is what a Pause has come to. There is no such shard if none is in it.
type Paused struct {
	Shards  []*backend.Shard // those that are paused
	Resumed []*backend.Shard // those that were, but are not any more
	Busy    int              // how many sessions still use some of these
}

// Pause holds statements for a shard back from now on; "" is all shards, with those that a
// reload adds meanwhile. It waits until no session uses one of them, but for a bounded
// time. Of the sessions the one with the connection id by, who asks, is none.
func (s *Server) Pause(ctx context.Context, shard string, by uint32) (out Paused) {
	ctx, cancel := context.WithTimeout(ctx, pausePatience)
	defer cancel()
	var set *backend.ShardSet
	pauses := make(map[*backend.Pause]*backend.Shard)
	for {
		before := set
		s.pausing.Lock()
		for _, p := range s.settings.Load().routes.Named(shard) {
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
		case <-s.stopping:
			return busy
		case <-ctx.Done():
			return busy
		}
	}
}

// using counts the sessions but one that use one of some shards.
func (s *Server) using(shards *backend.ShardSet, but uint32) (n int) {
	s.eachAt(false, func(sess *session) {
		sess.mu.Lock()
		defer sess.mu.Unlock()
		if sess.id != but && sess.usesLocked(shards) {
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
	named := s.settings.Load().routes.Named(shard)
	for _, p := range named {
		if p.Resume() {
			resumed = append(resumed, p)
		}
	}
	return resumed, len(named) > 0
}

// Held counts the sessions that wait for a shard that is paused.
func (s *Server) Held() int { return int(s.held.Load()) }
