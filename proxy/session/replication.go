package session

import (
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// handOver relays a command whose answer never ends (replication) until one side closes. A session
// without the right to it goes on, as on the server. Nothing is in flight.
func (s *Session) handOver() error {
	c, err := s.Attach()
	if err != nil {
		return err
	}
	return s.dump(c)
}

// dump relays a replication command to c, and its answer.
func (r *relay) dump(c *backend.Conn) error {
	if err := r.at.client.flush(); err != nil {
		return err
	}
	if _, err := c.Write(r.batch.command()); err != nil {
		return r.at.lost(c, err, false)
	}
	r.batch.drop()
	for len(c.Buffered()) <= protocol.HeaderSize {
		if err := c.Fill(); err != nil {
			return r.at.lost(c, err, false)
		}
	}
	if c.Buffered()[protocol.HeaderSize] == 0xff { // ERR; an event begins with 0
		r.at.state.LastAnswer = state.ByServer
		err := r.relayAnswers(c, nil, []expected{{shape: protocol.ShapeOne}})
		switch c.Answer.ErrCode {
		case mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, mysql.ER_UNKNOWN_COM_ERROR:
			return err
		}
		return fmt.Errorf("%w: %w", errQuit, errDumpRefused) // the server closes then
	}
	if err := r.at.client.disarm(); err != nil {
		return err
	}
	r.at.client.FullDuplex()
	c.FullDuplex()
	ended := make(chan error, 1)
	go func() {
		// The client sends acknowledgements and its end.
		err := copyStream(c.Conn, r.at.client.Conn, func() {})
		c.Abort()
		ended <- err
	}()
	err := copyStream(r.at.client.Conn, c.Conn, func() { r.at.tally.ReportLong(r.at.client.Conn, c) })
	r.at.client.Abort()
	<-ended
	_ = r.at.abandon(c, errClientGone) // an idle server may not notice the end
	return fmt.Errorf("%w: %w", errQuit, err)
}

var errDumpRefused = errors.New("the server has refused a dump")

// copyStream passes bytes on as they come, until from ends. It calls passed after each write.
func copyStream(to, from *protocol.Conn, passed func()) error {
	for {
		if b := from.Buffered(); len(b) > 0 {
			if _, err := to.Write(b); err != nil {
				return err
			}
			from.Discard(len(b))
			passed()
		}
		if err := from.Fill(); err != nil {
			return err
		}
	}
}
