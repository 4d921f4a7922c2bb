package proxy

import (
	"encoding/binary"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// executeBulk handles COM_STMT_BULK_EXECUTE: an execution with many rows of parameters.
func (s *session) executeBulk(payload []byte) error {
	s.tally.Kind = stats.KindOwn // until it is more
	if len(payload) < params.BulkHead && s.likeMariaDB() {
		return params.ErrMalformed
	}
	if err := s.bulkAgreed(); err != nil {
		return err
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	p := s.preparedAs(id)
	if p != nil {
		s.takesPrepared(p)
		if err := s.set.stillBound(&p.inserts); err != nil {
			return s.dropLongData(p.conn, p, err)
		}
		if p.ticket != nil && p.local == nil {
			if err := s.leavePreparedToServer(p, p.ticket); err != nil {
				return s.dropLongData(p.conn, p, err)
			}
		}
	}
	switch {
	case p == nil:
		return unknownStatement(id, "mysqld_stmt_execute", s.likeMariaDB())
	case p.local != nil, p.rows != nil:
		return params.ErrNotInBulk
	case p.counts != nil:
		return refusedForm("NEXTVAL for each row in a bulk execution, which is many statements,")
	case len(p.Hidden) > 0:
		return s.executeBulkHidden(p, payload)
	}
	p.toServer(payload[1:])
	return s.passExecution(p, payload)
}

// bulkAgreed is the server's error if the session has not agreed on bulk executions,
// which only MariaDB offers.
func (s *session) bulkAgreed() error {
	switch {
	case s.login.Capabilities.Has(protocol.BulkOperations):
		return nil
	case s.likeMariaDB():
		return params.ErrNotInBulk
	}
	return unknownCommand()
}

// executeBulkHidden is executeHidden for many rows: the numbers of a sequence are
// consecutive over all of them.
func (s *session) executeBulkHidden(p *prepared, payload []byte) error {
	c, err := s.connOf(p)
	if err != nil {
		return s.dropLongData(p.conn, p, err)
	}
	if err := s.fillBulk(c, p, payload); err != nil {
		return s.dropLongData(c, p, err)
	}
	if err := s.sendScratch(c); err != nil {
		return err
	}
	s.noteExecuted(c, p)
	return nil
}

// fillBulk is fillHidden for many rows.
func (s *session) fillBulk(c *backend.Conn, p *prepared, payload []byte) error {
	rows, err := p.CutBulk(payload)
	if err != nil {
		return err
	}
	if err := s.prepareConn(c, p); err != nil {
		return err
	}
	asks := make([]plan.Slot, 0, len(rows)*len(p.Hidden))
	for _, row := range rows {
		asked, err := p.Asks(p.ArgumentsInRow(row), s.nameOf)
		if err != nil {
			return err
		}
		asks = append(asks, asked...)
	}
	n, err := p.numbers(&s.numbers, asks)
	modes := func() (state.InsertModes, error) { return s.insertModes(c, p.shape.Words) }
	if err == nil && p.Key != nil {
		for i, row := range rows {
			if err = p.AddKeys(i*p.Key.Rows(), p.ArgumentsInRow(row), modes); err != nil {
				return err
			}
		}
		err = p.SpaceKeys(modes)
	}
	if err != nil {
		return err
	}
	values, err := s.numbers.All(n, nil)
	if err != nil {
		return err
	}
	p.PlaceKeys(values, len(rows))
	p.Filling = nil // which may be of very many rows
	s.scratch = p.AppendBulk(append(s.scratch[:0], 0, 0, 0, 0), p.backendID, payload, rows, values)
	protocol.PutHeader(s.scratch, len(s.scratch)-protocol.HeaderSize, 0)
	return nil
}
