package session

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
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
	texts    *texts
	// What is executed with numbers now, and its slots: memory that is used again.
	execution params.Execution
	slots     []plan.Slot
}

// execute handles COM_STMT_EXECUTE.
func (x *executor) execute(payload []byte) error {
	x.at.tally.Kind = stats.KindHere // until the command proves to be more
	if len(payload) < params.ExecuteHead {
		return malformed(x.at.likeMariaDB())
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	p := x.at.preparedAs(id)
	if p == nil {
		return unknownStatement(id, "mysqld_stmt_execute", x.at.likeMariaDB())
	}
	x.relay.keepPrepared(p)
	if err := x.planning.stillBound(&p.inserts); err != nil {
		return x.at.dropLongData(p, err)
	}
	if p.shape.Plain && p.conn == x.at.cur && !x.state.NextTransaction && !x.at.set.lastInsertIDExact {
		p.toServer(payload[1:])
		if p.shape.MovesLastID {
			if err := x.at.bringBefore(); err != nil {
				return err
			}
		}
		x.state.LastAnswer = state.ByServer
		if p.LongSent {
			if _, err := x.at.Attach(); err != nil {
				return x.at.dropLongData(p, err)
			}
			p.LongSent = false
		}
		return x.relay.relayCommand(protocol.AnswerTo(payload))
	}
	if err := x.relay.settle(); err != nil {
		return err
	}
	switch {
	case p.ticket != nil:
		return x.executeTicket(p, payload)
	case p.local != nil:
		return x.executeLocal(p, payload)
	case len(p.Hidden) > 0:
		err := x.executeNumbered(p, payload)
		if b := p.numbers.Block; err != nil && b != nil && b.Key != nil {
			err = refusedQuery(b.Key, err)
		}
		return err
	case p.numbers.Rows != nil:
		return x.executeRows(p, payload)
	case p.question != nil:
		return x.executeQuestion(p, payload)
	}
	p.toServer(payload[1:])
	if p.kill != nil {
		if handled, err := x.executeKill(p, payload); handled || err != nil {
			return err
		}
	}
	if p.use != "" {
		return x.texts.useSchema(p.use, p, x.at.likeMariaDB())
	}
	return x.passExecution(p, payload)
}

// onPrepared handles the other commands on a prepared statement.
func (x *executor) onPrepared(cmd protocol.Command, payload []byte) error {
	least := 5 // command, statement id
	switch {
	case cmd == protocol.ComStmtLongData:
		least = 7 // and parameter
	case cmd == protocol.ComStmtFetch && !x.at.likeMariaDB():
		least = 9 // and the number of rows, which MariaDB reads even beyond the packet
	}
	if len(payload) < least {
		switch {
		case !x.at.likeMariaDB(): // MySQL answers even a command that has no answer
			return malformed(x.at.likeMariaDB())
		case cmd.AnswerShape() == protocol.ShapeNone:
			return x.relay.settle()
		}
		// MariaDB reads the id beyond the packet, where bytes of other commands may be. The id
		// counts as unknown, even if the bytes that came, followed by zeros, are a statement's.
		var id [4]byte
		copy(id[:], payload[1:])
		return x.onLocalPrepared(cmd, binary.LittleEndian.Uint32(id[:]), nil, payload)
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	p := x.at.preparedAs(id)
	if p == nil || p.local != nil {
		return x.onLocalPrepared(cmd, id, p, payload)
	}
	p.toServer(payload[1:])
	switch cmd {
	case protocol.ComStmtClose:
		x.at.prepared.remove(p)
	case protocol.ComStmtLongData:
		if !p.longData(payload[5:7], payload[7:]) {
			return x.relay.settle() // what waits goes out without this command
		}
		if p.kill != nil {
			p.kill.long = true
		}
	case protocol.ComStmtReset:
		x.state.Pinged()
		p.ForgetLong()
		if p.kill != nil {
			p.kill.long = false
		}
	}
	if cmd == protocol.ComStmtFetch {
		if err := x.at.enter(p.conn.Shard); err != nil {
			return err
		}
	}
	if p.conn != x.at.cur || x.relay.batch.elsewhere(p.conn) {
		if err := x.relay.settle(); err != nil {
			return err
		}
	}
	x.relay.enqueue(p.conn, cmd.AnswerShape())
	return nil
}

// passExecution passes on the execution just parsed, of one row or many, and records its effect.
func (x *executor) passExecution(p *prepared, payload []byte) error {
	c, err := x.at.connFor(p)
	if err != nil {
		return x.at.dropLongData(p, err)
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
	if p.shape.ChangesTables {
		x.at.shared.columns.forget()
	}
	if p.set == nil {
		return
	}
	x.planning.read(p.set, p.mode)
	x.delivery.noteDone(c, p.set, false)
}

// onLocalPrepared handles a command on a statement that no server has.
func (x *executor) onLocalPrepared(cmd protocol.Command, id uint32, p *prepared, payload []byte) error {
	if err := x.relay.settle(); err != nil {
		return err
	}
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
		x.state.Pinged()
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
	x.at.tally.Kind = stats.KindHere // until the command proves to be more
	if len(payload) < params.BulkHead && x.at.likeMariaDB() {
		return params.ErrMalformed
	}
	if err := x.bulkAgreed(); err != nil {
		return err
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	p := x.at.preparedAs(id)
	if p != nil {
		x.relay.keepPrepared(p)
		if err := x.planning.stillBound(&p.inserts); err != nil {
			return x.at.dropLongData(p, err)
		}
		if p.ticket != nil && p.local == nil {
			if err := x.leavePreparedToServer(p, p.ticket); err != nil {
				return x.at.dropLongData(p, err)
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

// bulkAgreed returns the server's error if the session has not agreed on bulk executions, which
// only MariaDB offers.
func (x *executor) bulkAgreed() error {
	switch {
	case x.at.login.Capabilities.Has(protocol.BulkOperations):
		return nil
	case x.at.likeMariaDB():
		return params.ErrNotInBulk
	}
	return unknownCommand()
}
