package proxy

import (
	"slices"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/histogram"
)

// Kind is what became of a client's statement: a text, or an execution of a prepared one
// (of many rows, it is one).
type Kind uint8

// The kinds of statements. What is more than one of them counts for the last of these;
// refused counts for that.
const (
	kindNone         Kind = iota // it is no statement
	kindPrepare                  // it is prepared, which counts only if it is refused
	KindRefused                  // answered with an error of the proxy's; also a PREPARE
	KindOwn                      // answered here, and none of the following
	KindLastInsertID             // SELECT LAST_INSERT_ID() and its like, answered here
	KindNextval                  // numbers given here: SELECT NEXTVAL(...), LASTVAL, SETVAL, tickets
	KindAdmin                    // about sequences, or the proxy itself
	KindRelay                    // passed on as it was
	KindRewrite                  // passed on in other words: with numbers, keys or ids in it; or numbers were put into its answer
	kinds
	unsent = KindRelay // the first kind that servers see
)

// String returns the kind's name in metrics.
func (k Kind) String() string {
	return [kinds]string{"", "", "refused", "own", "last_insert_id", "nextval", "admin", "relay", "rewrite"}[k]
}

// sent says whether a server sees statements of the kind.
func (k Kind) sent() bool { return k >= unsent }

// tally is what a session has done since it last told. Only its goroutine touches it: so
// counting needs no lock and no atomic operation. It is told where the session takes its
// lock anyway, before it waits for its client.
type tally struct {
	begun  time.Duration // when what the client sent last was read
	mark   time.Duration // when the statement began that is in hand; see slow
	round  uint32        // statements since then
	kinds  [unsent]uint32
	sentTo *backend.Shard // the command in hand, if servers see its kind
	kind   Kind           // of that, so far

	// Of one round in sampleEvery the overhead is measured.
	sampled bool          // this is one
	skip    uint8         // rounds until the next one
	waited  time.Duration // in this one: for servers, or for the client
}

// sampleEvery is a prime, so that it does not fall in with the rounds of an application.
const sampleEvery = 31

// told is what a session has told of itself. session.mu guards it.
type told struct {
	// Since settled.
	kinds       [unsent]uint32
	unsettled   uint32 // statements
	durations   [histogram.Ranges]uint32
	durationSum time.Duration

	shards         []shardTally // one for each that it had a connection to
	received, sent uint64       // bytes from and to the client
	statements     uint64
	since          time.Duration // of the session's state
	schema         string
	shard          *backend.Shard // the current one
	pins           pins
}

// shardTally is what a session has had done by a shard.
type shardTally struct {
	shard          *backend.Shard
	relay, rewrite uint32 // since settled
	received, sent uint64

	// What is not told yet: only the session's goroutine touches it.
	newRelay, newRewrite uint32
	newReceived, newSent uint64
}

// settleEvery is after how many statements of a session its numbers go to the totals:
// long before they overflow.
const settleEvery = 1 << 24

// becomes takes note of what the command in hand is, unless it is more already, or no
// statement.
func (t *tally) becomes(k Kind) {
	if t.kind != kindNone && t.kind < k {
		t.kind = k
	}
}

// refused takes note that the command in hand is answered with an error of the proxy's.
func (t *tally) refused() {
	if t.kind != kindNone {
		t.kind = KindRefused
	}
}

// sends takes note that the command in hand was sent to a server.
func (s *session) sends(c *backend.Conn, k Kind) {
	if s.tally.kind > kindPrepare {
		s.tally.becomes(k)
		s.tally.sentTo = c.Shard()
	}
}

// handled counts the command that was in hand. An error is that of the session's end: then
// it counts only if it was sent.
func (s *session) handled(err error) {
	t := &s.tally
	k := t.kind
	if k == kindNone {
		return
	}
	t.kind = kindNone
	s.slow.kind, s.slow.sentTo = k, t.sentTo
	switch {
	case k == kindPrepare:
		return
	case k.sent():
		of := s.shardTally(t.sentTo)
		if k == KindRelay {
			of.newRelay++
		} else {
			of.newRewrite++
		}
	case err != nil:
		return
	default:
		t.kinds[k]++
	}
	t.round++
}

// shardTally returns what is counted of a shard.
func (s *session) shardTally(shard *backend.Shard) *shardTally {
	shards := s.told.shards // its slice is only changed here
	for i := range shards {
		if shards[i].shard == shard {
			return &shards[i]
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told.shards = append(s.told.shards, shardTally{shard: shard})
	return &s.told.shards[len(s.told.shards)-1]
}

// dropTallies moves what is counted of shards that the session has done with to the
// server's totals: each reload may bring others.
func (s *session) dropTallies() {
	past := func(t shardTally) bool { return s.conns[t.shard] == nil && !s.routes.Has(t.shard) }
	if !slices.ContainsFunc(s.told.shards, past) {
		return
	}
	s.srv.mu.Lock()
	defer s.srv.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told.shards = slices.DeleteFunc(s.told.shards, func(t shardTally) bool {
		if !past(t) {
			return false
		}
		to := s.srv.totals.of(t.shard)
		to.relay += uint64(t.relay) + uint64(t.newRelay)
		to.rewrite += uint64(t.rewrite) + uint64(t.newRewrite)
		to.received += t.received + t.newReceived
		to.sent += t.sent + t.newSent
		return true
	})
}

// counted takes note of the bytes that went over a backend connection.
func (s *session) counted(c *backend.Conn) {
	of := s.shardTally(c.Shard())
	of.newReceived += c.TakeReceived()
	sent, stalled := c.TakeSent()
	of.newSent += sent
	s.tally.waited += stalled
}

// fillFrom is c.Fill, which waits for the server.
func (s *session) fillFrom(c *backend.Conn) error {
	begun := s.waits()
	err := c.Fill()
	s.waited(begun)
	return err
}

// waits is where a time begins that is not the proxy's own, and waited where it ends.
func (s *session) waits() (begun time.Duration) {
	if !s.tally.sampled {
		return 0
	}
	return clock()
}

func (s *session) waited(begun time.Duration) {
	if s.tally.sampled {
		s.tally.waited += clock() - begun
	}
}

// begins takes note that commands of the client were read.
func (t *tally) begins(now time.Duration) {
	t.begun, t.mark, t.round, t.waited, t.sampled = now, now, 0, 0, t.skip == 0
	if t.sampled {
		t.skip = sampleEvery
	}
	t.skip--
}

// tellLocked tells what the session has done. Its state is what it is from now on.
func (s *session) tellLocked(now time.Duration) {
	t, to := &s.tally, s.told
	for k, n := range t.kinds {
		to.kinds[k] += n
	}
	clear(t.kinds[:])
	for i := range to.shards {
		of := &to.shards[i]
		of.relay += of.newRelay
		of.rewrite += of.newRewrite
		of.received += of.newReceived
		of.sent += of.newSent
		of.newRelay, of.newRewrite, of.newReceived, of.newSent = 0, 0, 0, 0
	}
	received := s.client.TakeReceived()
	sent, stalled := s.client.TakeSent()
	to.received += received
	to.sent += sent
	if n := t.round; n > 0 {
		took := now - t.begun
		to.durations[histogram.Range(took)] += n
		to.durationSum += took * time.Duration(n)
		to.statements += uint64(n)
		to.unsettled += n
		if t.sampled {
			s.srv.counters.overheads.Add(max(0, took-t.waited-s.patience.waited-stalled) / time.Duration(n))
		}
	}
	t.round, t.begun, t.waited, s.patience.waited = 0, now, 0, 0
	to.since = now
	to.schema, to.pins, to.shard = s.state.schema, s.state.allPins(), nil
	if s.cur != nil {
		to.shard = s.cur.Shard()
	}
}

// tellEnd tells what the session has done, to the server's totals; Server.mu is held.
func (s *session) tellEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked(clock())
	s.srv.totals.add(s.told)
}

// tellEvery is how many bytes of an answer are told of at once, while it goes on.
const tellEvery = 1 << 20

// tellLong tells of an answer's bytes while it goes on, if they are many.
func (s *session) tellLong(c *backend.Conn) {
	if s.client.Sent() < tellEvery {
		return
	}
	received := c.TakeReceived()
	sent, stalled := s.client.TakeSent()
	s.tally.waited += stalled
	of := s.shardTally(c.Shard())
	s.mu.Lock()
	defer s.mu.Unlock()
	of.received += received
	s.told.sent += sent
}

// noteError takes note of the error that a server has answered with, if it has.
func (s *session) noteError(c *backend.Conn) {
	if code := c.Answer.ErrCode; code != 0 {
		c.CountError(code)
	}
}

// settleCounters moves counters of the session to the server's totals before they overflow.
func (s *session) settleCounters() {
	if s.told.unsettled < settleEvery {
		return
	}
	s.srv.mu.Lock()
	defer s.srv.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.told
	s.srv.totals.addCounters(to)
	to.kinds, to.unsettled, to.durations, to.durationSum = [unsent]uint32{}, 0, [histogram.Ranges]uint32{}, 0
	for i := range to.shards {
		to.shards[i].relay, to.shards[i].rewrite = 0, 0
	}
}
