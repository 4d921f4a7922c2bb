// Package stats counts the use of sequences and of their numbers.
//
// Start at [Score], which counts for one sequence what its caches do not count themselves: a
// [Tally]. [Counters] count for all sequences together, and for servers that no cache knows.
// [Unused] says why no client gets a number, [Result] how an attempt to reserve ended.
//
// It imports nothing that waits or does I/O.
package stats
