package sequence

import (
	"context"
	"database/sql"
	"errors"

	"seqproxy/sequence/define"
	"seqproxy/sequence/ticket"
)

// What there is to say of ticket tables; see package ticket.
type (
	// TicketTable gives the numbers of a table whose AUTO_INCREMENT column is a counter.
	TicketTable = ticket.Counter
	// Ticket is a number of a TicketTable.
	Ticket = ticket.Ticket
	// TicketImport names a ticket table, on any server, whose counter is to become a sequence.
	TicketImport = ticket.Import
	// TicketsImported says what an import did, or would do.
	TicketsImported = ticket.Imported
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

// ImportTickets makes a sequence of a ticket table's counter, see [ticket.Import.CarryOut]. conn is
// a connection to the table's server, whose session settings are changed.
func (s *Sequences) ImportTickets(ctx context.Context, conn *sql.Conn, o TicketImport) (TicketsImported, error) {
	return o.CarryOut(ctx, conn, importedSequence{s, o.Sequence}, ticket.ImportTiming{
		Silence: s.timing.Silence, Unlock: s.opts.Servers[0].IOTimeout, Again: s.timing.importAgain,
	})
}

// importedSequence is a sequence as an import sees it.
type importedSequence struct {
	s    *Sequences
	name string
}

// Look implements [ticket.Destination].
func (q importedSequence) Look(ctx context.Context) (def define.Definition, next, limit uint64, err error) {
	def, state, err := q.s.Describe(ctx, []byte(q.name))
	return def, state.After, state.Limit, err
}

// LimitOfNew implements [ticket.Destination].
func (q importedSequence) LimitOfNew(ctx context.Context, def *define.Definition) (uint64, error) {
	o := optionsToImport(def)
	made := o.Definition()
	return q.s.members.LimitOfNew(ctx, &made)
}

// Create implements [ticket.Destination].
func (q importedSequence) Create(ctx context.Context, def *define.Definition) (first uint64, err error) {
	made, err := q.s.Create(ctx, optionsToImport(def))
	return made.First, err
}

// Raise implements [ticket.Destination].
func (q importedSequence) Raise(ctx context.Context, n uint64) error {
	_, err := q.s.Raise(ctx, []byte(q.name), n)
	return err
}

// SetComment implements [ticket.Destination].
func (q importedSequence) SetComment(ctx context.Context, comment string) error {
	_, err := q.s.Alter(ctx, []byte(q.name), Alteration{Comment: &comment})
	return err
}

// optionsToImport are those of a sequence that an import makes.
func optionsToImport(def *define.Definition) CreateOptions {
	return CreateOptions{Name: def.Name, Increment: def.Increment, Start: def.Start, Max: def.Max, Comment: def.Comment}
}
