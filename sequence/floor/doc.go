// Package floor remembers what a process has reserved, so that it never reserves that again: when a
// row goes back, as after a restored backup, its numbers are not given a second time. [Marks]
// remember it in memory, and a [State] on disk, for the next process.
//
// Start at [Marks].
package floor
