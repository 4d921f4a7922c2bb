// Package session is the life of a client: its login, and the loop from command to answer that
// relays, rewrites or answers.
//
// Start at Session, whose loop is commands: command chooses what becomes of each command, and
// query.go does so for an SQL text. The parts of a session, each of which sees only those above it:
//
//   - client is the connection to the client.
//   - outside is what other goroutines see.
//   - backends are the connections to servers.
//   - attachment chooses the connection for a command.
//   - relay passes commands out and answers back.
//   - failures answers commands with errors.
//   - facts asks for names, columns and variables.
//   - planning decides what becomes of a text.
//   - answers makes the proxy's own answers.
//   - tickets answers ticket servers' statements.
//   - delivery sends texts to servers.
//   - texts distinguishes kinds of texts.
//   - executor runs prepared statements.
//
// Other packages do the rest: state has what the client has set, plan decides from data, keys takes
// numbers, ticket serves ticket tables, login queues logins, kill ends statements, and stats
// counts.
package session
