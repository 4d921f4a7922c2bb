package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
)

// INSERT ... SELECT and UPDATE with a number for each row, of which the server alone knows
// how many there are. A block of numbers is taken, and the server counts them off itself:
// each evaluation is LAST_INSERT_ID(LAST_INSERT_ID()+1), from the number before the block
// on, which a statement of ours sets.
//
// A value set before a statement may be lost, or be another's. It does no harm here: each
// evaluation checks that its number is one of the block, and the whole statement fails if
// it is not (statement.AsCounted). The block is this statement's alone and each
// evaluation rises, however often the server evaluates the call for a row, so no two rows
// have one number, wherever it began. What is left of the block is a gap.
//
// A block that is too small makes the statement fail as a whole, and it is sent again
// with a larger one. So it may be done only where a statement that fails leaves nothing:
// in a transactional table without triggers, and without IGNORE. And the rows must be
// what goes into the binary log: a replica that ran the text would count from elsewhere.

// counted is such a statement, and the block that it counts off.
type counted struct {
	plan.Counts
	own bool // the table has an AUTO_INCREMENT column, and may generate values for it

	block             sequence.Taken
	first, last, step uint64 // values
	rest              uint64 // from a value to the last number that is taken with it
	limited           error  // why the block could not be larger
}

// countsOf returns that of a text that is prepared, which it outlives; nil if nothing is counted.
func countsOf(a *plan.Action) *counted {
	if a.Do != plan.Count {
		return nil
	}
	n := &counted{Counts: a.Counts}
	n.Sequence, n.Table.Name = bytes.Clone(n.Sequence), bytes.Clone(n.Table.Name)
	return n
}

// traits returns those of the statement as it is sent.
func (n *counted) traits(t plan.Traits) plan.Traits {
	if n == nil {
		return t
	}
	return n.Counts.Traits(t)
}

// countRows sends a text whose numbers the server counts off.
func (s *session) countRows(sql []byte, a *plan.Action) error {
	st, n := &s.stmt, &counted{Counts: a.Counts}
	previous, err := s.previousFor(st, a)
	if err != nil {
		return err
	}
	c, err := s.attachWith(st, n.traits(plan.TraitsOf(st)))
	if err != nil {
		return err
	}
	if err := s.countable(c, n); err != nil {
		return err
	}
	if err := s.stepKey(c, n, st.Words); err != nil {
		return err
	}
	subs := a.Substitutions(st, &s.state, s.id, protocol.Placeholder)
	s.setValues(subs, make([]keys.Number, len(subs)), previous)
	for again := true; again; {
		if err := s.takeBlock(c, n); err != nil {
			return err
		}
		n.substitute(subs, a.Slots)
		size := s.splice(sql, subs, nil)
		if size >= protocol.MaxFragment {
			return errTooLong
		}
		protocol.PutHeader(s.own, size, 0)
		s.state.LastOwn = state.OwnNothing
		if again, err = s.exchangeCounted(c, n); err != nil {
			return err
		}
	}
	s.noteDone(c, nil)
	return nil
}

// exchangeCounted is exchange for the statement in s.own. again says that it failed since
// the block was too small, and that a larger one may help: the client has got nothing.
func (s *session) exchangeCounted(c *backend.Conn, n *counted) (again bool, err error) {
	s.tally.Sends(c, stats.KindRewrite)
	if err := s.flush(); err != nil {
		return false, err
	}
	_, writeErr := c.Write(s.own)
	payload, err := s.onlyPacket(c)
	if err != nil {
		return false, err
	}
	size := protocol.HeaderSize + len(payload)
	if n.isTooSmall(payload) {
		switch {
		case n.limited != nil:
			err = n.limited
		case n.Size >= n.Most():
			err = notSupported("NEXTVAL for each of more than %d rows of one statement is not supported: change them in parts", n.Size/n.Calls)
		default:
			n.Size = min(n.Size*blockGrowth, n.Most())
		}
		c.Discard(size)
		s.release(c)
		return err == nil, err
	}
	mark := len(s.out)
	s.out = s.appendCounted(c, s.out, payload, n)
	s.tellNotice(c, s.out[mark:], true)
	c.Discard(size)
	s.client.Discard(s.parsed)
	s.parsed = 0
	s.state.LastConn = idOfConn(c)
	if err := s.flush(); err != nil {
		return false, s.abandon(c, err)
	}
	switch {
	case writeErr != nil:
		return false, s.lost(c, writeErr, true)
	case len(c.Buffered()) > 0:
		return false, s.lost(c, errors.New("the server said something that nobody asked for"), true)
	}
	s.release(c)
	return false, nil
}

// onlyPacket waits for an answer of one packet, and leaves it where it is. Progress reports
// before it are passed on; in s.packetNum is its number then.
func (s *session) onlyPacket(c *backend.Conn) (payload []byte, err error) {
	partly := false
	for {
		b := c.Buffered()
		if len(b) < protocol.HeaderSize || len(b) < protocol.HeaderSize+protocol.PayloadLen(b) {
			if err := s.tally.Fill(c); err != nil {
				return nil, s.lost(c, err, partly)
			}
			continue
		}
		b = b[:protocol.HeaderSize+protocol.PayloadLen(b)]
		payload = b[protocol.HeaderSize:]
		if !c.Capabilities.Has(protocol.Progress) || !protocol.IsProgress(payload) {
			break
		}
		partly = true
		protocol.PutHeader(b, len(payload), s.packetNum)
		s.packetNum++
		if _, err := s.client.Write(b); err != nil {
			return nil, s.abandon(c, fmt.Errorf("%w: %w", errClientGone, err))
		}
		c.Discard(len(b))
	}
	c.Answer.Begin(protocol.ShapeResult, c.Capabilities)
	if len(payload) == protocol.MaxFragment {
		return nil, s.lost(c, protocol.ErrMalformed, true)
	}
	whole := c.Buffered()[:protocol.HeaderSize+len(payload)]
	if size, ev := c.Answer.Walk(whole); ev != protocol.Done || size != len(whole) {
		return nil, s.lost(c, protocol.ErrMalformed, true)
	}
	noteError(c)
	return payload, nil
}

// isTooSmall says whether an answer is that of a statement that wanted more numbers than
// the block has.
func (n *counted) isTooSmall(payload []byte) bool {
	var e *protocol.ServerError
	return payload[0] == 0xff && errors.As(protocol.ParseServerError(payload), &e) && e.Code == mysql.ER_DATA_OUT_OF_RANGE &&
		strings.Contains(e.Message, "(last_insert_id() | 1) + 18446744073709551615")
}

// appendCounted appends the answer's packet for the client, and takes note of what the
// statement has done to LAST_INSERT_ID(): what it was if no number was given, else the
// last number, as with LAST_INSERT_ID(n). INSERT and REPLACE tell the first, as with keys
// that the server generates for many rows: that is what drivers count from.
func (s *session) appendCounted(c *backend.Conn, b, payload []byte, n *counted) []byte {
	num := s.packetNum
	if payload[0] != 0 {
		b, _ = protocol.AppendPacket(b, payload, num)
		return b
	}
	affected, k, _ := protocol.ReadLenEncInt(payload[1:])
	id, size, _ := protocol.ReadLenEncInt(payload[1+k:])
	given := id >= n.first && id <= n.last
	if given && n.own {
		// It may be a value that the server generated.
		given = !n.Updates && id == n.first+(affected*n.Calls-1)*n.step
	}
	rest := payload[1+k+size:]
	last := n.last
	if given {
		last = id
	}
	// Behind a stored function the servers do not tell it.
	untold := id == 0 && n.Routines && !tellsOfNoRows(rest)
	if id != 0 || untold {
		s.numbers.Used(n.block, last+n.rest)
		s.state.LastID = state.LastInsertID{Holder: idOfConn(c)}
	}
	if n.Insert && (given || untold) {
		s.state.LastID.Given(n.first)
		s.state.LastID.Rows = true
	}
	if !n.Insert || !given {
		b, _ = protocol.AppendPacket(b, payload, num)
		return b
	}
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = append(b, payload[:1+k]...)
	b = protocol.AppendLenEncInt(b, n.first)
	b = append(b, rest...)
	protocol.PutHeader(b[at:], len(b)-at-protocol.HeaderSize, num)
	return b
}

// executeCounted executes a prepared statement in which the server counts numbers off.
func (s *session) executeCounted(p *prepared, payload []byte) error {
	c, err := s.connOf(p)
	if err != nil {
		return s.dropLongData(p.conn, p, err)
	}
	attributes := s.login.Capabilities.Has(protocol.QueryAttributes)
	e, err := s.cutExecution(p, payload, attributes)
	if err == nil && p.longSent { // which the server forgets with the first try
		err = refusedForm("NEXTVAL for each row in an execution with long data, which the server forgets with the first try,")
	}
	if err == nil && p.executionSize(&e, attributes) >= protocol.MaxFragment {
		err = errTooLong
	}
	var previous uint64
	if err == nil {
		previous, err = s.previousHidden(p)
	}
	if err == nil {
		err = s.prepareConn(c, p)
	}
	if err == nil {
		err = s.countable(c, p.counts)
	}
	var n counted
	if err == nil {
		n = *p.counts
		err = s.stepKey(c, &n, p.shape.Words)
	}
	if err != nil {
		if errors.Is(err, errMalformed) {
			err = s.malformed()
		}
		return s.dropLongData(c, p, err)
	}
	values := make([]keys.Number, len(p.hidden))
	for again := true; again; {
		if err := s.takeBlock(c, &n); err != nil {
			return err
		}
		for i := range p.hidden {
			values[i].Value = previous
			if part := p.hidden[i].block; part != noBlock {
				values[i].Value = n.part(part)
			}
		}
		if s.own, err = p.appendExecute(append(s.own[:0], 0, 0, 0, 0), &e, attributes, values); err != nil {
			return err
		}
		protocol.PutHeader(s.own, len(s.own)-protocol.HeaderSize, 0)
		s.state.LastOwn = state.OwnNothing
		if again, err = s.exchangeCounted(c, &n); err != nil {
			return err
		}
	}
	if c.Answer.ErrCode == mysql.ER_MALFORMED_PACKET && !c.Hello().MariaDB { // an attribute
		p.unbind(&e)
	}
	s.noteExecuted(c, p)
	return nil
}
