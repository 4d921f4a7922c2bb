// Package snowflake gives the keys of SNOWFLAKE: time, worker, counter. No clock decides whether a
// key is unique. The time of each worker is a counter like any other, whose numbers are ticks since
// the epoch. A process reserves ticks ahead, as segments of that counter. So each tick of a worker
// belongs to one process for ever, and that process counts within it. The clock only decides which
// of the reserved ticks is the present one.
//
// Start at [Generator].
package snowflake
