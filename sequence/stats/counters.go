package stats

import (
	"sync/atomic"
	"time"
)

// Counters are the counts of servers, and those that no cache owns.
type Counters struct {
	Retries atomic.Uint64
	Lost    Lost // of all sequences

	Scores *Scores
}

// score returns the score of a sequence that has a cache.
func (c *Counters) score(name string) *Score { return c.Scores.Find(name) }

// Tried counts an attempt to reserve numbers on a server.
func (c *Counters) Tried(name string, on *Trials, result Result, took time.Duration) {
	c.score(name).attempts[result].Add(1)
	on.Durations[result].Add(took)
}

// Lose counts numbers that were reserved, or may have been, and that no cache has seen.
func (c *Counters) Lose(name string, why Unused, n uint64) {
	c.Lost[why].Add(n)
	c.score(name).lost[why].Add(n)
}

// WentBack counts a row that has gone back on a server.
func (c *Counters) WentBack(name string, on *Trials) {
	c.score(name).rewinds.Add(1)
	on.rewinds.Add(1)
}
