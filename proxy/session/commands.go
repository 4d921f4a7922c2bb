package session

import (
	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// command handles one command, given as its payload: it takes it into the batch,
// or answers it. An error that the client gets is no error here; one that is
// returned ends the session.
func (s *Session) command(payload []byte) error {
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

// setOption relays COM_SET_OPTION and remembers it for further shards.
func (s *Session) setOption(payload []byte) error {
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
