package stats

import (
	"cmp"
	"slices"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/histogram"
	"seqproxy/proxy/state"
)

// Report is what a session has reported. The session's lock guards it.
type Report struct {
	// Since the last Settle.
	kinds       [unsent]uint32
	unsettled   uint32 // statements
	durations   [histogram.Ranges]uint32
	durationSum time.Duration

	shards         []shardTally // one for each that it had a connection to
	Received, Sent uint64       // bytes from and to the client
	Statements     uint64
	Since          time.Duration // of the session's state
	Standing
}

// Standing is where a session is at a report.
type Standing struct {
	Schema string
	Shard  *backend.Shard // the current one
	Pins   state.Pins
}

// CountedShards returns for how many shards the session counts separately.
func (t *Report) CountedShards() int { return len(t.shards) }

// Info returns the reported state of the session.
func (t *Report) Info() SessionInfo {
	return SessionInfo{
		Since: Epoch.Add(t.Since), Statements: t.Statements, Schema: t.Schema, Pins: t.Pins.List(), Received: t.Received, Sent: t.Sent,
	}
}

// SortShards puts the current one first, and the others in the order of their names.
func (t *Report) SortShards(names []string) {
	current := ""
	if t.Standing.Shard != nil {
		current = t.Standing.Shard.Name()
	}
	slices.SortFunc(names, func(a, b string) int {
		if (a == current) != (b == current) {
			if a == current {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
}
