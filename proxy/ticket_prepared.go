package proxy

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// ticketPrepared returns the ticket that a text to be prepared is, or nil: a copy,
// which does not alias the text.
func (s *session) ticketPrepared(st *statement.Statement, sql []byte) *tableTicket {
	if s.set.tickets == nil || st.Kind == statement.Multi {
		return nil
	}
	t := s.ticketIn(st, sql)
	if t == nil || len(bytes.Trim(sql[t.End:], " \t\r\n;")) > 0 {
		return nil
	}
	t.Schema, t.Table, t.Key = bytes.Clone(t.Schema), bytes.Clone(t.Table), bytes.Clone(t.Key)
	t.ID, t.Column = bytes.Clone(t.ID), bytes.Clone(t.Column)
	return t
}

// prepareTicket prepares a ticket where there is no server.
func (s *session) prepareTicket(sql []byte, t *tableTicket) error {
	form, err := s.form(true)
	if err != nil {
		return err
	}
	p := &prepared{own: bytes.Clone(sql), ticket: t, mode: s.state.Mode, charset: s.state.Charset, params: s.stmt.Params}
	if err := s.prepared.add(p); err != nil {
		return err
	}
	s.out = protocol.AppendPrepareOK(s.out, s.packetNum, form, p.id, 0, p.params)
	if p.params > 0 {
		r := protocol.NewResult(s.out, s.packetNum+1, form)
		params := make([]protocol.Column, p.params)
		for i := range params {
			params[i] = protocol.Column{Name: "?", Charset: charsetBinary, Type: mysql.MYSQL_TYPE_VAR_STRING, Flags: flagBinary}
		}
		r.Definitions(params)
		s.out = r.Bytes()
	}
	return nil
}

// executeTicket executes a prepared ticket: here, or on its server where the session or
// a parameter is not as usual.
func (s *session) executeTicket(p *prepared, payload []byte) error {
	e, err := p.cut(payload, s.login.Capabilities.Has(protocol.QueryAttributes))
	complete := err == nil && p.complete(&e)
	ticket := p.ticket
	if complete && !p.longSent {
		if bound, ok := p.boundTicket(&e); ok {
			ticket = bound
			if handled, err := s.executeHere(p, bound); handled || err != nil {
				return err
			}
		}
	}
	if p.conn == nil {
		return s.noServer()
	}
	if complete {
		if err := s.leavePreparedToServer(p, ticket); err != nil {
			return s.dropLongData(p.conn, p, err)
		}
	}
	if !complete { // the server says what is wrong
		p.toServer(payload[1:])
		return s.passExecution(p, payload)
	}
	// The server may not have seen the types that were bound last; this binds them anew.
	p.unbind(&e) // executeHidden takes it apart again
	return s.executeHidden(p, payload)
}

// leavePreparedToServer is leaveToServer for a ticket that was prepared there.
func (s *session) leavePreparedToServer(p *prepared, t *tableTicket) error {
	if t.table.Counter == nil {
		if _, err := s.connOf(p); err != nil {
			return err
		}
	}
	return s.mayLeaveToServer(t)
}

// executeHere answers a prepared ticket, with its parameters' values, if that can be done here.
func (s *session) executeHere(p *prepared, t *tableTicket) (handled bool, err error) {
	if !s.ticketsServed() {
		return false, nil
	}
	charset := p.charset
	if t.KeyParam >= 0 {
		charset = s.state.Charset
	}
	answer, handled, err := s.takeTicket(t, charset)
	if !handled || err != nil {
		return handled, err
	}
	if err := s.beginImplied(&answer); err != nil {
		return true, err
	}
	s.answerTicket(&answer, 0)
	return true, nil
}

// boundTicket returns the ticket with the values of its parameters.
func (p *prepared) boundTicket(e *execution) (*tableTicket, bool) {
	if p.params == 0 {
		return p.ticket, true
	}
	t := *p.ticket
	rest := e.values
	for i := range p.params {
		if e.params.IsNull(i) {
			return nil, false
		}
		typ := p.types[i].Type
		size, ok := protocol.BinaryValueSize(uint8(typ), rest)
		if !ok {
			return nil, false
		}
		value := rest[:size]
		rest = rest[size:]
		switch i {
		case t.KeyParam:
			t.Key, ok = textParameter(typ, value)
		case t.StepParam:
			t.Step, ok = stepParameter(typ, value)
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return &t, true
}

// textParameter reads the value of a parameter that is a text.
func textParameter(typ uint16, b []byte) ([]byte, bool) {
	switch uint8(typ) {
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR:
		text, _, ok := protocol.ReadLenEncBytes(b)
		return text, ok
	}
	return nil, false // numbers and byte strings compare differently
}

// stepParameter reads what is to be added to a counter. Some drivers send numbers as text.
func stepParameter(typ uint16, b []byte) (n uint64, ok bool) {
	const unsigned = 0x8000
	negative := false
	switch uint8(typ) {
	case mysql.MYSQL_TYPE_TINY:
		n, negative = uint64(b[0]), int8(b[0]) < 0
	case mysql.MYSQL_TYPE_SHORT:
		v := binary.LittleEndian.Uint16(b)
		n, negative = uint64(v), int16(v) < 0
	case mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_INT24:
		v := binary.LittleEndian.Uint32(b)
		n, negative = uint64(v), int32(v) < 0
	case mysql.MYSQL_TYPE_LONGLONG:
		n = binary.LittleEndian.Uint64(b)
		negative = int64(n) < 0
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR:
		text, _, ok := protocol.ReadLenEncBytes(b)
		if !ok || len(text) == 0 || text[0] < '1' || text[0] > '9' {
			return 0, false
		}
		var err error
		if n, err = strconv.ParseUint(string(text), 10, 64); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return n, (!negative || typ&unsigned != 0) && n >= 1 && n <= sequence.MaxAdvance
}
