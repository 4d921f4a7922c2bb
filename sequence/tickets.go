package sequence

import (
	"context"
	"errors"

	"seqproxy/sequence/ticket"
)

// What there is to say of ticket tables; see package ticket.
type (
	// TicketTable gives the numbers of a table whose AUTO_INCREMENT column is a counter.
	TicketTable = ticket.Counter
	// Ticket is a number of a TicketTable.
	Ticket = ticket.Ticket
)

// ErrNoTicket is a ticket that is left to the server; see package ticket.
var ErrNoTicket = ticket.ErrNotServed

// TicketTable returns the table of that name on the sequence server, for as long as s lives. It
// does no I/O.
func (s *Sequences) TicketTable(database, name string) *TicketTable {
	return s.tickets.Counter(database, name)
}

// ticketOwner is Sequences as its ticket tables see them.
type ticketOwner struct{ s *Sequences }

// Request implements [ticket.Owner].
func (o ticketOwner) Request(ctx context.Context, table string, f func(ctx context.Context) error) error {
	if !o.s.begin() {
		return ErrClosed
	}
	defer o.s.tasks.Done()
	r, stop := o.s.request(ctx)
	defer stop()
	err := f(r.ctx)
	if err == nil || errors.Is(err, ErrNoTicket) {
		return err
	}
	return r.failed(table, err)
}
