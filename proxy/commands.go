package proxy

import (
	"fmt"

	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// beginCommand forgets what is of the command before.
func (s *session) beginCommand() {
	s.entered, s.unreached, s.explained, s.effect = nil, false, false, state.Effect{}
	_ = s.numbers.Patience.Over(nil)
	s.numbers.Patience.Begin()
}

// command handles one command, given as its payload: it takes it into the batch,
// or answers it. Errors that the client is told of are no errors here; what is
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

// answerAlone handles a command that is not taken into a batch: what came before
// is answered first. An error of handle that is not the session's end is told to
// the client.
func (s *session) answerAlone(handle func() error) error {
	if err := s.settle(); err != nil {
		return err
	}
	err := handle()
	_ = s.numbers.Notice() // of an answer that could not tell it
	return s.failed(err)
}

// failed answers the command being handled with err, unless that ends the session.
func (s *session) failed(err error) error {
	if err == nil {
		return nil
	}
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
