package stats

import (
	"slices"
	"sync"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/histogram"
	"seqproxy/protocol"
)

// Tally is what a session has done since its last report. Only the session's goroutine uses it, so
// counting needs no lock and no atomic operation. The session reports when it takes its lock
// anyway, before it waits for its client.
type Tally struct {
	mu     *sync.Mutex // the session's, which guards Report
	Report *Report     // allocated separately: both together fill a size class badly

	begun  time.Duration // when the client's last bytes were read
	Mark   time.Duration // when the present statement began; see slow
	Round  uint32        // statements since then
	kinds  [unsent]uint32
	sentTo *backend.Shard // the shard of the present command, if servers see its kind
	Kind   Kind           // of the present command, so far
	// Last is the kind of the last statement, and LastSentTo the shard that it was sent to.
	Last       Kind
	LastSentTo *backend.Shard

	// In one round of sampleEvery the overhead is measured.
	sampled bool          // this is such a round
	skip    uint8         // rounds until the next one
	Waiting time.Duration // in this round: for servers, for the client, or in the proxy itself
}

// Epoch is the zero of Clock.
var Epoch = time.Now()

// Clock returns the time since Epoch. It costs half of time.Now.
func Clock() time.Duration { return time.Since(Epoch) }

// NewTally returns the Tally of a new session. mu is the session's lock.
func NewTally(mu *sync.Mutex, now time.Duration) Tally {
	return Tally{mu: mu, Report: &Report{Since: now}}
}

// Start begins the first round of a session, after its login. serial is its number, so that
// sessions that begin together measure different rounds.
func (t *Tally) Start(serial uint64, now time.Duration) {
	t.skip = uint8(serial % sampleEvery)
	t.Begins(now)
}

// sampleEvery is a prime, so that it does not match the rounds of an application.
const sampleEvery = 31

// shardTally is the work that a shard has done for a session.
type shardTally struct {
	shard          *backend.Shard
	relay, rewrite uint32 // since the last Settle
	received, sent uint64

	// Not reported yet: only the session's goroutine uses it.
	newRelay, newRewrite uint32
	newReceived, newSent uint64
}

// settleEvery is the number of a session's statements after which its counters go to the totals,
// long before they overflow.
const settleEvery = 1 << 24

// Becomes raises the kind of the present command, unless it is no statement.
func (t *Tally) Becomes(k Kind) {
	if t.Kind != NoStatement && t.Kind < k {
		t.Kind = k
	}
}

// Refused records that the proxy answers the present command with an error.
func (t *Tally) Refused() {
	if t.Kind != NoStatement {
		t.Kind = KindRefused
	}
}

// Sends records that the present command was sent to a server.
func (t *Tally) Sends(c *backend.Conn, k Kind) {
	if t.Kind > Prepare {
		t.Kind = max(t.Kind, k)
		t.sentTo = c.Shard
	}
}

// Handled counts the present command, if it is a statement. After an error, which ends the session,
// it counts only if it was sent.
func (t *Tally) Handled(err error) {
	k := t.Kind
	if k == NoStatement {
		return
	}
	t.Kind, t.Last, t.LastSentTo = NoStatement, k, t.sentTo
	switch {
	case k == Prepare:
		return
	case k >= unsent:
		of := t.shard(t.sentTo)
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
	t.Round++
}

// shard returns the counters of a shard.
func (t *Tally) shard(shard *backend.Shard) *shardTally {
	shards := t.Report.shards // only this goroutine changes the slice
	for i := range shards {
		if shards[i].shard == shard {
			return &shards[i]
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Report.shards = append(t.Report.shards, shardTally{shard: shard})
	return &t.Report.shards[len(t.Report.shards)-1]
}

// Drop moves the counters of shards that the session no longer uses to the totals, which mu guards:
// each reload may bring others.
func (t *Tally) Drop(past func(*backend.Shard) bool, mu *sync.Mutex, sum *Totals) {
	if !slices.ContainsFunc(t.Report.shards, func(of shardTally) bool { return past(of.shard) }) {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Report.shards = slices.DeleteFunc(t.Report.shards, func(of shardTally) bool {
		if !past(of.shard) {
			return false
		}
		to := sum.of(of.shard)
		to.relay += uint64(of.relay) + uint64(of.newRelay)
		to.rewrite += uint64(of.rewrite) + uint64(of.newRewrite)
		to.received += of.received + of.newReceived
		to.sent += of.sent + of.newSent
		return true
	})
}

// Counted records the bytes that went over a backend connection.
func (t *Tally) Counted(c *backend.Conn) {
	of := t.shard(c.Shard)
	of.newReceived += c.TakeReceived()
	sent, stalled := c.TakeSent()
	of.newSent += sent
	t.Waiting += stalled
}

// Fill is c.Fill, which waits for the server. Before it, the bytes of a long answer are reported.
func (t *Tally) Fill(client *protocol.Conn, c *backend.Conn) error {
	if client.Sent() >= reportEvery {
		t.ReportLong(client, c)
	}
	if !t.sampled {
		return c.Fill()
	}
	begun := Clock()
	err := c.Fill()
	t.Waiting += Clock() - begun
	return err
}

// Waits begins a time that is not the proxy's own, and Waited ends it.
func (t *Tally) Waits() (begun time.Duration) {
	if !t.sampled {
		return 0
	}
	return Clock()
}

// Waited ends a time that Waits has begun.
func (t *Tally) Waited(begun time.Duration) {
	if t.sampled {
		t.Waiting += Clock() - begun
	}
}

// Begins records that commands of the client were read.
func (t *Tally) Begins(now time.Duration) {
	t.begun, t.Mark, t.Round, t.Waiting, t.sampled = now, now, 0, 0, t.skip == 0
	if t.sampled {
		t.skip = sampleEvery
	}
	t.skip--
}

// ReportLocked reports what the session has done, and its state from now on. overheads receives the
// time that no wait explains.
func (t *Tally) ReportLocked(now time.Duration, client *protocol.Conn, at Standing, overheads *histogram.Shared) {
	to := t.Report
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
	received := client.TakeReceived()
	sent, stalled := client.TakeSent()
	to.Received += received
	to.Sent += sent
	if n := t.Round; n > 0 {
		took := now - t.begun
		to.durations[histogram.Range(took)] += n
		to.durationSum += took * time.Duration(n)
		to.Statements += uint64(n)
		to.unsettled += n
		if t.sampled {
			overheads.Add(max(0, took-t.Waiting-stalled) / time.Duration(n))
		}
	}
	t.Round, t.begun, t.Waiting = 0, now, 0
	to.Since, to.Standing = now, at
}

// reportEvery is how many bytes of an answer are reported before its end.
const reportEvery = 1 << 20

// ReportLong reports an answer's bytes before its end, if they are many.
func (t *Tally) ReportLong(client *protocol.Conn, c *backend.Conn) {
	if client.Sent() < reportEvery {
		return
	}
	received := c.TakeReceived()
	sent, stalled := client.TakeSent()
	t.Waiting += stalled
	of := t.shard(c.Shard)
	t.mu.Lock()
	defer t.mu.Unlock()
	of.received += received
	t.Report.Sent += sent
}

// Settle moves counters of the session to the totals, which mu guards, before they overflow.
func (t *Tally) Settle(mu *sync.Mutex, sum *Totals) {
	if t.Report.unsettled < settleEvery {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	to := t.Report
	sum.addCounters(to)
	to.kinds, to.unsettled, to.durations, to.durationSum = [unsent]uint32{}, 0, [histogram.Ranges]uint32{}, 0
	for i := range to.shards {
		to.shards[i].relay, to.shards[i].rewrite = 0, 0
	}
}
