package proxy

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// countRows sends a text whose numbers the server counts off.
func (d *delivery) countRows(sql []byte, a *plan.Action) error {
	st, n := &d.planning.stmt, &keys.Block{Counts: a.Counts}
	previous, err := d.planning.previousFor(st, a)
	if err != nil {
		return err
	}
	c, err := d.attachWith(st, n.Traits(plan.TraitsOf(st)))
	if err != nil {
		return err
	}
	if err := d.planning.countable(c, n); err != nil {
		return err
	}
	if err := d.planning.stepKey(c, n, st.Words); err != nil {
		return err
	}
	subs := a.Substitutions(st, d.state, d.at.id, protocol.Placeholder)
	keys.Substitute(subs, st.Calls, make([]keys.Number, len(subs)), previous)
	for again := true; again; {
		if err := d.numbers.Block(d.at, c, n, &d.state.LastID); err != nil {
			return err
		}
		n.Substitute(subs, a.Slots)
		size := d.splice(sql, subs, nil)
		if size >= protocol.MaxFragment {
			return params.ErrTooLong
		}
		protocol.PutHeader(d.relay.scratch, size, 0)
		d.state.LastAnswer = state.ByServer
		if again, err = d.relay.exchangeCounted(c, n); err != nil {
			return err
		}
	}
	d.noteDone(c, nil)
	return nil
}

// exchangeCounted is exchange for the statement in s.scratch. again says that it failed since
// the block was too small, and that a larger one may help: the client has got nothing.
func (r *relay) exchangeCounted(c *backend.Conn, n *keys.Block) (again bool, err error) {
	r.at.tally.Sends(c, stats.KindRewrite)
	if err := r.at.client.flush(); err != nil {
		return false, err
	}
	_, writeErr := c.Write(r.scratch)
	payload, err := r.onlyPacket(c)
	if err != nil {
		return false, err
	}
	size := protocol.HeaderSize + len(payload)
	if n.TooSmall(payload) {
		err := n.Grow()
		c.Discard(size)
		r.at.release(c)
		return err == nil, err
	}
	mark := len(r.at.client.out)
	r.at.client.out = r.numbers.Answered(r.at.client.out, payload, r.at.client.packetNum, n, &r.at.state.LastID, idOfConn(c))
	r.noteNotice(c, r.at.client.out[mark:], true)
	c.Discard(size)
	r.batch.drop()
	r.at.state.LastConn = idOfConn(c)
	if err := r.at.client.flush(); err != nil {
		return false, r.at.abandon(c, err)
	}
	switch {
	case writeErr != nil:
		return false, r.at.lost(c, writeErr, true)
	case len(c.Buffered()) > 0:
		return false, r.at.lost(c, errors.New("the server said something that nobody asked for"), true)
	}
	r.at.release(c)
	return false, nil
}

// onlyPacket waits for an answer of one packet, and leaves it where it is. Progress reports
// before it are passed on; in s.packetNum is its number then.
func (r *relay) onlyPacket(c *backend.Conn) (payload []byte, err error) {
	partly := false
	for {
		b := c.Buffered()
		if len(b) < protocol.HeaderSize || len(b) < protocol.HeaderSize+protocol.PayloadLen(b) {
			if err := r.at.tally.Fill(c); err != nil {
				return nil, r.at.lost(c, err, partly)
			}
			continue
		}
		b = b[:protocol.HeaderSize+protocol.PayloadLen(b)]
		payload = b[protocol.HeaderSize:]
		if !c.Capabilities.Has(protocol.Progress) || !protocol.IsProgress(payload) {
			break
		}
		partly = true
		protocol.PutHeader(b, len(payload), r.at.client.packetNum)
		r.at.client.packetNum++
		if err := r.at.client.write(b); err != nil {
			return nil, r.at.abandon(c, err)
		}
		c.Discard(len(b))
	}
	c.Answer.Begin(protocol.ShapeResult, c.Capabilities)
	if len(payload) == protocol.MaxFragment {
		return nil, r.at.lost(c, protocol.ErrMalformed, true)
	}
	whole := c.Buffered()[:protocol.HeaderSize+len(payload)]
	if size, ev := c.Answer.Walk(whole); ev != protocol.Done || size != len(whole) {
		return nil, r.at.lost(c, protocol.ErrMalformed, true)
	}
	noteError(c)
	return payload, nil
}

// countable asks the server whether rows of the statement can be counted.
func (p *planning) countable(c *backend.Conn, n *keys.Block) error {
	var same func(name []byte) bool
	if n.Key != nil {
		same = p.sameColumn(n.Key.Column)
	}
	return n.Countable(p.at, c, same)
}

// executeCounted executes a prepared statement in which the server counts numbers off.
func (x *executor) executeCounted(p *prepared, payload []byte) error {
	c, err := x.at.connOf(p)
	if err != nil {
		return x.at.dropLongData(p.conn, p, err)
	}
	attributes := x.at.login.Capabilities.Has(protocol.QueryAttributes)
	e, err := p.cutExecution(payload, x.at.likeMariaDB(), attributes)
	if err == nil && p.LongSent { // which the server forgets with the first try
		err = refusedForm("NEXTVAL for each row in an execution with long data, which the server forgets with the first try,")
	}
	if err == nil && p.Size(&e, attributes) >= protocol.MaxFragment {
		err = params.ErrTooLong
	}
	var previous uint64
	if err == nil {
		previous, err = x.previousHidden(p)
	}
	if err == nil {
		err = x.at.prepareConn(c, p)
	}
	if err == nil {
		err = x.planning.countable(c, p.counts)
	}
	var n keys.Block
	if err == nil {
		n = *p.counts
		err = x.planning.stepKey(c, &n, p.shape.Words)
	}
	if err != nil {
		if errors.Is(err, params.ErrMalformed) {
			err = malformed(x.at.likeMariaDB())
		}
		return x.at.dropLongData(c, p, err)
	}
	values := make([]keys.Number, len(p.Hidden))
	for again := true; again; {
		if err := x.numbers.Block(x.at, c, &n, &x.state.LastID); err != nil {
			return err
		}
		for i := range p.Hidden {
			values[i].Value = previous
			if part := p.Hidden[i].Part; part != keys.NoPart {
				values[i].Value = n.Part(part)
			}
		}
		if x.relay.scratch, err = p.AppendExecute(append(x.relay.scratch[:0], 0, 0, 0, 0), p.backendID, &e, attributes, values); err != nil {
			return err
		}
		protocol.PutHeader(x.relay.scratch, len(x.relay.scratch)-protocol.HeaderSize, 0)
		x.state.LastAnswer = state.ByServer
		if again, err = x.relay.exchangeCounted(c, &n); err != nil {
			return err
		}
	}
	if c.Answer.ErrCode == mysql.ER_MALFORMED_PACKET && !c.Hello().MariaDB { // an attribute
		p.Unbind(&e)
	}
	x.noteExecuted(c, p)
	return nil
}
