package proxy

import (
	"errors"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// exchangeCounted is exchange for the statement in s.scratch, of which the server counts numbers off.
func (r *relay) exchangeCounted(c *backend.Conn, n *keys.Block) (remedy, error) {
	r.at.tally.Sends(c, stats.KindRewrite)
	if err := r.at.client.flush(); err != nil {
		return noRemedy, err
	}
	_, writeErr := c.Write(r.scratch)
	payload, err := r.onlyPacket(c)
	if err != nil {
		return noRemedy, err
	}
	size := protocol.HeaderSize + len(payload)
	if n.TooSmall(payload) {
		err := n.Grow()
		c.Discard(size)
		r.at.release(c)
		return largerBlock, err
	}
	mark := len(r.at.client.out)
	r.at.client.out = r.numbers.Answered(r.at.client.out, payload, r.at.client.packetNum, n, idOfConn(c))
	r.noteNotice(c, r.at.client.out[mark:], true)
	c.Discard(size)
	r.batch.drop()
	r.at.state.LastConn = idOfConn(c)
	if err := r.at.client.flush(); err != nil {
		return noRemedy, r.at.abandon(c, err)
	}
	switch {
	case writeErr != nil:
		return noRemedy, r.at.lost(c, writeErr, true)
	case len(c.Buffered()) > 0:
		return noRemedy, r.at.lost(c, errors.New("the server said something that nobody asked for"), true)
	}
	r.at.release(c)
	return noRemedy, nil
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

// countable makes n ready to be counted off by a server, if it is not nil.
func (p *planning) countable(c *backend.Conn, n *keys.Block, words statement.Words) error {
	if n == nil {
		return nil
	}
	var same func(name []byte) bool
	if n.Key != nil {
		same = p.sameColumn(n.Key.Column)
	}
	if err := n.Countable(p.at, c, &p.state.LastID, same); err != nil || n.Key == nil {
		return err
	}
	modes, err := p.at.insertModes(c, words)
	if err != nil {
		return err
	}
	return p.numbers.Space(n, modes.Increment)
}
