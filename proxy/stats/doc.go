// Package stats counts what sessions do, and reports it: statements by kind, their durations,
// bytes, and why sessions ended.
//
// Start at [Tally], in which one session counts without a lock. A [Report] is what others may see
// of it, [Totals] are the counters of ended sessions, and [Gathering] makes [Stats] of all.
package stats
