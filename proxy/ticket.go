package proxy

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// TicketTable is a table whose ticket idioms are answered here: see [statement.Ticket].
type TicketTable struct {
	// Schema and Table name it as the servers do. Schema "" is every schema, and none.
	Schema, Table string
}

// ticketTables are those tables, by name.
type ticketTables map[string][]TicketTable

func newTicketTables(listed []TicketTable) ticketTables {
	if len(listed) == 0 {
		return nil
	}
	tables := make(ticketTables)
	for _, t := range listed {
		tables[t.Table] = append(tables[t.Table], t)
	}
	return tables
}

// listed returns the table that a statement means which runs in a current schema.
func (tables ticketTables) listed(schema, table []byte, current string) *TicketTable {
	candidates := tables[string(table)]
	for i := range candidates {
		c := &candidates[i]
		if c.Schema == "" || schema != nil && c.Schema == string(schema) || schema == nil && c.Schema == current {
			return c
		}
	}
	return nil
}

// ticketIn finds the idiom that a text is, or begins with, on a listed table.
func (s *session) ticketIn(st *statement.Statement, sql []byte) (t statement.Ticket, ok bool) {
	switch st.Kind {
	case statement.Insert, statement.Replace, statement.Update, statement.Multi:
	default:
		return t, false
	}
	// An UPDATE may name its table with an alias, which st.Tables leaves out.
	if len(st.Tables) > 0 && s.srv.tickets[string(st.Tables[0].Name)] == nil || len(st.Tables) == 0 && st.Kind != statement.Update {
		return t, false
	}
	if t, ok = statement.MatchTicket(sql, s.state.mode); !ok || s.srv.tickets.listed(t.Schema, t.Table, s.state.schema) == nil {
		return t, false
	}
	return t, isSequenceTicket(&t)
}

// isSequenceTicket says whether a ticket is one of the table that has a row for each
// sequence, in its columns name and id.
func isSequenceTicket(t *statement.Ticket) bool {
	return (t.Kind == statement.TicketUpdate || t.Kind == statement.TicketUpsert) &&
		bytes.EqualFold(t.ID, []byte("id")) && bytes.EqualFold(t.Column, []byte("name"))
}

// ticketText answers a text that is a ticket, or a ticket and a SELECT of the number.
// It is false if the text has to be relayed. Nothing is in flight.
func (s *session) ticketText(t *statement.Ticket, sql []byte) (handled bool, err error) {
	var then statement.Statement
	rest := sql[t.End:]
	alone := len(bytes.Trim(rest, " \t\r\n;")) == 0
	if !alone {
		if !s.severalAgreed() {
			return false, nil
		}
		if then.Analyze(rest, s.state.mode); !s.asksForID(&then) {
			return false, nil
		}
	}
	if t.KeyParam >= 0 || t.StepParam >= 0 || !s.ticketsServed() {
		return false, nil
	}
	answer, handled, err := s.takeTicket(t, s.state.charset)
	if !handled || err != nil {
		return handled, err
	}
	if !alone && !answer.moved {
		return false, nil // which number follows is the server's to know
	}
	if err := s.beginImplied(); err != nil {
		return true, err
	}
	if alone {
		s.answerTicket(&answer, 0)
		return true, nil
	}
	s.answerTicket(&answer, protocol.MoreResults)
	s.packetNum++
	return true, s.answerSelect(&then, rest, make([]bool, len(then.Calls)), nil)
}

// asksForID says whether a statement is a SELECT of nothing but LAST_INSERT_ID(), once
// or more, that is answered here.
func (s *session) asksForID(st *statement.Statement) bool {
	if !st.SelfContained || s.limitsRows() || s.mayOmitMetadata() || s.login.Capabilities.Has(protocol.NoSchema) {
		return false
	}
	return !slices.ContainsFunc(st.Calls, func(c statement.FuncCall) bool {
		return c.Func != statement.LastInsertID && c.Func != statement.LastInsertIDVariable
	})
}

// severalAgreed says whether a text may be of several statements.
func (s *session) severalAgreed() bool {
	if len(s.state.option) == 2 { // of the last COM_SET_OPTION
		return s.state.option[0] == 0 && s.state.option[1] == 0
	}
	return s.login.Capabilities.Has(protocol.MultiStatements)
}

// ticketsServed says whether the session is in a state where a server would take a
// ticket, and answer it as always. Where it is not, the server answers.
func (s *session) ticketsServed() bool {
	st := &s.state
	if st.status.Has(protocol.InReadOnlyTrans) || st.nextTransaction {
		return false
	}
	for _, pin := range st.pins {
		switch pin {
		case pinTemporaryTable, pinTableLock, pinGlobalLock, pinInsertID:
			return false
		}
	}
	for name := range st.sysvars {
		switch {
		case name == "tx_read_only", name == "transaction_read_only", name == "auto_increment_increment", name == "auto_increment_offset",
			strings.HasPrefix(name, "session_track_"):
			return false
		}
	}
	return true
}

// ticketAnswer is what the OK of a ticket says.
type ticketAnswer struct {
	affected uint64
	id       uint64
	moved    bool // id is LAST_INSERT_ID() now
	info     string
}

// takeTicket takes the number of a ticket, whose key is in a character set. handled is false if the server has to answer.
func (s *session) takeTicket(t *statement.Ticket, charset string) (a ticketAnswer, handled bool, err error) {
	name, err := s.nameInUTF8(t.Key, charset)
	if err != nil || len(name) == 0 {
		return a, false, nil
	}
	if err := s.mayUse(name); err != nil {
		return a, true, err
	}
	created := false
	if t.Kind == statement.TicketUpsert {
		a.id, created, err = s.srv.opts.Sequences.AdvanceOrCreate(&s.patience, name, t.Step)
	} else {
		a.id, err = s.srv.opts.Sequences.Advance(&s.patience, name, t.Step)
	}
	switch err = s.patience.over(err); {
	case err == nil:
		a.affected, a.moved = 1, true
	case errors.Is(err, sequence.ErrUnknown) && t.Kind == statement.TicketUpdate:
		a.id = 0
	case errors.Is(err, sequence.ErrStep), errors.Is(err, sequence.ErrBadOption):
		return a, false, nil
	default:
		return a, true, err
	}
	switch {
	case t.Kind == statement.TicketUpsert && !created:
		a.affected = 2
	case t.Kind == statement.TicketUpdate && a.affected == 0:
		a.info = "Rows matched: 0  Changed: 0  Warnings: 0"
	case t.Kind == statement.TicketUpdate:
		a.info = "Rows matched: 1  Changed: 1  Warnings: 0"
	}
	return a, true, nil
}

// beginImplied begins the transaction that a server would begin with the statement,
// where autocommit is off.
func (s *session) beginImplied() error {
	if s.state.status.Has(protocol.Autocommit) || s.state.inTransaction() || s.srv.opts.Shards.Default() == nil {
		return nil
	}
	c, err := s.attach()
	if err != nil {
		return err
	}
	if _, err := s.ownQuery(c, "START TRANSACTION"); err != nil {
		return err
	}
	s.state.observe(c.Answer.Status, c.Hello().MariaDB)
	return nil
}

// answerTicket answers with the OK of a ticket. more are flags beside the session's.
func (s *session) answerTicket(a *ticketAnswer, more protocol.Status) {
	if a.moved {
		s.state.lastID.told(a.id)
	}
	s.state.lastOwn, s.state.lastChanged = ownChange, a.affected
	s.out = protocol.AppendOK(s.out, s.packetNum, protocol.OK{
		AffectedRows: a.affected, InsertID: a.id, Status: s.status() | more, Info: a.info,
	})
}

// tellRowCount answers a SELECT of nothing but ROW_COUNT() and LAST_INSERT_ID(), right after
// a ticket, where no server can be made to say it: 2 rows, the deleted one and the new one.
func (s *session) tellRowCount(sql []byte) (handled bool, err error) {
	if s.state.lastChanged < 2 && s.srv.opts.Shards.Default() != nil || s.limitsRows() {
		return false, nil
	}
	items, ok := statement.SimpleSelect(sql, s.state.mode)
	if !ok {
		return false, nil
	}
	t := &protocol.Table{Rows: [][]any{nil}}
	for i := range items {
		c := protocol.Column{
			Name: items[i].Column, Charset: charsetBinary, Length: 21, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: flagNotNull | flagBinary,
		}
		value := s.state.lastChanged
		switch {
		case items[i].Kind != statement.SimpleFunction:
			return false, nil
		case items[i].Name == "row_count":
		case items[i].Name == "last_insert_id" && s.state.lastID.pending:
			value = s.state.lastID.value
			c.Flags |= flagUnsigned
		default:
			return false, nil
		}
		t.Columns = append(t.Columns, c)
		t.Rows[0] = append(t.Rows[0], value)
	}
	if err := s.table(t, nil); err != nil {
		return true, err
	}
	s.state.lastID.rows = false
	return true, nil
}
