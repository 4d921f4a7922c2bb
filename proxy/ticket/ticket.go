package ticket

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"seqproxy/protocol"
	"seqproxy/proxy/state"
	"seqproxy/sequence"
	"seqproxy/statement"
	"seqproxy/statement/idiom"
)

// Table is a table whose ticket idioms the proxy answers: see [idiom.Ticket].
type Table struct {
	// Schema and Table name it as the servers do. Schema "" is every schema, and none.
	Schema, Table string
	// Counter gives the numbers of a table with an AUTO_INCREMENT column; nil: the table has a row
	// for each sequence.
	Counter *sequence.TicketTable
	// Name is the name of such a counter in the rights of users.
	Name string
}

// Tables are the listed tables, by name.
type Tables map[string][]Table

// NewTables returns the Tables of a list; nil for an empty one.
func NewTables(listed []Table) Tables {
	if len(listed) == 0 {
		return nil
	}
	tables := make(Tables)
	for _, t := range listed {
		tables[t.Table] = append(tables[t.Table], t)
	}
	return tables
}

// listed returns the listed table that a statement means; where the current schema is not known,
// one that it may mean.
func (tables Tables) listed(schema, table []byte, s *state.State) *Table {
	candidates := tables[string(table)]
	for i := range candidates {
		c := &candidates[i]
		if c.Schema == "" || schema != nil && c.Schema == string(schema) || schema == nil && (c.Schema == s.Schema || s.SchemaUnknown) {
			return c
		}
	}
	return nil
}

// Ticket is a ticket and its table.
type Ticket struct {
	idiom.Ticket
	Of *Table
}

// In finds the idiom of a listed table that a text is, or begins with; nil if there is none. st is
// the analysis of the text. The ticket aliases the text. Where the current schema is not known, it
// may be one of another table.
func (tables Tables) In(st *statement.Statement, sql []byte, s *state.State) *Ticket {
	switch st.Kind {
	case statement.Insert, statement.Replace, statement.Update, statement.Multi:
	default:
		return nil
	}
	// An UPDATE may name its table with an alias, which st.Tables omits.
	if len(st.Tables) > 0 && tables[string(st.Tables[0].Name)] == nil || len(st.Tables) == 0 && st.Kind != statement.Update {
		return nil
	}
	t, ok := idiom.MatchTicket(sql[st.Start:], s.Mode)
	t.End += st.Start
	if !ok {
		return nil
	}
	table := tables.listed(t.Schema, t.Table, s)
	switch {
	case table == nil:
		return nil
	case table.Counter != nil:
		ok = t.Kind == idiom.TicketReplace || t.Kind == idiom.TicketInsert
	default:
		ok = ofSequence(&t)
	}
	if !ok {
		return nil
	}
	return &Ticket{t, table}
}

// ofSequence reports whether a ticket is one of the table that has a row for each sequence, in its
// columns name and id.
func ofSequence(t *idiom.Ticket) bool {
	return (t.Kind == idiom.TicketUpdate || t.Kind == idiom.TicketUpsert) &&
		bytes.EqualFold(t.ID, []byte("id")) && bytes.EqualFold(t.Column, []byte("name"))
}

// Rest returns the text behind a ticket; alone says that there is none.
func (t *Ticket) Rest(sql []byte) (rest []byte, alone bool) {
	rest = sql[t.End:]
	return rest, len(bytes.Trim(rest, " \t\r\n;")) == 0
}

// Keep copies what t needs of its text.
func (t *Ticket) Keep() {
	t.Schema, t.Table, t.Key = bytes.Clone(t.Schema), bytes.Clone(t.Table), bytes.Clone(t.Key)
	t.ID, t.Column = bytes.Clone(t.ID), bytes.Clone(t.Column)
}

// Right is the name by which users may take its number; key is Key in UTF-8.
func (t *Ticket) Right(key []byte) []byte {
	if t.Of.Counter != nil {
		return []byte(t.Of.Name)
	}
	return key
}

// ServedIn reports whether a server would take a ticket in the session's state, and answer it as
// always. Otherwise the server answers.
func ServedIn(st *state.State) bool {
	if st.Status.Has(protocol.InReadOnlyTrans) || st.ReadOnly && !st.InTransaction() || st.NextTransaction {
		return false
	}
	if st.Pinned(state.PinTemporaryTable) || st.Pinned(state.PinTableLock) || st.Pinned(state.PinGlobalLock) || st.Pinned(state.PinInsertID) {
		return false
	}
	for name := range st.Sysvars {
		switch name {
		case "auto_increment_increment", "auto_increment_offset":
			return false
		case "session_track_transaction_info", "session_track_gtids", "session_track_state_change":
			return false // a server would tell of its transaction
		}
	}
	return !st.TracksGTID
}

// Refusal returns why the server may not answer a ticket that the proxy cannot answer; "": it may.
// With several sequence servers the number behind a row belongs to another one, unless they divide
// the numbers in steps of the same width, multiple. configured is the configured width; 1: none.
func (t *Ticket) Refusal(several bool, multiple, configured uint64) string {
	switch {
	case t.Of.Counter != nil || !several:
		return ""
	case multiple == 1 && configured > 1:
		return reservedRow
	case multiple == 1 || t.Kind != idiom.TicketUpdate || t.Step == 0:
		return sharedRow
	case t.Step%multiple != 0:
		return fmt.Sprintf("%d sequence servers divide the numbers in steps, so what is added to a row has to be a multiple of %[1]d, not %d", multiple, t.Step)
	}
	return ""
}

const (
	// sharedRow answers a ticket that would go to one of several sequence servers.
	sharedRow = "the number behind this row is another sequence server's, as there are several; " + askForTicket
	// reservedRow answers one if only reservations may move that server's row.
	reservedRow = "there are several sequence servers and nobody else counts in their rows (direct_writers = false), so this is not left to one of them; " + askForTicket

	askForTicket = "ask with SELECT NEXTVAL('name'), or with this statement where the session has no temporary table, is in no read-only transaction " +
		"and has set nothing that keeps it from being answered here (docs: Ticket tables)"
)

// Sequences gives the numbers of a table that has a row for each sequence. *sequence.Sequences
// implements it.
type Sequences interface {
	// Advance adds n to the counter of a sequence and returns it: the n numbers up to it are the
	// caller's. It creates no sequence.
	Advance(ctx context.Context, name []byte, n uint64) (id uint64, err error)
	// AdvanceOrCreate is Advance that may create the sequence, from 1.
	AdvanceOrCreate(ctx context.Context, name []byte, n uint64) (id uint64, created bool, err error)
}

// Answer is the content of a ticket's OK.
type Answer struct {
	Affected      uint64 // 0: no sequence of that name is known
	ID            uint64 // LAST_INSERT_ID() from now on, if Affected is not 0
	Info          string
	Transactional bool // the server would have made it part of a transaction
}

// Take takes the number of a ticket, whose Key in UTF-8 is key.
func (t *Ticket) Take(ctx context.Context, from Sequences, key []byte) (Answer, error) {
	if t.Of.Counter != nil {
		return t.count(ctx, key)
	}
	return t.advance(ctx, from, key)
}

// NotHere reports whether an error of Take means that the server must answer.
func NotHere(err error) bool {
	return errors.Is(err, sequence.ErrNoTicket) || errors.Is(err, sequence.ErrStep) || errors.Is(err, sequence.ErrBadOption)
}

// count takes a number of a table with an AUTO_INCREMENT column.
func (t *Ticket) count(ctx context.Context, stub []byte) (a Answer, err error) {
	var got sequence.Ticket
	if t.Kind == idiom.TicketReplace {
		got, err = t.Of.Counter.Replace(ctx, t.ID, t.Column, stub)
	} else {
		got, err = t.Of.Counter.Insert(ctx, t.ID)
	}
	a = Answer{Affected: 1, ID: got.Number, Transactional: got.Transactional}
	if got.Replaced {
		a.Affected = 2
	}
	return a, err
}

// advance takes a number of the sequence that has a row in the table.
func (t *Ticket) advance(ctx context.Context, from Sequences, name []byte) (a Answer, err error) {
	a.Transactional = true
	if t.Kind == idiom.TicketUpsert {
		var created bool
		a.ID, created, err = from.AdvanceOrCreate(ctx, name, t.Step)
		if a.Affected = 2; created {
			a.Affected = 1
		}
		return a, err
	}
	a.ID, err = from.Advance(ctx, name, t.Step)
	if errors.Is(err, sequence.ErrUnknown) {
		a.ID, a.Info = 0, "Rows matched: 0  Changed: 0  Warnings: 0"
		return a, nil
	}
	a.Affected, a.Info = 1, "Rows matched: 1  Changed: 1  Warnings: 0"
	return a, err
}
