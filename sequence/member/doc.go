// Package member reserves numbers on one sequence server, and keeps that server from giving one twice.
//
// Start from [Server]. [Server.Reserve] makes attempts: each ends with an outcome of package store, and
// remedy.go says what follows it. Numbers are taken below a ceiling, which other nodes of a group know
// (package group) or another member has recorded (witness.go), and above all that this process has had
// (package floor) and has seen in the row (lowest.go). Before the first one the process enters itself
// among the proxies (registration.go).
//
// The other members are an [Among], which the caller keeps: who asks them, and which one is next, is
// decided above.
package member
