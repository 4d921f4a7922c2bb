// Package stats counts what sessions do, and tells it: statements by kind, their durations, bytes,
// why sessions ended.
//
// Start at Tally, in which one session counts without a lock. Told is what others may see of it,
// Totals what is left of sessions that have ended, and Gathering puts all together to Stats.
package stats
