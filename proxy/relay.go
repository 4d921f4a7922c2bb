package proxy

import (
	"errors"
	"fmt"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/stats"
)

// Which side of a session failed. A client that went away is no event worth a
// warning; a backend that went away is.
var (
	errClientGone  = errors.New("client is gone")
	errBackendGone = errors.New("backend is gone")
)

// enqueue takes the command just parsed into the batch that goes to the current
// backend connection with the next settle.
func (s *session) enqueue(c *backend.Conn, shape protocol.Shape) {
	s.tally.Sends(c, stats.KindRelay)
	e := expected{shape: shape, unexplained: !s.explained}
	if s.tally.Kind != stats.NoStatement {
		e.text, e.kind = s.slow.text, s.tally.Kind
	}
	s.batch.add(c, e)
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
	if err = s.failed(err); err != nil {
		return err
	}
	s.batch.addOurs(s.client.out[mark:])
	s.client.out = s.client.out[:mark]
	return nil
}

// settle writes the batch in one piece and relays the answers to all of it.
func (s *session) settle() error {
	if s.batch.size == 0 {
		return nil
	}
	if err := s.client.flush(); err != nil {
		return err
	}
	c := s.batch.conn
	var all []byte
	all, s.scratch = s.batch.bytes(s.scratch)
	_, writeErr := c.Write(all)
	s.batch.sent()
	if s.share.relayed {
		s.giveShare()
	}
	err := s.awaitAnswers(c, writeErr, s.batch.answers)
	s.batch.answered()
	return err
}

// exchange sends a command of the proxy's making and relays its answer.
func (s *session) exchange(c *backend.Conn, command []byte, answer protocol.Shape) error {
	s.tally.Sends(c, stats.KindRewrite)
	if err := s.client.flush(); err != nil {
		return err
	}
	_, writeErr := c.Write(command)
	s.batch.drop() // it took the place of the client's
	return s.awaitAnswers(c, writeErr, []expected{{shape: answer, text: s.slow.text, kind: s.tally.Kind}})
}

// awaitAnswers relays the answers to what was written with writeErr.
func (s *session) awaitAnswers(c *backend.Conn, writeErr error, answers []expected) error {
	// A server that closes says why before: look for that even if the write failed.
	err := s.relayAnswers(c, answers)
	if err == nil && writeErr != nil {
		err = s.lost(c, writeErr, true) // the client has all the answers that it waits for
	}
	return err
}

// relayAnswers passes on what the server sends until it has answered everything
// that answers lists. Each chunk is written as it was read.
func (s *session) relayAnswers(c *backend.Conn, answers []expected) error {
	accepted := 0 // bytes of c's buffer that were walked over and not yet passed on
	ready := s.batch.ready
	for i := range answers {
		e := &answers[i]
		if e.ours > 0 { // behind what came before it, to be written with that
			s.state.LastID.Rows = false // those before it
			s.client.out = append(s.client.out, c.Buffered()[:accepted]...)
			c.Discard(accepted)
			accepted = 0
			s.client.out = append(s.client.out, ready[:e.ours]...)
			ready = ready[e.ours:]
			continue
		}
		c.Answer.Begin(e.shape, c.Capabilities)
		partly := false // some of this answer was passed on
		awaited, bytes := false, uint64(0)
		for {
			n, ev := c.Answer.Walk(c.Buffered()[accepted:])
			accepted += n
			bytes += uint64(n)
			if s.kills.Wait() {
				s.kills.After(c.Answer.Results)
			}
			whole := !partly
			partly = partly || n > 0
			if ev == protocol.Done {
				s.noteNotice(c, c.Buffered()[accepted-n:accepted], whole)
				s.state.LastID.Answered(c.Answer.Rows)
				// not for commands without an answer: they leave nothing
				s.state.LastConn = idOfConn(c)
				noteError(c)
				s.noteRefusal(c, c.Buffered()[accepted-n:accepted], whole)
				if e.unexplained && c.Answer.InsertID != 0 {
					s.suspects(c, e)
				}
				s.slow.bytes = bytes
				if awaited && s.timesAnswers() {
					s.answered(c, e, bytes)
				}
				break
			}
			if err := s.client.pass(c, accepted); err != nil {
				return s.abandon(c, err)
			}
			accepted = 0
			switch ev {
			case protocol.NeedMore:
				s.tally.TellLong(s.client.Conn, c)
				awaited = true
				if err := s.tally.Fill(c); err != nil {
					return s.lost(c, err, partly)
				}
			case protocol.WantsFile:
				if s.batch.parsed > 0 { // what the client sent next is a command, no file
					return s.lost(c, errors.New("the server asks for a file that no statement named"), true)
				}
				if err := s.sendFile(c); err != nil {
					return s.abandon(c, err)
				}
				c.Answer.FileSent()
			default:
				return s.lost(c, protocol.ErrMalformed, true)
			}
		}
	}
	if err := s.client.pass(c, accepted); err != nil {
		return err
	}
	if len(c.Buffered()) > 0 { // it would be taken for the answer to the next command
		return s.lost(c, errors.New("the server said something that nobody asked for"), true)
	}
	s.release(c)
	return nil
}

// lost ends a session whose backend connection broke: what it held (transaction,
// variables, locks) is gone, as after a lost connection to the server itself. The client
// gets no error, but the end of its connection, as from a server that is gone: drivers and
// their pools know that, and make another one. The log says why.
func (b *backends) lost(c *backend.Conn, cause error, midAnswer bool) error {
	c.Close()
	b.forget(c)
	switch b.doom.Why() {
	case kill.Vanished:
		return b.abandon(c, errClientGone)
	case kill.Killed: // a server says nothing either
		return errKilled
	}
	if !b.doom.Is() {
		c.CountLost(cause)
	}
	err := fmt.Errorf("%w: shard %s, node %s: %w", errBackendGone, c.Shard().Name(), c.Node(), cause)
	if !midAnswer {
		_ = b.client.flush() // answers to commands before; the session ends either way
	}
	return err
}

// abandon has the server end what it does on c, if err is that the client has gone
// before the answer. It returns err.
func (b *backends) abandon(c *backend.Conn, err error) error {
	if creds, known := b.login.Account.Credentials(c.Shard()); known && errors.Is(err, errClientGone) {
		b.killer.Abandon(c.Place(), creds)
	}
	return err
}

// sendFile passes on the packets of LOAD DATA LOCAL from the client, up to and
// with the empty one that ends them.
func (s *session) sendFile(c *backend.Conn) error {
	if err := s.client.disarm(); err != nil {
		return err
	}
	var writeErr error
	defer s.tally.Waited(s.tally.Waits()) // for the client
	continued := false
	num := c.Answer.PacketNum + 1
	for {
		b := s.client.Buffered()
		n, ended := 0, false
		for len(b)-n >= protocol.HeaderSize {
			size := protocol.PayloadLen(b[n:])
			if len(b)-n < protocol.HeaderSize+size {
				break
			}
			s.batch.number(b[n:], num)
			num++
			n += protocol.HeaderSize + size
			ended = size == 0 && !continued
			continued = size == protocol.MaxFragment
			if ended {
				break
			}
		}
		if n > 0 {
			// A server that refuses the file closes; its answer says why.
			if writeErr == nil {
				_, writeErr = c.Write(b[:n])
			}
			s.client.Discard(n)
		}
		if ended {
			return nil
		}
		if len(s.client.Buffered()) > protocol.BufferSize {
			s.batch.number(s.client.Buffered(), num)
			num++
			sent, err := s.passPacket(c, &writeErr)
			if err != nil {
				return err
			}
			continued = sent == protocol.MaxFragment
			continue
		}
		if err := s.client.fill(); err != nil {
			return err
		}
	}
}

// passPacket passes on one packet of the client that is longer than is worth
// holding, as its bytes come; the header must be buffered. It returns the
// payload's length. Once a write failed the rest is only taken in: the server's
// answer tells why.
func (s *session) passPacket(c *backend.Conn, writeErr *error) (size int, err error) {
	if err := s.client.disarm(); err != nil {
		return 0, err
	}
	defer s.tally.Waited(s.tally.Waits()) // for the client
	header := s.client.Buffered()
	size = protocol.PayloadLen(header)
	s.client.packetNum = header[protocol.HeaderSize-1] + 1
	left := protocol.HeaderSize + size
	for {
		b := s.client.Buffered()
		b = b[:min(len(b), left)]
		if s.scan != nil && c != nil {
			if err := s.scanned(c, b); err != nil {
				*writeErr = err
			}
		}
		if *writeErr == nil && len(b) > 0 {
			_, *writeErr = c.Write(b)
		}
		s.client.Discard(len(b))
		left -= len(b)
		if left == 0 {
			return size, nil
		}
		if err := s.client.fill(); err != nil {
			return size, err
		}
	}
}

// passCommand passes on a command that is not held whole, all its packets, and
// relays the answer. The command's first bytes are buffered, nothing is in flight.
func (s *session) passCommand(c *backend.Conn, shape protocol.Shape) error {
	if err := s.client.flush(); err != nil {
		return err
	}
	var writeErr error
	err := s.passPackets(c, &writeErr)
	s.scan = nil
	if err != nil {
		return err
	}
	if errors.Is(writeErr, errSecondStatement) {
		s.refuse(s.set.errLongUnread())
		_ = s.client.flush() // the session ends either way
		return errSecondStatement
	}
	if shape == protocol.ShapeNone {
		return s.awaitAnswers(c, writeErr, nil)
	}
	return s.awaitAnswers(c, writeErr, []expected{{shape: shape, unexplained: !s.explained}})
}

// skipCommand takes in and drops a command, all its packets.
func (s *session) skipCommand() error {
	dropped := errors.New("dropped")
	return s.passPackets(nil, &dropped)
}

// passPackets is passPacket for all packets of a command.
func (s *session) passPackets(c *backend.Conn, writeErr *error) error {
	for {
		size, err := s.passPacket(c, writeErr)
		if err != nil || size < protocol.MaxFragment {
			return err
		}
		for len(s.client.Buffered()) < protocol.HeaderSize {
			if err := s.client.fill(); err != nil {
				return err
			}
		}
		s.batch.number(s.client.Buffered(), s.client.packetNum)
		if s.client.Buffered()[3] != s.client.packetNum {
			return s.outOfOrder(s.client.packetNum)
		}
		s.scanFrom = protocol.HeaderSize
	}
}
