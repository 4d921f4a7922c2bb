package session

import (
	"bytes"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/alone"
	"seqproxy/proxy/params"
	"seqproxy/proxy/ticket"
	"seqproxy/statement"
)

// ticketPrepared returns the ticket that a text to be prepared is, or nil: a copy,
// which does not alias the text.
func (ts *tickets) ticketPrepared(st *statement.Statement, sql []byte) *ticket.Ticket {
	if st.Kind == statement.Multi {
		return nil
	}
	t := ts.ticketIn(sql)
	if t == nil {
		return nil
	}
	if _, alone := t.Rest(sql); !alone {
		return nil
	}
	t.Keep()
	return t
}

// prepareTicket prepares a ticket where there is no server.
func (x *executor) prepareTicket(sql []byte, t *ticket.Ticket) error {
	form, err := x.answers.form(true)
	if err != nil {
		return err
	}
	p := &prepared{local: bytes.Clone(sql), ticket: t, mode: x.state.Mode, charset: x.state.Charset, List: params.List{Params: x.planning.stmt.Params}}
	if err := x.at.prepared.add(p); err != nil {
		return err
	}
	x.client.out = protocol.AppendPrepareOK(x.client.out, x.client.packetNum, form, p.id, 0, p.Params)
	if p.Params > 0 {
		r := protocol.NewResult(x.client.out, x.client.packetNum+1, form)
		columns := make([]protocol.Column, p.Params)
		for i := range columns {
			columns[i] = protocol.Column{Name: "?", Charset: alone.BinaryCharset, Type: mysql.MYSQL_TYPE_VAR_STRING, Flags: alone.Binary}
		}
		r.Definitions(columns)
		x.client.out = r.Bytes()
	}
	return nil
}

// executeTicket executes a prepared ticket: here, or on its server where the session or
// a parameter is not as usual.
func (x *executor) executeTicket(p *prepared, payload []byte) error {
	e, err := p.Cut(payload, x.at.login.Capabilities.Has(protocol.QueryAttributes))
	complete := err == nil && p.Complete(&e)
	t := p.ticket
	if complete && !p.LongSent {
		if bound, ok := p.ticket.Bound(p.Types[:p.Params], &e.Params, e.Values); ok {
			t = bound
			if handled, err := x.executeHere(p, bound); handled || err != nil {
				return err
			}
		}
	}
	if p.conn == nil {
		return x.at.noServer()
	}
	if complete {
		if err := x.leavePreparedToServer(p, t); err != nil {
			return x.at.dropLongData(p.conn, p, err)
		}
	}
	if !complete { // the server says what is wrong
		p.toServer(payload[1:])
		return x.passExecution(p, payload)
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
