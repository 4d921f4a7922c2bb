package proxy

import (
	"context"
	"time"

	"seqproxy/backend"
)

// A paused shard gets no new statement: commands for it wait before they go there, in
// enter, and whoever has paused it waits for those that were there before. Neither side
// takes a lock that both share: a session says which shard it is about to use and looks
// then whether that is paused; a pause is in force before its maker looks at the sessions.
// So of the two at least one sees the other.

// enter has the command being handled wait while a shard is paused, unless the session has
// a transaction open or has begun the command there before. What came before the command
// may be sent and answered meanwhile.
func (s *session) enter(shard *backend.Shard) error {
	bit := shard.Bit()
	if s.engaged.Load()&bit == 0 {
		s.engaged.Or(bit)
	}
	if shard.Paused() != nil && s.entered&bit == 0 {
		if err := s.settle(); err != nil { // it may begin a transaction, or end one
			return err
		}
		if !s.state.inTransaction() {
			if err := s.awaitResume(shard); err != nil {
				return err
			}
			s.wasHeld = true
		}
	}
	s.entered |= bit
	return nil
}

// enterBoth is enter for a command that needs two shards at the same time.
func (s *session) enterBoth(a, b *backend.Shard) error {
	for both := a.Bit() | b.Bit(); ; {
		if err := s.enter(a); err != nil {
			return err
		}
		if err := s.enter(b); err != nil || s.engaged.Load()&both == both { // or it has waited, and a may be paused now
			return err
		}
	}
}

// awaitResume waits until a shard is not paused any more. It ends with the session, by
// KILL QUERY, by a shutdown, and after Options.PauseTimeout.
func (s *session) awaitResume(shard *backend.Shard) (err error) {
	s.leaveLogin() // others need not wait for it
	s.srv.held.Add(1)
	defer s.srv.held.Add(-1)
	timer := time.NewTimer(s.set.PauseTimeout)
	defer timer.Stop()
	defer func() { err = s.patience.over(err) }()
	for {
		p := shard.Paused()
		if p == nil {
			return nil
		}
		s.engaged.Store(0)
		s.entered = 0
		select {
		case <-p.Resumed():
		case <-s.patience.Done():
			return s.patience.Err()
		case <-s.srv.stopping:
			return errServerShutdown
		case <-timer.C:
			return sqlError(erShardLost, "HY000", "seqproxy: shard %s is paused since %s by SEQPROXY PAUSE, and was not resumed within %s",
				shard.Name(), p.Since().Format("2006-01-02 15:04:05 MST"), s.set.PauseTimeout)
		}
		s.engaged.Store(shard.Bit()) // before it is looked at again
	}
}

// disengage takes note that what the session does now needs no server. Nothing is in flight.
func (s *session) disengage() {
	if !s.state.inTransaction() {
		s.engaged.Store(0)
	}
}

// restLocked takes note that the session waits for a command.
func (s *session) restLocked() {
	s.resting, s.transacting = true, s.state.inTransaction()
	if e := s.engaged.Load(); e&(e-1) != 0 { // several: of these it can be in a transaction on one alone
		e = 0
		if s.cur != nil {
			e = s.cur.Shard().Bit()
		}
		s.engaged.Store(e)
	}
}

// usesLocked says, from outside, whether a session has a statement or a transaction on
// some shards.
func (s *session) usesLocked(shards uint64) bool {
	return s.engaged.Load()&shards != 0 && (!s.resting || s.transacting)
}

const (
	// pausePatience bounds how long Pause waits for the sessions that use a shard.
	pausePatience = 10 * time.Second
	pausePoll     = 20 * time.Millisecond
)

// Pause holds statements for a shard back from now on; "" is all shards. It waits until no
// session uses one of them, but for a bounded time, and returns those that are paused, and
// how many sessions use them still. Of these the one with the connection id by, who asks,
// is none. There is no such shard if none is returned.
func (s *Server) Pause(ctx context.Context, shard string, by uint32) (paused []*backend.Shard, busy int) {
	paused = s.settings.Load().routes.Named(shard)
	for _, p := range paused {
		p.Pause()
	}
	ctx, cancel := context.WithTimeout(ctx, pausePatience)
	defer cancel()
	tick := time.NewTicker(pausePoll)
	defer tick.Stop()
	var bits uint64
	for _, p := range paused {
		bits |= p.Bit()
	}
	for {
		if busy = s.using(bits, by); busy == 0 {
			return paused, 0
		}
		select {
		case <-tick.C:
		case <-s.stopping:
			return paused, busy
		case <-ctx.Done():
			return paused, busy
		}
	}
}

// using counts the sessions but one that use one of some shards.
func (s *Server) using(shards uint64, but uint32) (n int) {
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
// pause it has ended; known is false if there is no shard of that name.
func (s *Server) Resume(shard string) (resumed []*backend.Shard, known bool) {
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
