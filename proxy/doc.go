// Package proxy is the life of a client: listener, login, and the loop from
// command to answer that relays, rewrites or answers.
//
// Start at session.serve; login.go lets a client in, commands.go says what becomes of each command,
// query.go what becomes of an SQL text, relay.go how bytes are passed on.
//
// Rooms of their own have what the session has set (state), what is decided from data (plan), the
// taking of numbers (keys), ticket servers (ticket), the queue of logins (login), KILL (kill) and
// counts (stats).
package proxy
