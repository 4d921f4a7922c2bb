// Package cache holds the numbers of a sequence in memory and hands them out.
//
// Start at [Cache]: [Cache.Take] gives numbers, and has the next segment reserved before it is
// needed. What is in memory is its stock (stock.go). Who finds none there waits in its line (line.go,
// waiters.go). How many are reserved at a time is in sizes.go, and when in demand.go. What happens to
// numbers in memory when the sequence is changed is in revise.go, and how numbers rise in the order
// of time in ordered.go.
//
// A cache sees who has made it as an [Owner], and where numbers come from as a [Reserver]. It knows
// nothing of kinds of keys, of clients and of servers.
package cache
