// Package agree has the members of a plan have one definition of each sequence. It finds what there
// is, and makes, changes and drops sequences.
//
// Start at [Definitions]. The rows of all members are locked, in the order of their positions, then
// changed, then committed one after the other, under one version (edit.go). On each member the row
// comes first: who waits for somebody else's lock on it has locked nothing that others need. A
// proxy that dies in between leaves members that differ. The entry with the higher version counts,
// also if it is a tombstone ([Agreed]), and the next proxy that looks for the sequence brings the
// others in line (reconcile). No row of one of several members goes down, and that alone keeps its
// numbers unique. A single server is one member that agrees with itself.
package agree
