package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// command handles one command, given as its payload: it takes it into the batch,
// or answers it. Errors that the client is told of are no errors here; what is
// returned ends the session.
func (s *session) command(payload []byte) error {
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
		s.state.lastOwn = ownNothing // MariaDB resets ROW_COUNT()
		return s.relay(protocol.ShapeOne, false)
	case protocol.ComInitDB:
		return s.answerAlone(func() error { return s.use(string(payload[1:])) })
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
		s.state.lastOwn = ownNothing
		return s.relay(cmd.AnswerShape(), true)
	case protocol.ComProcessKill:
		return s.answerAlone(func() error { return s.processKill(payload) })
	case protocol.ComRegisterSlave:
		return s.relay(protocol.ShapeOne, true)
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
	return s.tell(handle())
}

// tell answers the command being handled with err, unless that ends the session.
func (s *session) tell(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, errClientGone) || errors.Is(err, errBackendGone) || errors.Is(err, errShutdown) || errors.Is(err, errQuit) ||
		errors.Is(err, errKilled) {
		return err
	}
	s.refuse(err)
	return nil
}

// relay passes the command just parsed on to the current shard. alone commands are
// answered before any later one is looked at, since they may change how that is
// understood.
func (s *session) relay(answer protocol.Shape, alone bool) error {
	c, err := s.attach()
	if err != nil {
		return s.answerAlone(func() error { return err })
	}
	if alone || s.batched > 0 && s.batchConn != c {
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

// use makes a schema the current one, as COM_INIT_DB and USE do: the command just
// parsed goes to the shard that owns the schema, with the session's state.
func (s *session) use(schema string) error { return s.useSchema(schema, nil) }

// useSchema is use for the execution of a prepared USE as well, where p is not nil.
// Another shard than the one that knows p is told by COM_INIT_DB.
func (s *session) useSchema(schema string, p *prepared) error {
	shard := s.srv.opts.Shards.ForSchema(schema)
	if shard == nil { // only keys: there is nothing that could miss it
		s.state.schema = schema
		s.state.lastOwn = ownAnswer
		s.reply(protocol.OK{})
		return nil
	}
	c := s.cur
	var err error
	opened := false
	switch {
	case c == nil:
		if c = s.conns[shard]; c == nil { // else it is that of a relayed login
			c, err = s.open(shard, "")
			opened = true
		}
	case c.Shard() != shard:
		c, err = s.connTo(shard)
	}
	if err != nil {
		return err
	}
	s.state.lastOwn = ownNothing
	if p != nil && p.conn != c {
		if p.mode.Charset != s.state.mode.Charset && !ascii([]byte(schema)) {
			return notSupported("the schema of a prepared USE is on another shard, and the character set was another when its name was prepared: send it as text")
		}
		s.own = append(s.own[:0], 0, 0, 0, 0, byte(protocol.ComInitDB))
		s.own = append(s.own, schema...)
		protocol.PutHeader(s.own, len(s.own)-protocol.HeaderSize, 0)
		err = s.exchange(c, s.own, protocol.ShapeOne)
	} else {
		s.enqueue(c, protocol.ShapeResult)
		err = s.settle()
	}
	if err != nil {
		return err
	}
	switch {
	case c.Answer.ErrCode == 0:
		s.current(c)
		s.state.schema = schema
	case opened: // the session stays where it was: nowhere
		s.forget(c)
		c.Quit()
	}
	return nil
}

// elsewhere says whether a schema is owned by another shard than the current one.
func (s *session) elsewhere(schema string) bool {
	return s.srv.opts.Shards.ForSchema(schema) != s.srv.opts.Shards.ForSchema(s.state.schema)
}

// onSchema relays the command just parsed, which creates, alters or drops a schema,
// to the shard that owns it. The session stays where it is.
func (s *session) onSchema(schema string) error {
	var c *backend.Conn
	var err error
	switch {
	case !s.elsewhere(schema):
		c, err = s.attach()
		s.state.lastOwn = ownNothing
	default:
		if c, err = s.attach(); err == nil { // what it has set must be brought along
			c, err = s.connTo(s.srv.opts.Shards.ForSchema(schema))
		}
		// What the statement leaves behind is not where the session will look for it.
		s.state.lastOwn = ownAnswer
	}
	if err != nil {
		return err
	}
	s.enqueue(c, protocol.ShapeResult)
	return s.settle()
}

// setOption relays COM_SET_OPTION and remembers it for further shards.
func (s *session) setOption(payload []byte) error {
	option := append([]byte(nil), payload[1:]...)
	if s.srv.opts.Shards.Default() == nil {
		s.reply(protocol.OK{})
		return nil
	}
	if err := s.relay(protocol.ShapeOne, true); err != nil {
		return err
	}
	if s.cur != nil && s.cur.Answer.ErrCode == 0 {
		s.state.option = option
	}
	return nil
}

// resetConnection makes the session like a new one of the same user: one
// connection is reset by its server, the others are closed.
func (s *session) resetConnection() error {
	cur := s.cur
	s.prepared.clear()
	for _, c := range s.conns {
		if c != cur && !s.resetInPlace(c) {
			s.forget(c)
			c.Quit()
		}
	}
	if cur == nil {
		s.state.reset()
		s.reply(protocol.OK{})
		return nil
	}
	s.enqueue(cur, protocol.ShapeOne)
	if err := s.settle(); err != nil {
		return err
	}
	if cur.Answer.ErrCode == 0 {
		s.state.reset()
		hello := cur.Hello()
		s.state.setCollation(s.login.Collation)
		s.state.startMode(&hello, s.login.Collation)
		if !hello.MariaDB { // the character set is the server's default, whatever the login said
			s.state.askMode()
		}
		s.state.knows(cur, 0)
		s.release(cur)
		s.state.trustStatus(hello.MariaDB)
		s.state.escapesUnknown = false
	}
	return nil
}

// resetInPlace resets a connection that could not be opened again, for want of a
// password.
func (s *session) resetInPlace(c *backend.Conn) bool {
	_, err := s.ownPassword(c.Shard())
	return err != nil && c.Command(protocol.ComResetConn, "") == nil
}

// changeUser checks the new user as a login does; the session then starts anew.
func (s *session) changeUser(payload []byte) error {
	if err := s.settle(); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	// The dialogue reads packets from the same buffer: the command must be out of it.
	command := append([]byte(nil), payload...)
	s.client.Discard(s.parsed)
	s.parsed = 0
	if err := s.setDeadline(time.Now().Add(s.srv.opts.LoginTimeout)); err != nil {
		return err
	}
	s.client.SetPacketNum(s.packetNum)
	attempt, err := s.srv.serverLogin(s.id).ReceiveChangeUser(s.client, command, &s.login)
	if err != nil {
		return err
	}
	// Whatever comes of it, the session that was is over.
	s.closeBackends()
	s.prepared.clear()
	s.introduce(false)
	salt := s.login.Salt
	s.changedUser = true
	s.state = state{}
	s.state.reset()
	if err := s.identify(attempt); err != nil {
		return err
	}
	s.login.Salt = salt
	if err := s.begin(s.login.Database); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	return s.setDeadline(time.Time{})
}

// handOver relays a command whose answer never ends (replication) until one side
// closes. A session without the right to it goes on, as on the server.
func (s *session) handOver() error {
	if err := s.settle(); err != nil {
		return err
	}
	c, err := s.attach()
	if err != nil {
		return s.tell(err)
	}
	if err := s.flush(); err != nil {
		return err
	}
	if _, err := c.Write(s.client.Buffered()[:s.parsed]); err != nil {
		return s.lost(c, err, false)
	}
	s.client.Discard(s.parsed)
	s.parsed = 0
	for len(c.Buffered()) <= protocol.HeaderSize {
		if err := c.Fill(); err != nil {
			return s.lost(c, err, false)
		}
	}
	if c.Buffered()[protocol.HeaderSize] == 0xff { // ERR; an event begins with 0
		s.state.lastOwn = ownNothing
		err := s.relayAnswers(c, []expected{{shape: protocol.ShapeOne}})
		switch c.Answer.ErrCode {
		case mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, mysql.ER_UNKNOWN_COM_ERROR:
			return err
		}
		return fmt.Errorf("%w: %w", errQuit, errDumpRefused) // the server closes then
	}
	if err := s.disarm(); err != nil {
		return err
	}
	s.client.FullDuplex()
	c.FullDuplex()
	ended := make(chan error, 1)
	go func() {
		err := copyStream(c.Conn, s.client) // what the client says: acknowledgements, its end
		c.Abort()
		ended <- err
	}()
	err = copyStream(s.client, c.Conn)
	s.client.Abort()
	<-ended
	_ = s.abandon(c, errClientGone) // the server may wait for what there is to send, and not notice
	return fmt.Errorf("%w: %w", errQuit, err)
}

var errDumpRefused = errors.New("the server has refused a dump")

// copyStream passes bytes on as they come, until from ends.
func copyStream(to, from *protocol.Conn) error {
	for {
		if b := from.Buffered(); len(b) > 0 {
			if _, err := to.Write(b); err != nil {
				return err
			}
			from.Discard(len(b))
		}
		if err := from.Fill(); err != nil {
			return err
		}
	}
}

// longCommand handles a command that is too long to be held whole; b is what has
// come of it. handled is false if it should be held after all.
func (s *session) longCommand(b []byte) (handled bool, err error) {
	size := protocol.PayloadLen(b)
	held := size < protocol.MaxFragment && size <= s.srv.opts.MaxStatement
	if size+protocol.HeaderSize <= protocol.BufferSize {
		return false, nil
	}
	s.number(b, 0)
	s.packetNum = b[3] + 1
	cmd := protocol.Command(b[protocol.HeaderSize])
	var c *backend.Conn
	var executed *prepared
	shape := cmd.AnswerShape()
	switch cmd {
	case protocol.ComStmtLongData:
		p := s.preparedAs(binary.LittleEndian.Uint32(b[protocol.HeaderSize+1:]))
		if p == nil || p.conn == nil { // nobody would get an error
			return true, s.skipCommand()
		}
		p.toServer(b[protocol.HeaderSize+1:])
		p.longData(b[protocol.HeaderSize+5:])
		return true, s.passCommand(p.conn, shape)
	case protocol.ComStmtExecute, protocol.ComStmtBulkExecute:
		id := b[protocol.HeaderSize+1:]
		p := s.preparedAs(binary.LittleEndian.Uint32(id))
		if cmd == protocol.ComStmtBulkExecute {
			err = s.bulkAgreed()
		}
		switch {
		case err != nil:
		case p == nil:
			err = s.unknownStatement(binary.LittleEndian.Uint32(id), "mysqld_stmt_execute")
		case p.passable():
			p.toServer(id)
			executed = p
			if c, err = s.connFor(p); err != nil {
				err = s.dropLongData(p.conn, p, err)
			}
			p.longSent = false
		case held:
			return false, nil
		default:
			err = errTooLong
		}
	case protocol.ComQuery:
		if held {
			return false, nil
		}
		c, err = s.attachForUnread()
	default:
		if held {
			return false, nil
		}
		err = errTooLong
	}
	if err != nil {
		if skipErr := s.skipCommand(); skipErr != nil {
			return true, skipErr
		}
		return true, s.tell(err)
	}
	s.state.lastOwn = ownNothing
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
func (s *session) attachForUnread() (*backend.Conn, error) {
	c, err := s.attach()
	if err != nil {
		return nil, err
	}
	if err := s.bringLastID(c, false); err != nil {
		return nil, err
	}
	s.state.pin(pinOpaque)
	return c, nil
}
