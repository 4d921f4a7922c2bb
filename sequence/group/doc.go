// Package group has a sequence server that is a group of nodes give no number which a fail-over could
// repeat: its ceilings.
//
// Start from [Ceilings]. [Ceilings.UpTo] is how far a reservation may go, and windows.go how that rises,
// ahead of need or because somebody waits. Package limit decides; what it needs are the tables of the
// chosen node (holder.go) and what the other nodes show (others.go). What was written that a fail-over
// must not lose is waited for with [Ceilings.ShownOn] and [Ceilings.OnNodes].
//
// A server of one node has no ceiling: all is allowed, and nothing is waited for.
package group
