package proxy

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/statement"
	"seqproxy/statement/idiom"
)

// TicketTable is a table whose ticket idioms are answered here: see [statement.Ticket].
type TicketTable struct {
	// Schema and Table name it as the servers do. Schema "" is every schema, and none.
	Schema, Table string
	// Counter gives the numbers of a table with an AUTO_INCREMENT column; nil: the table
	// has a row for each sequence.
	Counter *sequence.TicketTable
	// Name is what the rights of users call such a counter.
	Name string
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

// tableTicket is a ticket and the table that it is of.
type tableTicket struct {
	idiom.Ticket
	table *TicketTable
}

// ticketIn finds the idiom that a text is, or begins with, on a listed table; nil if there
// is none.
func (s *session) ticketIn(st *statement.Statement, sql []byte) *tableTicket {
	switch st.Kind {
	case statement.Insert, statement.Replace, statement.Update, statement.Multi:
	default:
		return nil
	}
	// An UPDATE may name its table with an alias, which st.Tables leaves out.
	if len(st.Tables) > 0 && s.set.tickets[string(st.Tables[0].Name)] == nil || len(st.Tables) == 0 && st.Kind != statement.Update {
		return nil
	}
	t, ok := idiom.MatchTicket(sql, s.state.Mode)
	if !ok {
		return nil
	}
	table := s.set.tickets.listed(t.Schema, t.Table, s.state.Schema)
	switch {
	case table == nil:
		return nil
	case table.Counter != nil:
		ok = t.Kind == idiom.TicketReplace || t.Kind == idiom.TicketInsert
	default:
		ok = isSequenceTicket(&t)
	}
	if !ok {
		return nil
	}
	return &tableTicket{t, table}
}

// isSequenceTicket says whether a ticket is one of the table that has a row for each
// sequence, in its columns name and id.
func isSequenceTicket(t *idiom.Ticket) bool {
	return (t.Kind == idiom.TicketUpdate || t.Kind == idiom.TicketUpsert) &&
		bytes.EqualFold(t.ID, []byte("id")) && bytes.EqualFold(t.Column, []byte("name"))
}

// ticketText answers a text that is a ticket, or a ticket and a SELECT of the number.
// It is false if the text has to be relayed. Nothing is in flight.
func (s *session) ticketText(t *tableTicket, sql []byte) (handled bool, err error) {
	var then statement.Statement
	rest, alone, served := s.ticketServed(t, sql, &then)
	if !served {
		if !alone && !s.severalAgreed() {
			return false, nil // an error there
		}
		return false, s.leaveToServer(t)
	}
	answer, handled, err := s.takeTicket(t, s.state.Charset)
	if !handled && err == nil {
		err = s.leaveToServer(t)
	}
	if !handled || err != nil {
		return handled, err
	}
	if !alone && !answer.moved {
		return false, s.leaveToServer(t) // which number follows is the server's to know
	}
	if err := s.beginImplied(&answer); err != nil {
		return true, err
	}
	if alone {
		s.answerTicket(&answer, 0)
		return true, nil
	}
	s.answerTicket(&answer, protocol.MoreResults)
	s.packetNum++
	return true, s.answerSelect(&then, rest, plan.Nothing(&then), nil)
}

// ticketServed says whether a text that is a ticket may be answered here. Behind it there
// may be a rest, which is then a SELECT of the number.
func (s *session) ticketServed(t *tableTicket, sql []byte, then *statement.Statement) (rest []byte, alone, served bool) {
	rest = sql[t.End:]
	alone = len(bytes.Trim(rest, " \t\r\n;")) == 0
	if !alone {
		if !s.severalAgreed() {
			return rest, alone, false
		}
		if then.Analyze(rest, s.state.Mode); !s.asksForID(then) {
			return rest, alone, false
		}
	}
	return rest, alone, t.KeyParam < 0 && t.StepParam < 0 && s.ticketsServed()
}

// leaveToServer prepares for a ticket to be sent that cannot be answered here, if it may. While the shard is paused it waits first, as the set of sequence
// servers may be changed meanwhile.
func (s *session) leaveToServer(t *tableTicket) error {
	if t.table.Counter == nil && s.routes.Default() != nil {
		if _, err := s.attach(); err != nil {
			return err
		}
	}
	return s.mayLeaveToServer(t)
}

// mayLeaveToServer says whether the server may answer a ticket that cannot be answered here. Where there are several sequence
// servers the number behind a row is another one's, unless they take turns and it is passed over.
func (s *session) mayLeaveToServer(t *tableTicket) error {
	if t.table.Counter != nil {
		return nil
	}
	several, turns, err := s.set.Sequences.Divided(&s.numbers.Patience)
	if err = s.numbers.Patience.Over(err); err != nil || !several {
		return err
	}
	switch {
	case turns == 1 && s.set.Sequences.Turns() > 1:
		return errOwnRow
	case turns == 1 || t.Kind != idiom.TicketUpdate || t.Step == 0:
		return errSharedRow
	case t.Step%turns != 0:
		return notSupported("%d sequence servers take turns, so what is added to a row has to be a multiple of %[1]d, not %d", turns, t.Step)
	}
	return nil
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
	if len(s.state.Option) == 2 { // of the last COM_SET_OPTION
		return s.state.Option[0] == 0 && s.state.Option[1] == 0
	}
	return s.login.Capabilities.Has(protocol.MultiStatements)
}

// ticketsServed says whether the session is in a state where a server would take a
// ticket, and answer it as always. Where it is not, the server answers.
func (s *session) ticketsServed() bool {
	st := &s.state
	if st.Status.Has(protocol.InReadOnlyTrans) || st.ReadOnly && !st.InTransaction() || st.NextTransaction {
		return false
	}
	if st.Pinned(state.PinTemporaryTable) || st.Pinned(state.PinTableLock) || st.Pinned(state.PinGlobalLock) || st.Pinned(state.PinInsertID) {
		return false
	}
	for name := range st.Sysvars {
		switch {
		case name == "auto_increment_increment", name == "auto_increment_offset",
			strings.HasPrefix(name, "session_track_"):
			return false
		}
	}
	return true
}

// ticketAnswer is what the OK of a ticket says.
type ticketAnswer struct {
	affected      uint64
	id            uint64
	moved         bool // id is LAST_INSERT_ID() now
	info          string
	transactional bool // the server would have made it a part of a transaction
}

// takeTicket takes the number of a ticket, whose key is in a character set. handled is
// false if the server has to answer.
func (s *session) takeTicket(t *tableTicket, charset string) (a ticketAnswer, handled bool, err error) {
	key, err := s.nameInUTF8(t.Key, charset)
	if err != nil {
		return a, false, nil
	}
	if t.table.Counter != nil {
		a, err = s.takeCounted(t, key)
	} else if len(key) > 0 {
		a, err = s.takeOfRow(t, key)
	} else {
		return a, false, nil
	}
	switch err = s.numbers.Patience.Over(err); {
	case errors.Is(err, sequence.ErrNoTicket), errors.Is(err, sequence.ErrStep), errors.Is(err, sequence.ErrBadOption):
		return a, false, nil
	}
	return a, true, err
}

// takeCounted takes a number of a table with an AUTO_INCREMENT column.
func (s *session) takeCounted(t *tableTicket, stub []byte) (a ticketAnswer, err error) {
	if err := s.mayUse([]byte(t.table.Name)); err != nil {
		return a, err
	}
	var ticket sequence.Ticket
	if t.Kind == idiom.TicketReplace {
		ticket, err = t.table.Counter.Replace(&s.numbers.Patience, t.ID, t.Column, stub)
	} else {
		ticket, err = t.table.Counter.Insert(&s.numbers.Patience, t.ID)
	}
	a = ticketAnswer{affected: 1, id: ticket.Number, moved: true, transactional: ticket.Transactional}
	if ticket.Replaced {
		a.affected = 2
	}
	return a, err
}

// takeOfRow takes a number of the sequence that has a row in the table.
func (s *session) takeOfRow(t *tableTicket, name []byte) (a ticketAnswer, err error) {
	if err := s.mayUse(name); err != nil {
		return a, err
	}
	a.transactional = true
	if t.Kind == idiom.TicketUpsert {
		var created bool
		a.id, created, err = s.set.Sequences.AdvanceOrCreate(&s.numbers.Patience, name, t.Step)
		if a.affected, a.moved = 2, true; created {
			a.affected = 1
		}
		return a, err
	}
	a.id, err = s.set.Sequences.Advance(&s.numbers.Patience, name, t.Step)
	if errors.Is(err, sequence.ErrUnknown) {
		a.id, a.info = 0, "Rows matched: 0  Changed: 0  Warnings: 0"
		return a, nil
	}
	a.affected, a.moved, a.info = 1, true, "Rows matched: 1  Changed: 1  Warnings: 0"
	return a, err
}

// beginImplied begins the transaction that a server would begin with the statement,
// where autocommit is off.
func (s *session) beginImplied(a *ticketAnswer) error {
	if !a.transactional || s.state.Status.Has(protocol.Autocommit) || s.state.InTransaction() || s.routes.Default() == nil {
		return nil
	}
	c, err := s.attach()
	if err != nil {
		return err
	}
	if _, err := s.ownQuery(c, "START TRANSACTION"); err != nil {
		return err
	}
	s.state.Observe(c.Answer.Status, c.Hello().MariaDB)
	return nil
}

// answerTicket answers with the OK of a ticket. more are flags beside the session's.
func (s *session) answerTicket(a *ticketAnswer, more protocol.Status) {
	s.tally.Becomes(stats.KindNextval)
	if a.moved {
		s.state.LastID.Told(a.id)
	}
	s.state.LastOwn, s.state.LastChanged = state.OwnChange, a.affected
	s.out = protocol.AppendOK(s.out, s.packetNum, protocol.OK{
		AffectedRows: a.affected, InsertID: a.id, Status: s.status() | more, Info: a.info,
	})
}

// tellRowCount answers a SELECT of nothing but ROW_COUNT() and LAST_INSERT_ID(), right after
// a ticket, where no server can be made to say it: 2 rows, the deleted one and the new one.
func (s *session) tellRowCount(sql []byte) (handled bool, err error) {
	if s.state.LastChanged < 2 && s.routes.Default() != nil || s.limitsRows() {
		return false, nil
	}
	items, ok := idiom.SimpleSelect(sql, s.state.Mode)
	if !ok {
		return false, nil
	}
	t := &protocol.Table{Rows: [][]any{nil}}
	for i := range items {
		c := protocol.Column{
			Name: items[i].Column, Charset: charsetBinary, Length: 21, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: flagNotNull | flagBinary,
		}
		value := s.state.LastChanged
		switch {
		case items[i].Kind != idiom.SimpleFunction:
			return false, nil
		case items[i].Name == "row_count":
		case items[i].Name == "last_insert_id" && s.state.LastID.Pending:
			value = s.state.LastID.Value
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
	s.state.LastID.Rows = false
	return true, nil
}
