package session

import (
	"encoding/binary"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/params"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// longCommand handles a command that is too long to be held whole; b is what has
// come of it. handled is false if it should be held after all.
func (s *Session) longCommand(b []byte) (handled bool, err error) {
	size := protocol.PayloadLen(b)
	whole := size < protocol.MaxFragment && size <= s.set.MaxStatement
	if size+protocol.HeaderSize <= protocol.BufferSize {
		return false, nil
	}
	s.scan = nil
	s.batch.number(b, 0)
	s.client.packetNum = b[3] + 1
	cmd := protocol.Command(b[protocol.HeaderSize])
	var c *backend.Conn
	var executed *prepared
	shape := protocol.AnswerTo(b[protocol.HeaderSize:])
	switch cmd {
	case protocol.ComStmtLongData:
		p := s.preparedAs(binary.LittleEndian.Uint32(b[protocol.HeaderSize+1:]))
		if p == nil || p.conn == nil { // nobody would get an error
			if p != nil {
				p.longData(b[protocol.HeaderSize+5:], b[protocol.HeaderSize+7:])
			}
			return true, s.skipCommand()
		}
		p.toServer(b[protocol.HeaderSize+1:])
		if !p.longData(b[protocol.HeaderSize+5:], b[protocol.HeaderSize+7:]) {
			return true, s.skipCommand()
		}
		return true, s.passCommand(p.conn, shape)
	case protocol.ComStmtExecute, protocol.ComStmtBulkExecute:
		s.tally.Kind = stats.KindHere
		id := b[protocol.HeaderSize+1:]
		p := s.preparedAs(binary.LittleEndian.Uint32(id))
		if cmd == protocol.ComStmtBulkExecute {
			err = s.bulkAgreed()
		}
		switch {
		case err != nil:
		case p == nil:
			err = unknownStatement(binary.LittleEndian.Uint32(id), "mysqld_stmt_execute", s.likeMariaDB())
		case p.passable():
			s.takesPrepared(p)
			p.toServer(id)
			executed = p
			if err = s.set.stillBound(&p.inserts); err == nil {
				c, err = s.connFor(p)
			}
			if err == nil && p.ticket != nil {
				err = s.mayLeaveToServer(p.ticket)
			}
			if err != nil {
				err = s.dropLongData(p.conn, p, err)
			}
			p.LongSent = false
		case whole:
			return false, nil
		default:
			err = params.ErrTooLong
		}
	case protocol.ComQuery:
		if whole {
			return false, nil
		}
		s.tally.Kind = stats.KindHere
		text := b[protocol.HeaderSize+1:]
		s.scan, s.scanFrom = nil, protocol.HeaderSize+1
		if s.login.Capabilities.Has(protocol.QueryAttributes) {
			n, _ := protocol.CutAttributes(text)
			text = text[n:]
			s.scanFrom += n
		}
		if s.set.keepsTexts() {
			s.takes(text, true)
		}
		if err = s.boundLong(text); err == nil {
			runs := statement.RunsFunctions
			if statement.MayRunOthers(text, s.state.Mode) {
				runs = statement.RunsOthers
			}
			c, err = s.attachForUnread(runs)
		}
	default:
		if whole {
			return false, nil
		}
		err = params.ErrTooLong
	}
	if err != nil {
		if skipErr := s.skipCommand(); skipErr != nil {
			return true, skipErr
		}
		return true, s.failed(err)
	}
	s.state.LastAnswer = state.ByServer
	s.tally.Sends(c, stats.KindRelay)
	if err := s.passCommand(c, shape); err != nil {
		return true, err
	}
	if executed != nil {
		s.noteExecuted(c, executed)
	}
	return true, nil
}

// attachForUnread attaches a connection for a statement that is too long to be
// analysed: it may be anything.
func (a *attachment) attachForUnread(runs statement.Runs) (*backend.Conn, error) {
	c, err := a.Attach()
	if err != nil {
		return nil, err
	}
	if err := a.BringLastID(c, false); err != nil {
		return nil, err
	}
	a.expects(state.Effect{Kind: statement.Other, Words: statement.Opaque, Runs: runs})
	return c, nil
}
