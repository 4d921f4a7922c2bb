// Package hangup notices clients and servers that have hung up on a session that does not read from
// them.
//
// Start at [Watch], which finds such sessions. A [Poller] sees the ends of many connections.
package hangup
