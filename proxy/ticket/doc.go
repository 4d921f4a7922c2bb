// Package ticket knows the idioms of ticket servers: which text is one on a table that is listed,
// when it may be answered by the proxy, and what its answer says.
//
// Start at Tables.In, which finds the Ticket that a text is, and at Ticket.Take, which takes its
// number. The session sends the answer.
package ticket
