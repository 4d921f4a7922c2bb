package session

import (
	"encoding/binary"
	"errors"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/params"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// longCommand handles a command that is too long for memory. b is its beginning. handled is false
// if all of it should be read into memory after all.
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
		if p == nil || p.conn == nil { // the command has no answer
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
		if executed, c, err = s.longExecution(cmd, b[protocol.HeaderSize+1:], whole); executed == nil && err == nil {
			return false, nil
		}
	case protocol.ComQuery:
		if whole {
			return false, nil
		}
		c, err = s.longQuery(b[protocol.HeaderSize+1:])
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

// longExecution finds the prepared statement and the connection of an execution that is too long
// for memory. id is where the command names the statement. Without a statement or an error, the
// command should be read into memory: whole says that it fits.
func (s *Session) longExecution(cmd protocol.Command, id []byte, whole bool) (p *prepared, c *backend.Conn, err error) {
	s.tally.Kind = stats.KindHere
	if cmd == protocol.ComStmtBulkExecute {
		if err := s.bulkAgreed(); err != nil {
			return nil, nil, err
		}
	}
	p = s.preparedAs(binary.LittleEndian.Uint32(id))
	switch {
	case p == nil:
		return nil, nil, unknownStatement(binary.LittleEndian.Uint32(id), "mysqld_stmt_execute", s.likeMariaDB())
	case p.passable():
	case whole:
		return nil, nil, nil
	default:
		return nil, nil, params.ErrTooLong
	}
	s.keepPrepared(p)
	p.toServer(id)
	if err = s.stillBound(&p.inserts); err == nil {
		c, err = s.connFor(p)
	}
	if err == nil && p.ticket != nil {
		err = s.mayLeaveToServer(p.ticket)
	}
	if err != nil {
		err = s.dropLongData(p, err)
	}
	p.LongSent = false
	return p, c, err
}

// longQuery finds the connection of a text that is too long for memory. text is its beginning, with
// any attributes in front.
func (s *Session) longQuery(text []byte) (*backend.Conn, error) {
	s.tally.Kind = stats.KindHere
	s.scan, s.scanFrom = nil, protocol.HeaderSize+1
	if s.client.attributed {
		n, _ := protocol.CutAttributes(text)
		text = text[n:]
		s.scanFrom += n
	}
	if s.set.keepsTexts() {
		s.keepText(text, true)
	}
	if err := s.mayPassLong(text); err != nil {
		return nil, err
	}
	runs := statement.RunsFunctions
	if statement.MayRunOthers(text, s.state.Mode) {
		runs = statement.RunsOthers
	}
	return s.attachForUnread(runs)
}

// mayPassLong refuses a text too long to be analysed that may put rows into a table with a bound
// column. sql is its beginning.
func (s *Session) mayPassLong(sql []byte) error {
	if err := s.waitOutPause(); err != nil {
		return err
	}
	if bound, err := s.boundHere(); !bound {
		return err
	}
	c, err := s.Attach()
	if err != nil {
		return err
	}
	if s.severalAgreed() {
		if s.state.ModeUnknown || s.state.QuotesUnknown || s.state.EscapesUnknown {
			if err := s.askMode(c); err != nil {
				return err
			}
		}
		s.scan = &lex.Scan{Mode: s.state.Mode}
	}
	begins := statement.ReadBeginning(sql, s.state.Mode)
	s.explained = begins.Table != nil
	if begins.Table != nil {
		b, err := s.binding(begins.Table)
		if err != nil {
			return err
		}
		if b != nil {
			return protocol.NotSupported("an INSERT into %s, whose column %s is filled from sequence %s, that is longer than max_statement = %d bytes, or 16 MB: send fewer rows at once, or prepare the INSERT and send a long value with COM_STMT_SEND_LONG_DATA",
				b.Table, b.Column, b.Sequence, s.set.MaxStatement)
		}
	}
	if !begins.Certain {
		s.scan = nil
		return s.set.errLongUnread()
	}
	return nil
}

// errLongUnread is the error for a text that is too long for memory and may put rows into unknown
// tables.
func (s *Settings) errLongUnread() error {
	return protocol.NotSupported("a text longer than max_statement = %d bytes, or 16 MB, that may insert rows where columns are filled from sequences (OWNED BY or [[bind]]) is not supported: "+
		"send a shorter one, or one statement that begins with INSERT, SELECT, UPDATE or DELETE", s.MaxStatement)
}

// errSecondStatement ends a session in which a text that is partly sent proves to be several
// statements. The server never gets the end of it, and runs nothing.
var errSecondStatement = errors.New("a long text of several statements, where columns are filled from sequences")

// scanned scans a piece of a long text's packets. At what may be a second statement it closes c,
// and the session ends. It sends nothing after the beginning, not even COM_QUIT, which could be the
// end of the text.
func (r *relay) scanned(c *backend.Conn, piece []byte) error {
	skip := min(r.scanFrom, len(piece))
	r.scanFrom -= skip
	if !r.scan.Next(piece[skip:]) {
		return nil
	}
	r.scan = nil
	r.at.forget(c)
	c.Close()
	return errSecondStatement
}

// sendFile passes on the packets of LOAD DATA LOCAL from the client, up to the empty one that ends
// them.
func (r *relay) sendFile(c *backend.Conn) error {
	if err := r.at.client.disarm(); err != nil {
		return err
	}
	var writeErr error
	defer r.at.tally.Waited(r.at.tally.Waits()) // for the client
	continued := false
	num := c.Answer.PacketNum + 1
	for {
		b := r.at.client.Buffered()
		n, ended := 0, false
		for len(b)-n >= protocol.HeaderSize {
			size := protocol.PayloadLen(b[n:])
			if len(b)-n < protocol.HeaderSize+size {
				break
			}
			r.batch.number(b[n:], num)
			num++
			n += protocol.HeaderSize + size
			ended = size == 0 && !continued
			continued = size == protocol.MaxFragment
			if ended {
				break
			}
		}
		if n > 0 {
			// A server that refuses the file closes. Its answer says why.
			if writeErr == nil {
				_, writeErr = c.Write(b[:n])
			}
			r.at.client.Discard(n)
		}
		if ended {
			return nil
		}
		if len(r.at.client.Buffered()) > protocol.BufferSize {
			r.batch.number(r.at.client.Buffered(), num)
			num++
			sent, err := r.passPacket(c, &writeErr)
			if err != nil {
				return err
			}
			continued = sent == protocol.MaxFragment
			continue
		}
		if err := r.at.client.fill(); err != nil {
			return err
		}
	}
}

// passPacket passes on one long packet of the client as its bytes come. The header must be
// buffered. It returns the payload's length. After a failed write it only reads the rest: the
// server's answer says why.
func (r *relay) passPacket(c *backend.Conn, writeErr *error) (size int, err error) {
	if err := r.at.client.disarm(); err != nil {
		return 0, err
	}
	defer r.at.tally.Waited(r.at.tally.Waits()) // for the client
	header := r.at.client.Buffered()
	size = protocol.PayloadLen(header)
	r.at.client.packetNum = header[protocol.HeaderSize-1] + 1
	rest := protocol.HeaderSize + size
	for {
		b := r.at.client.Buffered()
		b = b[:min(len(b), rest)]
		if r.scan != nil && c != nil {
			if err := r.scanned(c, b); err != nil {
				*writeErr = err
			}
		}
		if *writeErr == nil && len(b) > 0 {
			_, *writeErr = c.Write(b)
		}
		r.at.client.Discard(len(b))
		rest -= len(b)
		if rest == 0 {
			return size, nil
		}
		if err := r.at.client.fill(); err != nil {
			return size, err
		}
	}
}

// passCommand passes on all packets of a long command as they come, and relays the answer. The
// command's first bytes must be buffered, and nothing in flight.
func (r *relay) passCommand(c *backend.Conn, shape protocol.Shape) error {
	if err := r.at.client.flush(); err != nil {
		return err
	}
	var writeErr error
	err := r.passPackets(c, &writeErr)
	r.scan = nil
	if err != nil {
		return err
	}
	if errors.Is(writeErr, errSecondStatement) {
		r.refuse(r.at.set.errLongUnread())
		_ = r.at.client.flush() // the session ends either way
		return errSecondStatement
	}
	if shape == protocol.ShapeNone {
		return r.relayAnswers(c, writeErr, nil)
	}
	return r.relayAnswers(c, writeErr, []expected{{shape: shape, unexplained: !r.explained}})
}

// skipCommand reads all packets of a command and drops them.
func (r *relay) skipCommand() error {
	dropped := errors.New("dropped")
	return r.passPackets(nil, &dropped)
}

// passPackets is passPacket for all packets of a command.
func (r *relay) passPackets(c *backend.Conn, writeErr *error) error {
	for {
		size, err := r.passPacket(c, writeErr)
		if err != nil || size < protocol.MaxFragment {
			return err
		}
		for len(r.at.client.Buffered()) < protocol.HeaderSize {
			if err := r.at.client.fill(); err != nil {
				return err
			}
		}
		r.batch.number(r.at.client.Buffered(), r.at.client.packetNum)
		if r.at.client.Buffered()[3] != r.at.client.packetNum {
			return r.outOfOrder(r.at.client.packetNum)
		}
		r.scanFrom = protocol.HeaderSize
	}
}
