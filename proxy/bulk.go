package proxy

import (
	"encoding/binary"

	"seqproxy/protocol"
	"seqproxy/proxy/params"
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
	case p.local != nil, p.numbers.Rows != nil:
		return params.ErrNotInBulk
	case p.numbers.Block != nil:
		return refusedForm("NEXTVAL for each row in a bulk execution, which is many statements,")
	case len(p.Hidden) > 0:
		return x.executeNumbered(p, payload)
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
