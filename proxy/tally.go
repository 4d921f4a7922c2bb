package proxy

import (
	"slices"
	"sync"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/histogram"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
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
	mu   *sync.Mutex // the session's, which guards told
	told *told       // apart, since the two together fill a size of memory badly

	begun  time.Duration // when what the client sent last was read
	mark   time.Duration // when the statement began that is in hand; see slow
	round  uint32        // statements since then
	kinds  [unsent]uint32
	sentTo *backend.Shard // the command in hand, if servers see its kind
	kind   Kind           // of that, so far

	// Of one round in sampleEvery the overhead is measured.
	sampled bool          // this is one
	skip    uint8         // rounds until the next one
	waiting time.Duration // in this one: for servers, or for the client
}

// sampleEvery is a prime, so that it does not fall in with the rounds of an application.
const sampleEvery = 31

// told is what a session has told of itself. tally.mu guards it.
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
	standing
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
func (t *tally) sends(c *backend.Conn, k Kind) {
	if t.kind > kindPrepare {
		t.becomes(k)
		t.sentTo = c.Shard()
	}
}

// handled counts the command that was in hand, and returns what it was and which shard servers saw it
// of: kindNone if it was no statement. An error is that of the session's end: then it counts only if it
// was sent.
func (t *tally) handled(err error) (k Kind, sentTo *backend.Shard) {
	k, sentTo = t.kind, t.sentTo
	if k == kindNone {
		return k, nil
	}
	t.kind = kindNone
	switch {
	case k == kindPrepare:
		return k, sentTo
	case k.sent():
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
	t.round++
	return k, sentTo
}

// shard returns what is counted of a shard.
func (t *tally) shard(shard *backend.Shard) *shardTally {
	shards := t.told.shards // its slice is only changed here
	for i := range shards {
		if shards[i].shard == shard {
			return &shards[i]
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told.shards = append(t.told.shards, shardTally{shard: shard})
	return &t.told.shards[len(t.told.shards)-1]
}

// drop moves what is counted of shards that the session has done with to the totals, which mu guards:
// each reload may bring others.
func (t *tally) drop(past func(*backend.Shard) bool, mu *sync.Mutex, sum *totals) {
	if !slices.ContainsFunc(t.told.shards, func(of shardTally) bool { return past(of.shard) }) {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told.shards = slices.DeleteFunc(t.told.shards, func(of shardTally) bool {
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

// counted takes note of the bytes that went over a backend connection.
func (t *tally) counted(c *backend.Conn) {
	of := t.shard(c.Shard())
	of.newReceived += c.TakeReceived()
	sent, stalled := c.TakeSent()
	of.newSent += sent
	t.waiting += stalled
}

// fill is c.Fill, which waits for the server.
func (t *tally) fill(c *backend.Conn) error {
	begun := t.waits()
	err := c.Fill()
	t.waited(begun)
	return err
}

// waits is where a time begins that is not the proxy's own, and waited where it ends.
func (t *tally) waits() (begun time.Duration) {
	if !t.sampled {
		return 0
	}
	return clock()
}

func (t *tally) waited(begun time.Duration) {
	if t.sampled {
		t.waiting += clock() - begun
	}
}

// begins takes note that commands of the client were read.
func (t *tally) begins(now time.Duration) {
	t.begun, t.mark, t.round, t.waiting, t.sampled = now, now, 0, 0, t.skip == 0
	if t.sampled {
		t.skip = sampleEvery
	}
	t.skip--
}

// standing is where a session is when it tells.
type standing struct {
	schema string
	shard  *backend.Shard // the current one
	pins   state.Pins
}

// tellLocked tells what the session has done. Its state is what it is from now on. waited is what it has
// waited for in the proxy itself; overheads has room for what is not explained by a wait.
func (t *tally) tellLocked(now time.Duration, client *protocol.Conn, at standing, waited time.Duration, overheads *histogram.Shared) {
	to := t.told
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
	to.received += received
	to.sent += sent
	if n := t.round; n > 0 {
		took := now - t.begun
		to.durations[histogram.Range(took)] += n
		to.durationSum += took * time.Duration(n)
		to.statements += uint64(n)
		to.unsettled += n
		if t.sampled {
			overheads.Add(max(0, took-t.waiting-waited-stalled) / time.Duration(n))
		}
	}
	t.round, t.begun, t.waiting = 0, now, 0
	to.since, to.standing = now, at
}

// tellEvery is how many bytes of an answer are told of at once, while it goes on.
const tellEvery = 1 << 20

// tellLong tells of an answer's bytes while it goes on, if they are many.
func (t *tally) tellLong(client *protocol.Conn, c *backend.Conn) {
	if client.Sent() < tellEvery {
		return
	}
	received := c.TakeReceived()
	sent, stalled := client.TakeSent()
	t.waiting += stalled
	of := t.shard(c.Shard())
	t.mu.Lock()
	defer t.mu.Unlock()
	of.received += received
	t.told.sent += sent
}

// settle moves counters of the session to the totals, which mu guards, before they overflow.
func (t *tally) settle(mu *sync.Mutex, sum *totals) {
	if t.told.unsettled < settleEvery {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	to := t.told
	sum.addCounters(to)
	to.kinds, to.unsettled, to.durations, to.durationSum = [unsent]uint32{}, 0, [histogram.Ranges]uint32{}, 0
	for i := range to.shards {
		to.shards[i].relay, to.shards[i].rewrite = 0, 0
	}
}
