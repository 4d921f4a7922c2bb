package session

import (
	"errors"
	"os"
	"strconv"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/kill"
)

// rowExchange passes on one answer and fills numbers into its rows.
type rowExchange struct {
	r       *relay
	c       *backend.Conn
	f       *protocol.Filler
	numbers *keys.RowTaker
	inserts bool   // see plan.Rows
	bytes   uint64 // of the answer
}

// relay passes on what the server sends until its answer has ended.
func (x *rowExchange) relay() error {
	r, c := x.r, x.c
	partly := false // the client has a part of the answer
	for {
		n, w, ev := x.f.Walk(c.Buffered())
		x.bytes += uint64(n)
		partly = partly || n > 0
		if err := x.pass(c.Buffered()[:w]); err != nil {
			return r.at.abandon(c, err)
		}
		c.Discard(n)
		switch ev {
		case protocol.Done:
			return x.ended()
		case protocol.NeedMore:
			if err := r.at.tally.Fill(r.at.client.Conn, c); err != nil {
				return r.at.lost(c, err, partly)
			}
		case protocol.Stored:
			if err := x.pass(x.f.Stored()); err != nil {
				return r.at.abandon(c, err)
			}
		case protocol.Refused:
			return x.refuse(x.f.Err())
		default:
			return r.at.lost(c, protocol.ErrMalformed, true)
		}
	}
}

func (x *rowExchange) pass(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return x.r.at.client.write(b)
}

// ended records the effects of the statement.
func (x *rowExchange) ended() error {
	r, c := x.r, x.c
	noteError(c)
	r.noteNotice(c, nil, false)
	r.timed(c, x.bytes)
	r.at.state.Answered(idOfConn(c), c.Answer.Rows)
	if last, ok := x.numbers.Last(); ok && !x.inserts { // as LAST_INSERT_ID(n) in each row would do
		r.at.state.LastID.Given(last)
		r.at.state.LastID.Rows = true // the server has counted them
	}
	if len(c.Buffered()) > 0 {
		return r.at.lost(c, errUnasked, true)
	}
	r.at.release(c)
	return nil
}

// refuse ends the client's result with an error in place of the next row, as a server does, and
// drops the rest of the server's answer.
func (x *rowExchange) refuse(cause error) error {
	r, c := x.r, x.c
	if ends(cause) {
		return r.at.abandon(c, cause)
	}
	r.at.client.packetNum = x.f.PacketNum()
	r.refuse(cause)
	if err := r.at.client.flush(); err != nil {
		return r.at.abandon(c, err)
	}
	killed, err := x.swallow()
	if err != nil {
		return err
	}
	if err := x.ended(); err != nil {
		return err
	}
	if !killed {
		return nil
	}
	// The KILL may have come after the statement's end. Then it hits the next one.
	var hit *protocol.ServerError
	if _, err := r.at.Ask(c, "DO 0"); err != nil && !errors.As(err, &hit) {
		return err
	}
	return nil
}

// swallowPatience is how long the session drops rows before it kills the statement.
const swallowPatience = 500 * time.Millisecond

// swallow drops the rest of the server's answer. killed says that the server has got a KILL for the
// statement.
func (x *rowExchange) swallow() (killed bool, err error) {
	r, c := x.r, x.c
	until := time.Now().Add(swallowPatience)
	if err := c.SetReadDeadline(until); err != nil {
		return false, r.at.lost(c, err, true)
	}
	for {
		n, ev := c.Answer.Walk(c.Buffered())
		c.Discard(n)
		switch ev {
		case protocol.Done:
			if err := c.SetReadDeadline(time.Time{}); err != nil {
				return killed, r.at.lost(c, err, true)
			}
			return killed, nil
		case protocol.NeedMore:
		default:
			return killed, r.at.lost(c, protocol.ErrMalformed, true)
		}
		err := r.at.tally.Fill(r.at.client.Conn, c)
		if !killed && (errors.Is(err, os.ErrDeadlineExceeded) || err == nil && time.Now().After(until)) {
			killed = true
			if err := x.kill(); err != nil {
				return killed, r.at.lost(c, err, true)
			}
			err = c.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return killed, r.at.lost(c, err, true)
		}
	}
}

// kill makes the server end the statement. If the server refuses the KILL, the session waits for
// the rest of the rows.
func (x *rowExchange) kill() error {
	creds, ok := x.r.at.account().Credentials(x.c.Shard)
	if !ok {
		return nil
	}
	err := x.r.at.shared.Killer.Run(x.r.at.ctx, x.c.Place(), creds, protocol.ComQuery, "KILL QUERY "+strconv.FormatUint(uint64(x.c.Place().ID()), 10))
	if kill.IsServerError(err) || errors.Is(err, kill.ErrLogin) {
		return nil
	}
	return err // the KILL may still come into effect
}
