// Package cache keeps the numbers of a sequence in memory and gives them.
//
// Start at [Cache]: [Cache.Take] gives numbers, and has the next segment reserved before it is
// needed. The numbers in memory are its stock (stock.go). A caller that finds none waits in its
// line (line.go, waiters.go). sizes.go has how many are reserved at a time, and demand.go when.
// revise.go has what happens to cached numbers when the sequence is changed, and ordered.go how
// numbers rise in the order of time.
//
// A cache sees its maker as an [Owner], and the source of numbers as a [Reserver]. It knows
// nothing of kinds of keys, of clients and of servers.
package cache
