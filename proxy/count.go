package proxy

import (
	"time"

	"seqproxy/backend"
	"seqproxy/proxy/stats"
)

// handled counts the command that was in hand. An error is that of the session's end.
func (s *session) handled(err error) {
	if k, sentTo := s.tally.Handled(err); k != stats.NoStatement {
		s.slow.kind, s.slow.sentTo = k, sentTo
	}
}

// reportLocked tells what the session has done, and where it is.
func (s *session) reportLocked(now time.Duration) {
	at := stats.Standing{Schema: s.state.Schema, Pins: s.state.AllPins()}
	if s.cur != nil {
		at.Shard = s.cur.Shard()
	}
	s.tally.ReportLocked(now, s.client.Conn, at, s.numbers.Patience.TakeWaited(), &s.srv.counters.Overheads)
}

// reportEnd tells what the session has done, to the server's totals; Server.mu is held.
func (s *session) reportEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportLocked(stats.Clock())
	s.srv.totals.Add(s.tally.Report)
}

// dropTallies has the totals keep what is counted of shards that the session has done with.
func (s *session) dropTallies() {
	s.tally.Drop(func(shard *backend.Shard) bool { return s.conns[shard] == nil && !s.routes.Has(shard) }, &s.srv.mu, &s.srv.totals)
}

// noteError takes note of the error that a server has answered with, if it has.
func noteError(c *backend.Conn) {
	if code := c.Answer.ErrCode; code != 0 {
		c.CountError(code)
	}
}
