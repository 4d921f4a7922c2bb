package proxy

import (
	"encoding/binary"
	"fmt"

	"seqproxy/protocol"
	"seqproxy/proxy/params"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// beginCommand forgets what is of the command before.
func (s *session) beginCommand() {
	s.entered, s.unreached, s.explained, s.effect = nil, false, false, state.Effect{}
	s.numbers.Patience.Begin()
}

// command handles one command, given as its payload: it takes it into the batch,
// or answers it. An error that the client gets is no error here; one that is
// returned ends the session.
func (s *session) command(payload []byte) error {
	s.beginCommand()
	if len(payload) == 0 {
		return s.answerAlone(func() error { return unknownCommand() })
	}
	switch cmd := protocol.Command(payload[0]); cmd {
	case protocol.ComQuery:
		return s.query(payload[1:])
	case protocol.ComStmtExecute:
		return s.execute(payload)
	case protocol.ComStmtBulkExecute:
		return s.answerAlone(func() error { return s.executeBulk(payload) })
	case protocol.ComStmtPrepare:
		return s.answerAlone(func() error { return s.prepare(payload[1:]) })
	case protocol.ComStmtClose, protocol.ComStmtReset, protocol.ComStmtLongData, protocol.ComStmtFetch:
		return s.onPrepared(cmd, payload)
	case protocol.ComPing:
		if s.cur == nil {
			return s.answerAlone(func() error { s.reply(protocol.OK{}); return nil })
		}
		s.state.Pinged()
		return s.relayCommand(protocol.ShapeOne, false)
	case protocol.ComInitDB:
		return s.answerAlone(func() error { return s.useSchema(string(payload[1:]), nil) })
	case protocol.ComSetOption:
		return s.answerAlone(func() error { return s.setOption(payload) })
	case protocol.ComResetConn:
		return s.answerAlone(s.resetConnection)
	case protocol.ComChangeUser:
		return s.changeUser(payload)
	case protocol.ComQuit:
		if err := s.settle(); err != nil {
			return err
		}
		return errQuit
	case protocol.ComCreateDB, protocol.ComDropDB:
		return s.answerAlone(func() error { return s.onSchema(string(payload[1:])) })
	case protocol.ComFieldList, protocol.ComStatistics, protocol.ComProcessInfo, protocol.ComRefresh,
		protocol.ComDebug, protocol.ComShutdown:
		s.state.LastAnswer = state.ByServer
		if s.routes.Default() == nil && cmd == protocol.ComStatistics {
			return s.answerAlone(s.statistics)
		}
		return s.relayCommand(cmd.AnswerShape(), true)
	case protocol.ComProcessKill:
		return s.answerAlone(func() error { return s.processKill(payload) })
	case protocol.ComRegisterSlave:
		return s.relayCommand(protocol.ShapeOne, true)
	case protocol.ComBinlogDump, protocol.ComBinlogDumpGTID, protocol.ComTableDump:
		return s.handOver()
	}
	return s.answerAlone(func() error { return unknownCommand() })
}

// handled counts the command that was in hand. An error is that of the session's end.
func (s *session) handled(err error) {
	if k, sentTo := s.tally.Handled(err); k != stats.NoStatement {
		s.slow.kind, s.slow.sentTo = k, sentTo
	}
}

// answerAlone handles a command that is not taken into a batch: what came before
// is answered first. The client gets an error of handle, unless it ends the session.
func (s *session) answerAlone(handle func() error) error {
	if err := s.settle(); err != nil {
		return err
	}
	err := handle()
	_ = s.numbers.Notice() // of an answer that could not tell it
	if err == nil {
		return nil
	}
	return s.failed(err)
}

// failed answers the command being handled with err, unless that ends the session.
func (s *session) failed(err error) error {
	if ends(err) {
		return err
	}
	s.tally.Refused()
	s.refuse(err)
	if s.unreached && s.othersDepend() && s.sentBehind() {
		_ = s.client.flush() // the session ends either way
		return fmt.Errorf("%w: %w", errSentBehind, err)
	}
	return nil
}

// relayCommand passes the command just parsed on to the current shard. alone commands are
// answered before any later one is looked at, since they may change how that is
// understood.
func (s *session) relayCommand(answer protocol.Shape, alone bool) error {
	c, err := s.Attach()
	if err != nil {
		return s.answerAlone(func() error { return err })
	}
	if alone || s.batch.elsewhere(c) {
		if err := s.settle(); err != nil {
			return err
		}
	}
	s.enqueue(c, answer)
	if !alone {
		return nil
	}
	return s.settle()
}

// setOption relays COM_SET_OPTION and remembers it for further shards.
func (s *session) setOption(payload []byte) error {
	option := append([]byte(nil), payload[1:]...)
	if s.routes.Default() == nil {
		s.reply(protocol.OK{})
		return nil
	}
	if err := s.relayCommand(protocol.ShapeOne, true); err != nil {
		return err
	}
	if s.cur != nil && s.cur.Answer.ErrCode == 0 {
		s.state.Option = option
	}
	return nil
}

// execute handles COM_STMT_EXECUTE.
func (s *session) execute(payload []byte) error {
	s.tally.Kind = stats.KindHere // until it is more
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
		return s.answerAlone(func() error {
			err := s.executeNumbered(p, payload)
			if b := p.numbers.Block; err != nil && b != nil && b.Key != nil {
				err = refusedQuery(b.Key, err)
			}
			return err
		})
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

// answerInOrder handles a command that needs no server, without waiting for the answers
// to those before it: ours takes its place among them. What the answer says of the
// session must not depend on them, so it waits all the same in a transaction, which
// they may end.
func (s *session) answerInOrder(handle func() error) error {
	if s.batch.size == 0 || s.state.InTransaction() || !s.state.Status.Has(protocol.Autocommit) || s.batch.full() {
		return s.answerAlone(handle)
	}
	mark := len(s.client.out)
	err := handle()
	_ = s.numbers.Notice()
	if err != nil {
		if err = s.failed(err); err != nil {
			return err
		}
	}
	s.batch.addOurs(s.client.out[mark:])
	s.client.out = s.client.out[:mark]
	return nil
}
