// Package snowflake gives the keys of SNOWFLAKE: time, worker, counter. No clock decides whether a
// key is unique. The time of each worker is a counter as any other, whose numbers are ticks since
// the epoch. A process reserves ticks ahead, as segments of that counter, so each tick of a worker
// belongs to one process for ever; in a tick that process counts. The clock only says which of the
// ticks that are reserved is the present one.
//
// Start from [Generator].
package snowflake
