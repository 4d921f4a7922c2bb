package session

import (
	"errors"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// sendFile passes on the packets of LOAD DATA LOCAL from the client, up to and
// with the empty one that ends them.
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
			// A server that refuses the file closes; its answer says why.
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

// passPacket passes on one packet of the client that is longer than is worth
// holding, as its bytes come; the header must be buffered. It returns the
// payload's length. Once a write failed the rest is only taken in: the server's
// answer tells why.
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

// passCommand passes on a command that is not held whole, all its packets, and
// relays the answer. The command's first bytes are buffered, nothing is in flight.
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

// skipCommand takes in and drops a command, all its packets.
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
