package proxy

import (
	"errors"
	"os"
	"strconv"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// digitsInRows says whether numbers come in ASCII digits. MariaDB converts them to
// character_set_results.
func (b *backends) digitsInRows() (bool, error) {
	row, err := b.AskRow(b.cur, "SELECT 1", 1, "a number")
	return err == nil && string(row[0]) == "1", err
}

// sendRows is sendScratch for a statement whose rows get numbers, if r is not nil. binary
// says that they are those of an execution.
func (s *session) sendRows(c *backend.Conn, r *keys.Rows, binary bool) error {
	if r == nil {
		return s.sendScratch(c)
	}
	s.state.LastOwn = state.OwnNothing
	return s.exchangeRows(c, s.scratch, r, binary)
}

// exchangeRows is exchange for a statement whose rows get numbers. binary says that they
// are those of an execution.
func (s *session) exchangeRows(c *backend.Conn, command []byte, r *keys.Rows, binary bool) error {
	s.tally.Sends(c, stats.KindRewrite)
	if err := s.client.flush(); err != nil {
		return err
	}
	_, writeErr := c.Write(command)
	s.batch.drop()
	numbers := r.For(&s.numbers, !binary)
	x := rowExchange{s: s, c: c, numbers: numbers, inserts: r.Inserts, f: protocol.NewFiller(&c.Answer, c.Capabilities, protocol.FillOptions{
		Columns: [][]int{r.Columns}, Binary: binary, Types: r.Types, Take: numbers.Take,
	})}
	err := x.relay()
	if types := x.f.Types(); len(types) > 0 {
		r.Types = types
	}
	if err == nil && writeErr != nil {
		err = s.lost(c, writeErr, true) // the client has all that it waits for
	}
	return err
}

// rowExchange passes one answer on.
type rowExchange struct {
	s       *session
	c       *backend.Conn
	f       *protocol.Filler
	numbers *keys.RowTaker
	inserts bool // see plan.Rows
}

// relay passes on what the server sends until its answer has ended.
func (x *rowExchange) relay() error {
	s, c := x.s, x.c
	partly := false // some of the answer was passed on
	for {
		n, w, ev := x.f.Walk(c.Buffered())
		partly = partly || n > 0
		if err := x.pass(c.Buffered()[:w]); err != nil {
			return s.abandon(c, err)
		}
		c.Discard(n)
		switch ev {
		case protocol.Done:
			return x.ended()
		case protocol.NeedMore:
			s.tally.TellLong(s.client.Conn, c)
			if err := s.tally.Fill(c); err != nil {
				return s.lost(c, err, partly)
			}
		case protocol.Held:
			if err := x.pass(x.f.Held()); err != nil {
				return s.abandon(c, err)
			}
		case protocol.Refused:
			return x.refuse(x.f.Err())
		default:
			return s.lost(c, protocol.ErrMalformed, true)
		}
	}
}

func (x *rowExchange) pass(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return x.s.client.write(b)
}

// ended takes note of what the statement has left.
func (x *rowExchange) ended() error {
	s, c := x.s, x.c
	s.state.LastConn = idOfConn(c)
	noteError(c)
	s.noteNotice(c, nil, false)
	s.state.LastID.Answered(c.Answer.Rows)
	if last, ok := x.numbers.Last(); ok && !x.inserts { // as LAST_INSERT_ID(n) in each row would
		s.state.LastID.Given(last)
		s.state.LastID.Rows = true // the server has counted them
	}
	if len(c.Buffered()) > 0 {
		return s.lost(c, errors.New("the server said something that nobody asked for"), true)
	}
	s.release(c)
	return nil
}

// refuse ends the client's result with an error in the place of the next row, as a
// server does, and takes in what the server still sends.
func (x *rowExchange) refuse(cause error) error {
	s, c := x.s, x.c
	if errors.Is(cause, errClientGone) || errors.Is(cause, errBackendGone) || errors.Is(cause, errShutdown) || errors.Is(cause, errKilled) {
		return s.abandon(c, cause)
	}
	s.client.packetNum = x.f.PacketNum()
	s.refuse(cause)
	if err := s.client.flush(); err != nil {
		return s.abandon(c, err)
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
	// The KILL may have come when the statement had ended: then the next one is hit.
	var hit *protocol.ServerError
	if _, err := s.Ask(c, "DO 0"); err != nil && !errors.As(err, &hit) {
		return err
	}
	return nil
}

// swallowPatience is how long rows that nobody gets are taken in before the server is
// told to end the statement.
const swallowPatience = 500 * time.Millisecond

// swallow takes in the rest of the server's answer. killed says that the server was told
// to end the statement.
func (x *rowExchange) swallow() (killed bool, err error) {
	s, c := x.s, x.c
	until := time.Now().Add(swallowPatience)
	if err := c.SetReadDeadline(until); err != nil {
		return false, s.lost(c, err, true)
	}
	for {
		n, ev := c.Answer.Walk(c.Buffered())
		c.Discard(n)
		switch ev {
		case protocol.Done:
			if err := c.SetReadDeadline(time.Time{}); err != nil {
				return killed, s.lost(c, err, true)
			}
			return killed, nil
		case protocol.NeedMore:
		default:
			return killed, s.lost(c, protocol.ErrMalformed, true)
		}
		err := s.tally.Fill(c)
		if !killed && (errors.Is(err, os.ErrDeadlineExceeded) || err == nil && time.Now().After(until)) {
			killed = true
			if err := x.kill(); err != nil {
				return killed, s.lost(c, err, true)
			}
			err = c.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return killed, s.lost(c, err, true)
		}
	}
}

// kill has the server end the statement. If it cannot be told, the rest of the rows is
// waited for.
func (x *rowExchange) kill() error {
	creds, known := x.s.login.Account.Credentials(x.c.Shard())
	if !known {
		return nil
	}
	err := x.s.srv.killer.Run(x.s.ctx, x.c.Place(), creds, protocol.ComQuery, "KILL QUERY "+strconv.FormatUint(uint64(x.c.Place().ID()), 10))
	if kill.IsServerError(err) || errors.Is(err, kill.ErrLogin) {
		return nil
	}
	return err // an order that may still be carried out
}

// executeRows executes a statement whose rows get numbers, and that has no parameters of
// ours.
func (s *session) executeRows(p *prepared, payload []byte) error {
	if err := p.rowsExecutable(payload, s.mayOmitMetadata()); err != nil {
		return s.dropLongData(p.conn, p, err)
	}
	p.toServer(payload[1:])
	c, err := s.connFor(p)
	if err != nil {
		return s.dropLongData(p.conn, p, err)
	}
	p.LongSent = false
	s.state.LastOwn = state.OwnNothing
	if err := s.exchangeRows(c, s.batch.command(), p.rows, true); err != nil {
		return err
	}
	s.noteExecuted(c, p)
	return nil
}

// rowsExecutable is an error if the rows of an execution cannot get numbers.
func (p *prepared) rowsExecutable(payload []byte, mayOmit bool) error {
	switch {
	case payload[5]&protocol.CursorReadOnly != 0:
		return protocol.NotSupported("NEXTVAL in SELECT ... FROM with a cursor is not supported: fetch all rows at once")
	case len(p.rows.Types) == 0 && mayOmit:
		return protocol.NotSupported("NEXTVAL in a prepared SELECT ... FROM with resultset_metadata = NONE is not supported")
	}
	return nil
}
