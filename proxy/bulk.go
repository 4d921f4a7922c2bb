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
func (x *executor) executeBulk(payload []byte) error {
	x.at.tally.Kind = stats.KindOwn // until it is more
	if len(payload) < params.BulkHead && x.at.likeMariaDB() {
		return params.ErrMalformed
	}
	if err := x.bulkAgreed(); err != nil {
		return err
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	p := x.preparedAs(id)
	if p != nil {
		x.relay.takesPrepared(p)
		if err := x.at.set.stillBound(&p.inserts); err != nil {
			return x.at.dropLongData(p.conn, p, err)
		}
		if p.ticket != nil && p.local == nil {
			if err := x.leavePreparedToServer(p, p.ticket); err != nil {
				return x.at.dropLongData(p.conn, p, err)
			}
		}
	}
	switch {
	case p == nil:
		return unknownStatement(id, "mysqld_stmt_execute", x.at.likeMariaDB())
	case p.local != nil, p.rows != nil:
		return params.ErrNotInBulk
	case p.counts != nil:
		return refusedForm("NEXTVAL for each row in a bulk execution, which is many statements,")
	case len(p.Hidden) > 0:
		return x.executeBulkHidden(p, payload)
	}
	p.toServer(payload[1:])
	return x.passExecution(p, payload)
}

// bulkAgreed is the server's error if the session has not agreed on bulk executions,
// which only MariaDB offers.
func (x *executor) bulkAgreed() error {
	switch {
	case x.at.login.Capabilities.Has(protocol.BulkOperations):
		return nil
	case x.at.likeMariaDB():
		return params.ErrNotInBulk
	}
	return unknownCommand()
}

// executeBulkHidden is executeHidden for many rows: the numbers of a sequence are
// consecutive over all of them.
func (x *executor) executeBulkHidden(p *prepared, payload []byte) error {
	c, err := x.at.connOf(p)
	if err != nil {
		return x.at.dropLongData(p.conn, p, err)
	}
	if err := x.fillBulk(c, p, payload); err != nil {
		return x.at.dropLongData(c, p, err)
	}
	if err := x.relay.sendScratch(c); err != nil {
		return err
	}
	x.noteExecuted(c, p)
	return nil
}

// fillBulk is fillHidden for many rows.
func (x *executor) fillBulk(c *backend.Conn, p *prepared, payload []byte) error {
	rows, err := p.CutBulk(payload)
	if err != nil {
		return err
	}
	if err := x.at.prepareConn(c, p); err != nil {
		return err
	}
	asks := make([]plan.Slot, 0, len(rows)*len(p.Hidden))
	for _, row := range rows {
		asked, err := p.Asks(p.ArgumentsInRow(row), x.planning.nameOf)
		if err != nil {
			return err
		}
		asks = append(asks, asked...)
	}
	n, err := p.numbers(x.numbers, asks)
	modes := func() (state.InsertModes, error) { return x.at.insertModes(c, p.shape.Words) }
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
	values, err := x.numbers.All(n, nil)
	if err != nil {
		return err
	}
	p.PlaceKeys(values, len(rows))
	p.Filling = nil // which may be of very many rows
	if x.relay.scratch, err = p.AppendBulk(append(x.relay.scratch[:0], 0, 0, 0, 0), p.backendID, payload, rows, values); err != nil {
		return err
	}
	protocol.PutHeader(x.relay.scratch, len(x.relay.scratch)-protocol.HeaderSize, 0)
	return nil
}
