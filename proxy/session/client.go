package session

import (
	"errors"
	"fmt"
	"io"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// client is the connection of a session to its client, and the answers that wait for a write.
type client struct {
	*protocol.Conn
	out       []byte // the proxy's own answers, not yet written
	packetNum uint8  // of the next packet of the answer to the command being handled
	// attributed says that its texts and executions have attributes: QueryAttributes, as agreed on
	// at the login.
	attributed bool
	// alarm is the read deadline in force; zero: none. A round does not move it: when it expires,
	// idleness checks whether the time is up.
	alarm time.Time
}

// maxKept is the largest buffer that a session keeps between commands.
const maxKept = 1 << 10

// fill waits for more of the client's bytes.
func (c *client) fill() error {
	switch err := c.Fill(); {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return errClientGone
	case errors.Is(err, protocol.ErrFrameOrder): // servers report no other error of frames
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

// flush writes the waiting answers.
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

// pass writes the first n bytes of a server's answer, after the waiting answers.
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

// until bounds how long the client may be silent. The zero time removes the bound.
func (c *client) until(t time.Time) error {
	c.alarm = time.Time{}
	if err := c.SetReadDeadline(t); err != nil {
		return fmt.Errorf("%w: %w", errClientGone, err)
	}
	return nil
}

// disarm removes the alarm before a read that it must not end.
func (c *client) disarm() error {
	if c.alarm.IsZero() {
		return nil
	}
	return c.until(time.Time{})
}

// textOf returns the text in a command, without the attributes in front of it. ok is false if it
// has none.
func (c *client) textOf(payload []byte) (sql []byte, ok bool) {
	switch command := protocol.Command(payload[0]); {
	case command == protocol.ComStmtPrepare, command == protocol.ComQuery && !c.attributed:
		return payload[1:], true
	case command != protocol.ComQuery:
		return nil, false
	}
	n, ok := protocol.CutAttributes(payload[1:])
	if !ok {
		return nil, false
	}
	return payload[1+n:], true
}
