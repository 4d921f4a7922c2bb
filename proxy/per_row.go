package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// rowNumbers are the columns of a statement's result that are numbers of sequences, as the
// session sends it.
type rowNumbers struct {
	plan.Rows
	types []uint8  // of all columns of a prepared statement, as last defined
	ahead []uint64 // the numbers of the first row, if they were taken already
}

// rowsOf returns those of a text that was planned; nil if there are none.
func rowsOf(a *plan.Action) *rowNumbers {
	if a.Do != plan.PerRow {
		return nil
	}
	return &rowNumbers{Rows: a.Rows}
}

// keep returns r with names that stay what they are.
func (r *rowNumbers) keep() *rowNumbers {
	if r != nil {
		for i := range r.Slots {
			r.Slots[i].Sequence = bytes.Clone(r.Slots[i].Sequence)
		}
	}
	return r
}

// traits returns those of the statement as it is sent.
func (r *rowNumbers) traits(t plan.Traits) plan.Traits {
	if r == nil {
		return t
	}
	return r.Rows.Traits(t)
}

// define takes note of the definition of a prepared statement's next column.
func (r *rowNumbers) define(definition []byte, caps protocol.Capability) error {
	if r == nil {
		return nil
	}
	typ, ok := protocol.DefinedType(definition, caps)
	if !ok {
		return protocol.ErrMalformed
	}
	r.types = append(r.types, typ)
	return nil
}

// digitsInRows says whether numbers come in ASCII digits. MariaDB converts them to
// character_set_results.
func (s *session) digitsInRows() (bool, error) {
	row, err := s.ownRow(s.cur, "SELECT 1", 1, "a number")
	return err == nil && string(row[0]) == "1", err
}

// sendOwnRows is sendOwn for a statement whose rows get numbers, if r is not nil. binary
// says that they are those of an execution.
func (s *session) sendOwnRows(c *backend.Conn, r *rowNumbers, binary bool) error {
	if r == nil {
		return s.sendOwn(c)
	}
	s.state.LastOwn = state.OwnNothing
	return s.exchangeRows(c, s.own, r, binary)
}

// exchangeRows is exchange for a statement whose rows get numbers. binary says that they
// are those of an execution.
func (s *session) exchangeRows(c *backend.Conn, command []byte, r *rowNumbers, binary bool) error {
	s.tally.Sends(c, stats.KindRewrite)
	if err := s.flush(); err != nil {
		return err
	}
	_, writeErr := c.Write(command)
	s.client.Discard(s.parsed)
	s.parsed = 0
	x := rowExchange{s: s, c: c, r: r, allowed: !binary}
	x.f = protocol.NewFiller(&c.Answer, c.Capabilities, protocol.FillOptions{
		Columns: [][]int{r.Columns}, Binary: binary, Types: r.types, Take: x.take,
	})
	err := x.relay()
	if types := x.f.Types(); len(types) > 0 {
		r.types = types
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
	r       *rowNumbers
	f       *protocol.Filler
	asks    []plan.Slot // of the rows that get numbers at a time
	allowed bool        // the user may take the numbers
	numbers []uint64
	few     bool // numbers have run short
	given   bool
	last    uint64 // the last row's first number
}

// take takes the numbers of the next rows, at most as many as are about to be sent.
func (x *rowExchange) take(_, rows int) ([]uint64, error) {
	if ahead := x.r.ahead; ahead != nil {
		x.r.ahead = nil
		return ahead, nil
	}
	count := uint64(0) // of one row
	for i := range x.r.Slots {
		count += x.r.Slots[i].Count
	}
	rows = max(1, min(rows, int(statement.MaxCount/count)))
	if x.few {
		rows = 1
	}
	numbers, err := x.takeRows(rows)
	if err != nil && rows > 1 && !errors.Is(err, keys.ErrInterrupted) { // there may be some for the first of them
		x.few = true // and not another wait for each
		numbers, err = x.takeRows(1)
	}
	if err == nil {
		x.given, x.last = true, numbers[len(numbers)-len(x.r.Slots)]
	}
	return numbers, err
}

func (x *rowExchange) takeRows(rows int) ([]uint64, error) {
	if !x.allowed {
		if err := x.s.mayTake(x.r.Slots); err != nil {
			return nil, err
		}
		x.allowed = true
	}
	n := rows * len(x.r.Slots)
	for len(x.asks) < n {
		x.asks = append(x.asks, x.r.Slots...)
	}
	spent := x.s.numbers.Patience.Spent()
	values, err := x.s.numbers.Take(x.asks[:n])
	if err != nil {
		return nil, err
	}
	x.s.numbers.Patience.Restore(spent) // the rows behind these have the time anew
	x.numbers = x.numbers[:0]
	for _, v := range values {
		x.numbers = append(x.numbers, v.Value)
	}
	return x.numbers, nil
}

// takeAhead takes the numbers of the first row, and returns the first of them.
func (s *session) takeAhead(r *rowNumbers) (first uint64, err error) {
	values, err := s.numbers.Take(r.Slots)
	if err != nil {
		return 0, err
	}
	r.ahead = make([]uint64, len(values))
	for i, v := range values {
		r.ahead[i] = v.Value
	}
	return r.ahead[0], nil
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
			s.tally.TellLong(s.client, c)
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
	if _, err := x.s.client.Write(b); err != nil {
		return fmt.Errorf("%w: %w", errClientGone, err)
	}
	return nil
}

// ended takes note of what the statement has left.
func (x *rowExchange) ended() error {
	s, c := x.s, x.c
	s.state.LastConn = idOfConn(c)
	noteError(c)
	s.tellNotice(c, nil, false)
	s.state.LastID.Answered(c.Answer.Rows)
	if x.given && !x.r.Inserts { // as LAST_INSERT_ID(n) in each row would
		s.state.LastID.Given(x.last)
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
	s.packetNum = x.f.PacketNum()
	s.refuse(cause)
	if err := s.flush(); err != nil {
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
	if _, err := s.ownQuery(c, "DO 0"); err != nil && !errors.As(err, &hit) {
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
	creds, known := x.s.login.Account.Beside(x.c.Shard())
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
	if err := s.rowsExecutable(p, payload); err != nil {
		return s.dropLongData(p.conn, p, err)
	}
	p.toServer(payload[1:])
	c, err := s.connFor(p)
	if err != nil {
		return s.dropLongData(p.conn, p, err)
	}
	p.longSent = false
	s.state.LastOwn = state.OwnNothing
	if err := s.exchangeRows(c, s.client.Buffered()[:s.parsed], p.rows, true); err != nil {
		return err
	}
	s.noteExecuted(c, p)
	return nil
}

// rowsExecutable is an error if the rows of an execution cannot get numbers.
func (s *session) rowsExecutable(p *prepared, payload []byte) error {
	switch {
	case payload[5]&protocol.CursorReadOnly != 0:
		return notSupported("NEXTVAL in SELECT ... FROM with a cursor is not supported: fetch all rows at once")
	case len(p.rows.types) == 0 && s.mayOmitMetadata():
		return notSupported("NEXTVAL in a prepared SELECT ... FROM with resultset_metadata = NONE is not supported")
	}
	return nil
}
