package stats

import (
	"sync/atomic"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/histogram"
)

// Totals are the counters of ended sessions, and the settled ones of others. The server's lock
// guards it.
type Totals struct {
	kinds          [unsent]uint64
	shards         map[string]*shardTotals
	durations      histogram.Histogram
	received, sent uint64
}

type shardTotals struct {
	relay, rewrite uint64
	received, sent uint64
}

// Counters are counters that sessions raise directly, since that is seldom.
type Counters struct {
	Since     time.Time
	Ends      [endReasons]atomic.Uint64
	Auth      [authReasons]atomic.Uint64
	Overheads histogram.Shared
	Suspects  atomic.Uint64
	// MemoryWaits counts large statements that waited for memory.
	MemoryWaits atomic.Uint64
}

// Gather starts with the counters that are raised directly.
func (c *Counters) Gather() *Gathering {
	g := &Gathering{users: make(map[string]uint64)}
	g.Stats = Stats{Since: c.Since, Overheads: c.Overheads.Read(), SuspectIDs: c.Suspects.Load()}
	for r := range c.Ends {
		g.Stats.Disconnects = append(g.Stats.Disconnects, Count{endNames[r], c.Ends[r].Load()})
	}
	for r := range c.Auth {
		g.Stats.AuthFailures = append(g.Stats.AuthFailures, Count{authNames[r], c.Auth[r].Load()})
	}
	return g
}

// Clone returns a copy that may be added to.
func (t *Totals) Clone() Totals {
	c := *t
	c.shards = make(map[string]*shardTotals, len(t.shards))
	for name, shard := range t.shards {
		of := *shard
		c.shards[name] = &of
	}
	return c
}

// Add adds all that a session has reported and not settled.
func (t *Totals) Add(report *Report) {
	t.addCounters(report)
	t.received += report.Received
	t.sent += report.Sent
	for i := range report.shards {
		of := &report.shards[i]
		to := t.of(of.shard)
		to.received += of.received
		to.sent += of.sent
	}
}

// addCounters is Add for what a session settles during its life.
func (t *Totals) addCounters(report *Report) {
	for k, n := range report.kinds {
		t.kinds[k] += uint64(n)
	}
	for i, n := range report.durations {
		t.durations.Counts[i] += uint64(n)
	}
	t.durations.Sum += report.durationSum
	for i := range report.shards {
		of := &report.shards[i]
		to := t.of(of.shard)
		to.relay += uint64(of.relay)
		to.rewrite += uint64(of.rewrite)
	}
}

func (t *Totals) of(shard *backend.Shard) *shardTotals {
	if t.shards == nil {
		t.shards = make(map[string]*shardTotals)
	}
	to := t.shards[shard.Name()]
	if to == nil {
		to = &shardTotals{}
		t.shards[shard.Name()] = to
	}
	return to
}
