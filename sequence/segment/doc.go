// Package segment is the arithmetic of numbers: which numbers a reservation brings, whose they are,
// and how many are worth reserving. It is pure: no clock, no lock, no I/O.
//
// Start at [Segment], the numbers that one proxy owns. A [Rule] says which numbers a sequence has,
// a [Share] which of them one of several members gives, and a [Pace] how many to reserve next.
package segment
