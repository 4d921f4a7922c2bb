// Package group keeps a fail-over in a group of nodes from repeating numbers, by ceilings.
//
// Start at [Ceilings]. [Ceilings.UpTo] is how far a reservation may go, and windows.go raises that,
// ahead of need or when a caller waits. Package limit decides; holder.go has the tables of the
// chosen node, and others.go what the other nodes show. [Ceilings.ShownOn] and [Ceilings.OnNodes]
// wait for a write that a fail-over must not lose.
//
// A server of one node has no ceiling: every number is allowed, without a wait.
package group
