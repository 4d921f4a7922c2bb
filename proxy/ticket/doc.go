// Package ticket recognises the idioms of ticket servers: which text is one for a listed table,
// when the proxy may answer it, and what the answer is.
//
// Start at [Tables.In], which finds the [Ticket] in a text, and at [Ticket.Take], which takes its
// number. The session sends the answer.
package ticket
