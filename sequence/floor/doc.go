// Package floor knows what a process has reserved, and never takes again: where a row goes back, as
// by a restored backup, its numbers are given by nobody. [Marks] remember that in memory, and a
// [State] on disk, for the next process.
//
// Start from [Marks].
package floor
