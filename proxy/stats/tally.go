package stats

import (
	"slices"
	"sync"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/histogram"
	"seqproxy/protocol"
)

// Tally is what a session has done since it last told. Only its goroutine touches it: so
// counting needs no lock and no atomic operation. It is told where the session takes its
// lock anyway, before it waits for its client.
type Tally struct {
	mu     *sync.Mutex // the session's, which guards told
	Report *Report     // apart, since the two together fill a size of memory badly

	begun  time.Duration // when what the client sent last was read
	Mark   time.Duration // when the statement began that is in hand; see slow
	Round  uint32        // statements since then
	kinds  [unsent]uint32
	sentTo *backend.Shard // the command in hand, if servers see its kind
	Kind   Kind           // of that, so far

	// Of one round in sampleEvery the overhead is measured.
	sampled bool          // this is one
	skip    uint8         // rounds until the next one
	waiting time.Duration // in this one: for servers, or for the client
}

// Epoch is where Clock begins.
var Epoch = time.Now()

// Clock is the time since Epoch. It costs half of what time.Now does.
func Clock() time.Duration { return time.Since(Epoch) }

// NewTally is that of a session which begins. mu is the session's lock.
func NewTally(mu *sync.Mutex, now time.Duration) Tally {
	return Tally{mu: mu, Report: &Report{Since: now}}
}

// Start begins the first round of a session, after its login. serial is its number: sessions that
// begin together do not measure the same rounds.
func (t *Tally) Start(serial uint64, now time.Duration) {
	t.skip = uint8(serial % sampleEvery)
	t.Begins(now)
}

// sampleEvery is a prime, so that it does not fall in with the rounds of an application.
const sampleEvery = 31

// ofShard is what a session has had done by a shard.
type ofShard struct {
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

// Becomes takes note of what the command in hand is, unless it is more already, or no
// statement.
func (t *Tally) Becomes(k Kind) {
	if t.Kind != NoStatement && t.Kind < k {
		t.Kind = k
	}
}

// Refused takes note that the command in hand is answered with an error of the proxy's.
func (t *Tally) Refused() {
	if t.Kind != NoStatement {
		t.Kind = KindRefused
	}
}

// Sends takes note that the command in hand was sent to a server.
func (t *Tally) Sends(c *backend.Conn, k Kind) {
	if t.Kind > Prepare {
		t.Kind = max(t.Kind, k)
		t.sentTo = c.Shard()
	}
}

// Handled counts the command that was in hand, and returns what it was and which shard servers saw
// it of: NoStatement if it was no statement. An error is that of the session's end: then it counts
// only if it was sent.
func (t *Tally) Handled(err error) (k Kind, sentTo *backend.Shard) {
	k, sentTo = t.Kind, t.sentTo
	if k == NoStatement {
		return k, nil
	}
	t.Kind = NoStatement
	switch {
	case k == Prepare:
		return k, sentTo
	case k >= unsent:
		of := t.shard(sentTo)
		if k == KindRelay {
			of.newRelay++
		} else {
			of.newRewrite++
		}
	case err != nil:
		return k, sentTo
	default:
		t.kinds[k]++
	}
	t.Round++
	return k, sentTo
}

// shard returns what is counted of a shard.
func (t *Tally) shard(shard *backend.Shard) *ofShard {
	shards := t.Report.shards // its slice is only changed here
	for i := range shards {
		if shards[i].shard == shard {
			return &shards[i]
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Report.shards = append(t.Report.shards, ofShard{shard: shard})
	return &t.Report.shards[len(t.Report.shards)-1]
}

// Drop moves what is counted of shards that the session has done with to the totals, which mu
// guards: each reload may bring others.
func (t *Tally) Drop(past func(*backend.Shard) bool, mu *sync.Mutex, sum *Totals) {
	if !slices.ContainsFunc(t.Report.shards, func(of ofShard) bool { return past(of.shard) }) {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Report.shards = slices.DeleteFunc(t.Report.shards, func(of ofShard) bool {
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

// Counted takes note of the bytes that went over a backend connection.
func (t *Tally) Counted(c *backend.Conn) {
	of := t.shard(c.Shard())
	of.newReceived += c.TakeReceived()
	sent, stalled := c.TakeSent()
	of.newSent += sent
	t.waiting += stalled
}

// Fill is c.Fill, which waits for the server.
func (t *Tally) Fill(c *backend.Conn) error {
	if !t.sampled {
		return c.Fill()
	}
	begun := Clock()
	err := c.Fill()
	t.waiting += Clock() - begun
	return err
}

// Waits is where a time begins that is not the proxy's own, and Waited where it ends.
func (t *Tally) Waits() (begun time.Duration) {
	if !t.sampled {
		return 0
	}
	return Clock()
}

// Waited ends a time that Waits has begun.
func (t *Tally) Waited(begun time.Duration) {
	if t.sampled {
		t.waiting += Clock() - begun
	}
}

// Begins takes note that commands of the client were read.
func (t *Tally) Begins(now time.Duration) {
	t.begun, t.Mark, t.Round, t.waiting, t.sampled = now, now, 0, 0, t.skip == 0
	if t.sampled {
		t.skip = sampleEvery
	}
	t.skip--
}

// ReportLocked tells what the session has done. Its state is what it is from now on. waited is what
// it has waited for in the proxy itself; overheads has room for what is not explained by a wait.
func (t *Tally) ReportLocked(now time.Duration, client *protocol.Conn, at Standing, waited time.Duration, overheads *histogram.Shared) {
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
			overheads.Add(max(0, took-t.waiting-waited-stalled) / time.Duration(n))
		}
	}
	t.Round, t.begun, t.waiting = 0, now, 0
	to.Since, to.Standing = now, at
}

// reportEvery is how many bytes of an answer are told of at once, while it goes on.
const reportEvery = 1 << 20

// ReportLong tells of an answer's bytes while it goes on, if they are many.
func (t *Tally) ReportLong(client *protocol.Conn, c *backend.Conn) {
	if client.Sent() < reportEvery {
		return
	}
	received := c.TakeReceived()
	sent, stalled := client.TakeSent()
	t.waiting += stalled
	of := t.shard(c.Shard())
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
