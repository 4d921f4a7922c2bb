package proxy

import (
	"time"

	"seqproxy/backend"
)

// handled counts the command that was in hand. An error is that of the session's end.
func (s *session) handled(err error) {
	if k, sentTo := s.tally.handled(err); k != kindNone {
		s.slow.kind, s.slow.sentTo = k, sentTo
	}
}

// tellLocked tells what the session has done, and where it is.
func (s *session) tellLocked(now time.Duration) {
	at := standing{schema: s.state.Schema, pins: s.state.AllPins()}
	if s.cur != nil {
		at.shard = s.cur.Shard()
	}
	s.tally.tellLocked(now, s.client, at, s.patience.waited, &s.srv.counters.overheads)
	s.patience.waited = 0
}

// tellEnd tells what the session has done, to the server's totals; Server.mu is held.
func (s *session) tellEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked(clock())
	s.srv.totals.add(s.tally.told)
}

// dropTallies has the totals keep what is counted of shards that the session has done with.
func (s *session) dropTallies() {
	s.tally.drop(func(shard *backend.Shard) bool { return s.conns[shard] == nil && !s.routes.Has(shard) }, &s.srv.mu, &s.srv.totals)
}

// noteError takes note of the error that a server has answered with, if it has.
func noteError(c *backend.Conn) {
	if code := c.Answer.ErrCode; code != 0 {
		c.CountError(code)
	}
}
