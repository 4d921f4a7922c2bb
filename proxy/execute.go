package proxy

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/params"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// executor prepares and executes statements.
type executor struct {
	*ground
	planning *planning
	answers  *answers
	tickets  *tickets
	delivery *delivery
}

// passExecution passes on the execution just parsed, of one row or many, and takes note
// of what it did.
func (x *executor) passExecution(p *prepared, payload []byte) error {
	c, err := x.at.connFor(p)
	if err != nil {
		return x.at.dropLongData(p.conn, p, err)
	}
	p.LongSent = false
	x.relay.enqueue(c, protocol.AnswerTo(payload))
	x.state.LastAnswer = state.ByServer
	if err := x.relay.settle(); err != nil {
		return err
	}
	x.noteExecuted(c, p)
	return x.at.keepStep(c)
}

// noteExecuted is noteDone for an execution.
func (x *executor) noteExecuted(c *backend.Conn, p *prepared) {
	if p.set != nil {
		x.planning.stmt.Analyze(p.set, p.mode)
		x.delivery.noteDone(c, p.set)
		return
	}
	if c.Answer.ErrCode == 0 {
		x.state.Transacted(p.shape.Kind, p.shape.Words)
	}
}

// onLocalPrepared handles a command on a statement that no server knows.
func (x *executor) onLocalPrepared(cmd protocol.Command, id uint32, p *prepared, payload []byte) error {
	switch {
	case cmd == protocol.ComStmtClose:
		if p != nil {
			x.at.prepared.remove(p)
		}
		return nil
	case cmd == protocol.ComStmtLongData:
		if p != nil {
			p.longData(payload[5:7], payload[7:])
		}
		return nil
	case p != nil && cmd == protocol.ComStmtReset:
		p.ForgetLong()
		x.relay.reply(protocol.OK{})
		return nil
	case p == nil && cmd == protocol.ComStmtReset:
		return unknownStatement(id, "mysqld_stmt_reset", x.at.likeMariaDB())
	case p == nil:
		return unknownStatement(id, "mysqld_stmt_fetch", x.at.likeMariaDB())
	}
	return protocol.Errorf(mysql.ER_STMT_HAS_NO_OPEN_CURSOR, "HY000", "The statement (%d) has no open cursor", id)
}

// executeBulk handles COM_STMT_BULK_EXECUTE: an execution with many rows of parameters.
func (x *executor) executeBulk(payload []byte) error {
	x.at.tally.Kind = stats.KindHere // until it is more
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
