// Package proxy is the life of a client: listener, login, and the loop from
// command to answer that relays, rewrites or answers.
//
// Start at session.serve; commands.go says what becomes of each command, query.go what becomes of
// an SQL text. Each part of a session sees only those before it: client is its connection, backends
// are those to servers, attachment says which of them a command runs on, relay passes commands out
// and answers back, planning decides what becomes of a text, answers has those of our own, tickets
// those of ticket servers, delivery sends texts to servers, executor has prepared statements.
//
// A lock that stands further left is taken first: Server.pausing, Server.mu, session.mu. Others
// guard the fields of one type for a few lines.
//
// Rooms of their own have what the session has set (state), what is decided from data (plan), the
// taking of numbers (keys), ticket servers (ticket), the queue of logins (login), KILL (kill) and
// counts (stats).
package proxy
