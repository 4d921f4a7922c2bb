package session

import (
	"errors"
	"fmt"
	"io"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// client is the connection of a session to its client, and the answers that wait to be written
// there.
type client struct {
	*protocol.Conn
	out       []byte // answers of our own, not yet written
	packetNum uint8  // of the next packet of the answer to the command being handled
	// alarm is what the read deadline is set to; zero: to none. It is not moved with every round:
	// when it goes off, idleness looks whether time is up.
	alarm time.Time
}

// maxKept is how large a buffer of our own is kept between commands.
const maxKept = 1 << 10

// fill waits for more of the client's bytes.
func (c *client) fill() error {
	switch err := c.Fill(); {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return errClientGone
	case errors.Is(err, protocol.ErrFrameOrder): // the only error of frames that servers report
		c.fail(errOutOfOrder)
		_ = c.flush() // the session ends either way
		fallthrough
	default:
		return fmt.Errorf("%w: %w", errClientGone, err)
	}
}

// fail answers the command being handled with an error.
func (c *client) fail(err error) *protocol.ServerError {
	e := forClient(err)
	c.out = protocol.AppendERR(c.out, c.packetNum, e.Code, e.State, e.Message)
	return e
}

// write writes bytes of an answer.
func (c *client) write(b []byte) error {
	if _, err := c.Write(b); err != nil {
		return fmt.Errorf("%w: %w", errClientGone, err)
	}
	return nil
}

// flush writes the answers of our own that wait.
func (c *client) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	err := c.write(c.out)
	if cap(c.out) > maxKept {
		c.out = nil
	}
	c.out = c.out[:0]
	return err
}

// pass writes the first n bytes of what a server has sent, behind what waits.
func (c *client) pass(from *backend.Conn, n int) error {
	if n == 0 && len(c.out) == 0 {
		return nil
	}
	b := from.Buffered()[:n]
	if len(c.out) > 0 {
		c.out = append(c.out, b...)
		from.Discard(n)
		return c.flush()
	}
	err := c.write(b)
	from.Discard(n)
	return err
}

// until bounds, or with the zero time no longer bounds, how long the client may say nothing.
func (c *client) until(t time.Time) error {
	c.alarm = time.Time{}
	if err := c.SetReadDeadline(t); err != nil {
		return fmt.Errorf("%w: %w", errClientGone, err)
	}
	return nil
}

// disarm takes the alarm back before a read that it must not end.
func (c *client) disarm() error {
	if c.alarm.IsZero() {
		return nil
	}
	return c.until(time.Time{})
}
