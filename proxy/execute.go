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

// execute handles COM_STMT_EXECUTE.
func (s *session) execute(payload []byte) error {
	s.tally.Kind = stats.KindOwn // until it is more
	if len(payload) < params.ExecuteHead {
		return s.answerAlone(func() error { return malformed(s.likeMariaDB()) })
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	p := s.preparedAs(id)
	if p != nil {
		s.takesPrepared(p)
		if err := s.set.stillBound(&p.inserts); err != nil {
			return s.answerAlone(func() error { return s.dropLongData(p.conn, p, err) })
		}
	}
	switch {
	case p == nil:
		return s.answerAlone(func() error { return unknownStatement(id, "mysqld_stmt_execute", s.likeMariaDB()) })
	case p.ticket != nil:
		return s.answerAlone(func() error { return s.executeTicket(p, payload) })
	case p.local != nil:
		return s.answerAlone(func() error { return s.executeLocal(p, payload) })
	case len(p.Hidden) > 0:
		return s.answerAlone(func() error { return refusedCount(p.numbers.Block, s.executeNumbered(p, payload)) })
	case p.numbers.Rows != nil:
		return s.answerAlone(func() error { return s.executeRows(p, payload) })
	case p.looks != nil:
		return s.answerAlone(func() error { return s.executeLooking(p, payload) })
	}
	p.toServer(payload[1:])
	if p.shape.Plain && p.conn == s.cur && !s.state.NextTransaction && !s.set.LastInsertIDExact {
		if p.shape.MovesLastID {
			if err := s.bringBefore(); err != nil {
				return s.failed(err)
			}
		}
		s.state.LastAnswer = state.ByServer
		p.LongSent = false
		return s.relayCommand(protocol.AnswerTo(payload), false)
	}
	return s.answerAlone(func() error {
		if p.kill != nil {
			if handled, err := s.executeKill(p, payload); handled || err != nil {
				return err
			}
		}
		if p.use != "" {
			return s.useSchema(p.use, p)
		}
		return s.passExecution(p, payload)
	})
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

// passable says whether an execution may be passed on without being held whole: all
// that is needed of it is the statement.
func (p *prepared) passable() bool {
	return p.conn != nil && len(p.Hidden) == 0 && p.numbers.Rows == nil && p.set == nil && p.kill == nil && p.use == ""
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

// connOf returns the connection of a prepared statement: the one that it was
// prepared on, in the schema of that time, even if another shard is current.
func (a *attachment) connOf(p *prepared) (*backend.Conn, error) {
	if p.conn == a.cur {
		return p.conn, a.enter(a.cur.Shard())
	}
	switch there, here := p.conn.Shard().Name(), a.cur.Shard().Name(); {
	case a.state.InTransaction():
		return nil, protocol.NotSupported("the statement was prepared on shard %s and cannot run inside a transaction on shard %s: COMMIT or ROLLBACK first",
			there, here)
	case !a.state.Status.Has(protocol.Autocommit): // it would begin a transaction there
		return nil, protocol.NotSupported("the statement was prepared on shard %s and cannot run from shard %s with autocommit = 0: USE a schema of shard %s first",
			there, here, there)
	case !p.shape.LeavesNothing():
		return nil, protocol.NotSupported("the statement was prepared on shard %s, where it changes the session, which is on shard %s now: USE a schema of shard %s first, or prepare it again",
			there, here, there)
	}
	return a.connTo(p.conn.Shard())
}

// connFor is connOf for an execution: it makes true there what the statement may
// look at.
func (a *attachment) connFor(p *prepared) (*backend.Conn, error) {
	c, err := a.connOf(p)
	if err != nil {
		return nil, err
	}
	if err := a.prepareConn(c, p); err != nil {
		return nil, err
	}
	return c, nil
}

// prepareConn makes true on c what the statement may look at.
func (a *attachment) prepareConn(c *backend.Conn, p *prepared) error {
	if err := a.bring(c, p.shape); err != nil {
		return err
	}
	a.expects(state.Effect{Kind: p.shape.Kind, Words: p.shape.Words, Runs: p.shape.Runs})
	return nil
}

// onPrepared handles the other commands on a prepared statement.
func (s *session) onPrepared(cmd protocol.Command, payload []byte) error {
	least := 5 // command, statement id
	switch {
	case cmd == protocol.ComStmtLongData:
		least = 7 // and parameter
	case cmd == protocol.ComStmtFetch && !s.likeMariaDB():
		least = 9 // and number of rows, for which MariaDB looks beyond the packet
	}
	if len(payload) < least {
		switch {
		case !s.likeMariaDB(): // MySQL answers then even to what has no answer
			return s.answerAlone(func() error { return malformed(s.likeMariaDB()) })
		case cmd.AnswerShape() == protocol.ShapeNone:
			return s.settle()
		}
		// MariaDB reads the id beyond the packet, where other commands may have stood. It is
		// taken for unknown, also where the rest with zeros behind it is a statement's.
		var id [4]byte
		copy(id[:], payload[1:])
		return s.answerAlone(func() error { return s.onLocalPrepared(cmd, binary.LittleEndian.Uint32(id[:]), nil, payload) })
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	p := s.preparedAs(id)
	if p == nil || p.local != nil {
		return s.answerAlone(func() error { return s.onLocalPrepared(cmd, id, p, payload) })
	}
	p.toServer(payload[1:])
	switch cmd {
	case protocol.ComStmtClose:
		s.prepared.remove(p)
	case protocol.ComStmtLongData:
		if !p.longData(payload[5:7], payload[7:]) {
			return nil
		}
		if p.kill != nil {
			p.kill.long = true
		}
	case protocol.ComStmtReset:
		p.ForgetLong()
		if p.kill != nil {
			p.kill.long = false
		}
	}
	if cmd == protocol.ComStmtFetch {
		if err := s.enter(p.conn.Shard()); err != nil {
			return s.answerAlone(func() error { return err })
		}
	}
	if p.conn != s.cur || s.batch.elsewhere(p.conn) {
		if err := s.settle(); err != nil {
			return err
		}
	}
	s.enqueue(p.conn, cmd.AnswerShape())
	return nil
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
