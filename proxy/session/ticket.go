package session

import (
	"bytes"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/alone"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/proxy/ticket"
	"seqproxy/statement"
)

// TicketTable is a table whose ticket idioms are answered here.
type TicketTable = ticket.Table

// tickets answers the statements of ticket servers.
type tickets struct {
	*ground
	planning *planning
	answers  *answers
}

// ticketIn returns the ticket that the text just analysed is, or begins with; nil if there is none.
func (ts *tickets) ticketIn(sql []byte) *ticket.Ticket {
	if ts.at.set.tickets == nil {
		return nil
	}
	return ts.at.set.tickets.In(&ts.planning.stmt, sql, ts.state)
}

// inSchema returns a ticket that was found, or nil if the current schema has another table of the
// name. It asks for the schema if need be. Nothing is in flight.
func (ts *tickets) inSchema(t *ticket.Ticket, sql []byte) (*ticket.Ticket, error) {
	if t == nil || t.Schema != nil || !ts.state.SchemaUnknown {
		return t, nil
	}
	if _, err := ts.at.Attach(); err != nil {
		return nil, err
	}
	if err := ts.at.askSchema(); err != nil {
		return nil, err
	}
	return ts.ticketIn(sql), nil
}

// ticketText answers a text that is a ticket, or a ticket and a SELECT of the number. handled is
// false if the text is handled as any other. Nothing is in flight.
func (ts *tickets) ticketText(t *ticket.Ticket, sql []byte) (handled bool, err error) {
	if t, err = ts.inSchema(t, sql); t == nil || err != nil {
		return false, err
	}
	var then statement.Statement
	rest, alone, served := ts.ticketServed(t, sql, &then)
	if !served {
		if !alone && !ts.planning.severalAgreed() {
			return false, nil // an error there
		}
		return false, ts.leaveToServer(t)
	}
	answer, handled, err := ts.takeTicket(t, ts.state.Charset)
	if !handled && err == nil {
		err = ts.leaveToServer(t)
	}
	if !handled || err != nil {
		return handled, err
	}
	if !alone && answer.Affected == 0 {
		return false, ts.leaveToServer(t) // which number follows is the server's to know
	}
	if err := ts.beginImplied(&answer); err != nil {
		return true, err
	}
	if alone {
		ts.answerTicket(&answer, 0)
		return true, nil
	}
	ts.answerTicket(&answer, protocol.MoreResults)
	ts.client.packetNum++
	return true, ts.answers.answerSelect(&then, rest, plan.Nothing(&then), nil)
}

// ticketServed reports whether a text that is a ticket may be answered here. Behind it there may be
// a rest, which is then a SELECT of the number.
func (ts *tickets) ticketServed(t *ticket.Ticket, sql []byte, then *statement.Statement) (rest []byte, alone, served bool) {
	if rest, alone = t.Rest(sql); !alone {
		if !ts.planning.severalAgreed() {
			return rest, alone, false
		}
		if then.Analyze(rest, ts.state.Mode); !ts.asksForID(then) {
			return rest, alone, false
		}
	}
	return rest, alone, t.KeyParam < 0 && t.StepParam < 0 && ticket.ServedIn(ts.state)
}

// leaveToServer prepares to send a ticket to the server, or returns why it may not go there. While
// the shard is paused it waits first, as the set of sequence servers may be changed meanwhile.
func (ts *tickets) leaveToServer(t *ticket.Ticket) error {
	if t.Of.Counter == nil && ts.at.routes.Default != nil {
		if _, err := ts.at.Attach(); err != nil {
			return err
		}
	}
	return ts.mayLeaveToServer(t)
}

// mayLeaveToServer returns an error if the server may not answer a ticket that cannot be answered
// here.
func (ts *tickets) mayLeaveToServer(t *ticket.Ticket) error {
	why, err := ts.refusal(t)
	if err == nil && why != "" {
		err = protocol.NotSupported("%s", why)
	}
	return err
}

// refusal returns why the server may not answer a ticket that cannot be answered here; "": it may.
func (ts *tickets) refusal(t *ticket.Ticket) (why string, err error) {
	if t.Of.Counter != nil {
		return "", nil
	}
	several, multiple, err := ts.at.set.steps.Divided(&ts.numbers.Patience)
	if err = ts.numbers.Patience.Over(err); err != nil {
		return "", err
	}
	return t.Refusal(several, multiple, ts.at.set.steps.Stride()), nil
}

// asksForID reports whether a statement is a SELECT of nothing but LAST_INSERT_ID(), once or more,
// that is answered here.
func (ts *tickets) asksForID(st *statement.Statement) bool {
	if !st.SelfContained || ts.answers.limitsRows() || ts.answers.mayOmitMetadata() || ts.at.login.Capabilities.Has(protocol.NoSchema) {
		return false
	}
	return !slices.ContainsFunc(st.Calls, func(c statement.FuncCall) bool {
		return c.Func != statement.LastInsertID && c.Func != statement.LastInsertIDVariable
	})
}

// takeTicket takes the number of a ticket, whose key is in a character set. handled is
// false if the server has to answer.
func (ts *tickets) takeTicket(t *ticket.Ticket, charset string) (a ticket.Answer, handled bool, err error) {
	key, ok := ts.keyOf(t, charset)
	if !ok {
		return a, false, nil
	}
	if err := ts.numbers.MayUse(t.Right(key)); err != nil {
		return a, true, err
	}
	a, err = t.Take(&ts.numbers.Patience, ts.at.set.counters, key)
	if err = ts.numbers.Patience.Over(err); ticket.NotHere(err) {
		return a, false, nil
	}
	if err != nil || a.Affected > 0 || ts.at.routes.Default == nil {
		return a, true, err
	}
	// The row may be a moment old, or of a transaction under way: the server knows.
	why, err := ts.refusal(t)
	return a, err != nil || why != "", err
}

// keyOf returns the key of a ticket, which is in a character set, in UTF-8. ok is false if no
// number is taken here for it.
func (ts *tickets) keyOf(t *ticket.Ticket, charset string) (key []byte, ok bool) {
	key, err := ts.planning.InUTF8(t.Key, charset)
	return key, err == nil && (t.Of.Counter != nil || len(key) > 0)
}

// beginImplied begins the transaction that a server would begin with the statement,
// where autocommit is off.
func (ts *tickets) beginImplied(a *ticket.Answer) error {
	if err := ts.at.ensureOpen(); err != nil {
		return err
	}
	if !a.Transactional || ts.state.Status.Has(protocol.Autocommit) || ts.state.InTransaction() || ts.at.routes.Default == nil {
		return nil
	}
	c, err := ts.at.Attach()
	if err != nil {
		return err
	}
	if _, err := ts.at.Ask(c, "START TRANSACTION"); err != nil {
		return err
	}
	ts.state.Observe(c.Answer.Status, c.Hello.MariaDB)
	return nil
}

// answerTicket answers with the OK of a ticket. more are flags in addition to the session's.
func (ts *tickets) answerTicket(a *ticket.Answer, more protocol.Status) {
	ts.at.tally.Becomes(stats.KindNextval)
	if a.Affected > 0 {
		ts.state.LastID.GivenInOK(a.ID)
	}
	ts.state.LastAnswer, ts.state.LastChanged, ts.state.LastError = state.OurChange, a.Affected, nil
	ts.client.out = protocol.AppendOK(ts.client.out, ts.client.packetNum, protocol.OK{
		AffectedRows: a.Affected, InsertID: a.ID, Status: ts.state.Status | more, Info: a.Info,
	})
}

// answerRowCount answers a SELECT of nothing but ROW_COUNT() and LAST_INSERT_ID(), right after
// a ticket, where no server can be made to say it: 2 rows, the deleted one and the new one.
func (a *answers) answerRowCount(sql []byte) (handled bool, err error) {
	if a.state.LastChanged < 2 && a.at.routes.Default != nil || a.limitsRows() {
		return false, nil
	}
	t, ok := alone.RowCount(a.state, sql)
	if !ok {
		return false, nil
	}
	if err := a.table(t, nil); err != nil {
		return true, err
	}
	a.state.LastID.Rows = false
	return true, nil
}

// ticketPrepared returns the ticket that a text to be prepared is, or nil: a copy,
// which does not alias the text.
func (ts *tickets) ticketPrepared(st *statement.Statement, sql []byte) (*ticket.Ticket, error) {
	if st.Kind == statement.Multi {
		return nil, nil
	}
	t, err := ts.inSchema(ts.ticketIn(sql), sql)
	if t == nil || err != nil {
		return nil, err
	}
	if _, alone := t.Rest(sql); !alone {
		return nil, nil
	}
	t.Keep()
	return t, nil
}

// prepareTicket prepares a ticket where there is no server.
func (x *executor) prepareTicket(sql []byte, t *ticket.Ticket) error {
	p := &prepared{local: bytes.Clone(sql), ticket: t, mode: x.state.Mode, charset: x.state.Charset, List: params.List{Params: x.planning.stmt.Params}}
	marker := protocol.Column{Name: "?", Charset: alone.BinaryCharset, Type: mysql.MYSQL_TYPE_VAR_STRING, Flags: alone.Binary}
	return x.addLocal(p, slices.Repeat([]protocol.Column{marker}, p.Params))
}

// executeTicket executes a prepared ticket: here, or on its server where the session or
// a parameter is not as usual.
func (x *executor) executeTicket(p *prepared, payload []byte) error {
	e, err := p.Cut(payload, x.client.attributed)
	complete := err == nil && e.Whole
	t := p.ticket
	if complete && !p.LongSent {
		if bound, ok := p.ticket.Bound(p.Types.Of, &e.Params, e.Values); ok {
			t = bound
			if handled, err := x.executeHere(p, bound); handled || err != nil {
				return err
			}
		}
	}
	if p.conn == nil {
		return x.at.noServer()
	}
	if !complete { // the server says what is wrong
		p.toServer(payload[1:])
		return x.passExecution(p, payload)
	}
	if err := x.leavePreparedToServer(p, t); err != nil {
		return x.at.dropLongData(p, err)
	}
	// The server may not have seen the types that were bound last; this binds them anew.
	p.Unbind(&e) // executeNumbered takes it apart again
	return x.executeNumbered(p, payload)
}

// leavePreparedToServer is leaveToServer for a ticket that was prepared there.
func (x *executor) leavePreparedToServer(p *prepared, t *ticket.Ticket) error {
	if t.Of.Counter == nil {
		if _, err := x.at.connOf(p); err != nil {
			return err
		}
	}
	return x.tickets.mayLeaveToServer(t)
}

// executeHere answers a prepared ticket, with its parameters' values, if that can be done here.
func (x *executor) executeHere(p *prepared, t *ticket.Ticket) (handled bool, err error) {
	if !ticket.ServedIn(x.state) {
		return false, nil
	}
	charset := p.charset
	if t.KeyParam >= 0 {
		charset = x.state.Charset
	}
	answer, handled, err := x.tickets.takeTicket(t, charset)
	if !handled || err != nil {
		return handled, err
	}
	if err := x.tickets.beginImplied(&answer); err != nil {
		return true, err
	}
	x.tickets.answerTicket(&answer, 0)
	return true, nil
}
