// Package stats counts what becomes of sequences and of their numbers.
//
// Start at [Score], which counts what becomes of one sequence, apart from what its caches count for
// themselves: a [Tally]. [Counters] count for all sequences together, and for servers that no cache
// knows of. [Unused] says why nobody gets a number, [Result] how an attempt to reserve ended.
//
// It imports nothing that waits or asks.
package stats
