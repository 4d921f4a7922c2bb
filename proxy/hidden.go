package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// hideParams writes the text of a prepared statement with parameters of ours where
// the calls stood.
func (s *session) hideParams(st *statement.Statement, sql []byte, a *plan.Action) (text []byte, hidden []hiddenParam, key *preparedKey) {
	subs := a.Substitutions(st, &s.state, s.id, protocol.Placeholder)
	for i := range subs {
		call, slot := &st.Calls[i], a.Slots[i]
		if !plan.Hides(call, &subs[i]) {
			continue
		}
		subs[i].Param = true
		if subs[i].Replacement == statement.AsLeading {
			hidden = append(hidden, hiddenParam{leads: true})
			continue
		}
		if a.Do == plan.Count && slot.Served() {
			subs[i].Replacement = statement.AsCounted
			hidden = append(hidden, hiddenParam{block: keys.Before}, hiddenParam{block: keys.Bound}, hiddenParam{block: keys.Step})
			continue
		}
		h := hiddenParam{previous: true}
		if slot.Served() {
			slot.Sequence = bytes.Clone(slot.Sequence)
			h = hiddenParam{Slot: slot, from: argumentOf(call)}
		}
		hidden = append(hidden, h)
	}
	at := st.HiddenParams(nil, subs)
	for i := range at {
		hidden[i].at = at[i]
	}
	if a.Fill == nil {
		return st.Rewrite(nil, sql, subs), hidden, nil
	}
	key, hidden = s.hideKeys(st, subs, hidden, a.Fill)
	return st.Splice(nil, sql, subs, a.Fill.Splices), hidden, key
}

// executeHidden executes a statement whose numbers are parameters of ours.
func (s *session) executeHidden(p *prepared, payload []byte) error {
	c, err := s.connOf(p)
	if err != nil {
		return s.dropLongData(p.conn, p, err)
	}
	// Before anything is taken or asked: the client may have sent nonsense.
	attributes := s.login.Capabilities.Has(protocol.QueryAttributes)
	e, err := s.cutExecution(p, payload, attributes)
	if err == nil && p.rows != nil {
		err = s.rowsExecutable(p, payload)
	}
	if err == nil {
		err = s.fillHidden(c, p, &e, attributes)
	}
	if err != nil {
		if errors.Is(err, errMalformed) {
			err = s.malformed()
		}
		return s.dropLongData(c, p, err)
	}
	if p.key != nil {
		err = s.executeFilled(c, p, &e, attributes)
	} else {
		p.forgetLong()
		err = s.sendOwnRows(c, p.rows, true)
	}
	if err != nil {
		return err
	}
	if c.Answer.ErrCode == mysql.ER_MALFORMED_PACKET && !c.Hello().MariaDB { // an attribute
		p.unbind(&e)
	}
	s.noteExecuted(c, p)
	return nil
}

// fillHidden writes the execution of a statement with hidden parameters to s.own, and
// makes c ready for it.
func (s *session) fillHidden(c *backend.Conn, p *prepared, e *execution, attributes bool) error {
	if p.executionSize(e, attributes) >= protocol.MaxFragment {
		return errTooLong // before numbers are taken for nothing
	}
	asks, err := s.asksOf(p, p.arguments(e)) // the client may have sent nonsense there, too
	if err != nil {
		return err
	}
	previous, err := s.previousHidden(p)
	if err != nil {
		return err
	}
	if err := s.prepareConn(c, p); err != nil {
		return err
	}
	n, err := s.numbersOf(p, asks)
	if err == nil && p.key != nil {
		if err = s.keysOf(c, p, 0, p.arguments(e)); err == nil {
			err = s.spaceKeys(c, p)
		}
	}
	if err != nil {
		return err
	}
	values, err := s.numbers.All(n, p.rows)
	if err != nil {
		return err
	}
	p.placePrevious(values, previous)
	p.placeKeys(values, 1)
	s.own = append(s.own[:0], 0, 0, 0, 0)
	if s.own, err = p.appendExecute(s.own, e, attributes, values); err != nil {
		return err
	}
	protocol.PutHeader(s.own, len(s.own)-protocol.HeaderSize, 0)
	return nil
}

func (p *prepared) forgetLong() {
	p.longSent = false
	clear(p.long)
	p.longArgs = nil
}

// dropLongData makes the server forget what came by COM_STMT_SEND_LONG_DATA for an
// execution that failed with err before it was sent: an execution ends the data's
// life, and the next would otherwise append to it.
func (s *session) dropLongData(c *backend.Conn, p *prepared, err error) error {
	if !p.longSent {
		return err
	}
	p.forgetLong()
	id := binary.LittleEndian.AppendUint32(nil, p.backendID)
	if resetErr := s.ownCommand(c, protocol.ComStmtReset, string(id)); resetErr != nil {
		return resetErr
	}
	return err
}

// previousHidden returns LAST_INSERT_ID() if a hidden parameter needs it.
func (s *session) previousHidden(p *prepared) (uint64, error) {
	for i := range p.hidden {
		if p.hidden[i].previous {
			return s.askPrevious(p.shape.Words)
		}
	}
	return 0, nil
}

// numbersOf begins to say what an execution needs: what becomes of its keys is still to be added.
// The user may take it.
func (s *session) numbersOf(p *prepared, asks []plan.Slot) (plan.Numbers, error) {
	n := plan.Numbers{Slots: asks, Lead: -1}
	if err := s.numbers.MayTake(asks); err != nil {
		return n, err
	}
	for i := range p.hidden {
		if p.hidden[i].leads {
			n.Lead = i
			if err := s.numbers.MayTake(p.rows.Slots); err != nil {
				return n, err
			}
		}
	}
	if p.key != nil {
		n.Fill = p.newFilling()
	}
	return n, nil
}

// placePrevious puts LAST_INSERT_ID() into the values of the hidden parameters that are it.
func (p *prepared) placePrevious(values []keys.Number, previous uint64) {
	for i := range p.hidden {
		if p.hidden[i].previous {
			values[i].Value = previous
		}
	}
}
