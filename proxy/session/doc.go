// Package session is the life of a client: its login, and the loop from command to answer that
// relays, rewrites or answers.
//
// Start at Session, whose loop is commands: command says what becomes of each, query.go what
// becomes of an SQL text. Each part of a session sees only those before it: client is its
// connection, backends are those to servers, attachment says which of them a command runs on, relay
// passes commands out and answers back, order keeps the answers in the order of the commands, facts
// asks for names, columns and variables, planning decides what becomes of a text, answers has those
// of our own, tickets those of ticket servers, delivery sends texts to servers, texts distinguishes
// their kinds, executor has prepared statements. outside.go is what other goroutines see.
//
// Other rooms have what the session has set (state), what is decided from data (plan), the taking of
// numbers (keys), ticket servers (ticket), the queue of logins (login), KILL (kill) and counts
// (stats).
package session
