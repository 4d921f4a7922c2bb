package session

import (
	"encoding/binary"
	"fmt"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/params"
)

// askToPrepare has c prepare text as p. The answer for the client is in s.out, with nothing else.
func (r *relay) askToPrepare(c *backend.Conn, p *prepared, text []byte) (prepareAnswer, error) {
	a := prepareAnswer{client: r.at.client, c: c, p: p, num: r.at.client.packetNum}
	if err := r.at.client.flush(); err != nil {
		return a, err
	}
	r.scratch = append(r.scratch[:0], 0, 0, 0, 0, byte(protocol.ComStmtPrepare))
	r.scratch = append(r.scratch, text...)
	if len(r.scratch)-protocol.HeaderSize >= protocol.MaxFragment {
		return a, params.ErrTooLong
	}
	protocol.PutHeader(r.scratch, len(r.scratch)-protocol.HeaderSize, 0)
	_, writeErr := c.Write(r.scratch)
	begun := r.at.tally.Waits()
	err := a.relay()
	r.at.tally.Waited(begun)
	if err != nil {
		r.at.client.out = r.at.client.out[:0] // nothing of it was sent
		return a, r.at.lost(c, err, false)
	}
	if writeErr != nil { // a server that closes has said why before
		if err := r.at.client.flush(); err != nil {
			return a, err
		}
		return a, r.at.lost(c, writeErr, true)
	}
	return a, nil
}

// tryPrepare has the server prepare a text and forget it. An error is why it would not.
func (r *relay) tryPrepare(c *backend.Conn, sql []byte) error {
	if err := r.at.client.flush(); err != nil {
		return err
	}
	return r.at.bounded(c, func() error {
		c.SetPacketNum(0)
		if err := c.WritePacket(append([]byte{byte(protocol.ComStmtPrepare)}, sql...)); err != nil {
			return err
		}
		a := prepareAnswer{client: r.at.client, c: c, p: &prepared{}}
		err := a.relay()
		answer := r.at.client.out
		r.at.client.out = r.at.client.out[:0]
		if err != nil {
			return err
		}
		if a.refused {
			return protocol.ParseServerError(answer[protocol.HeaderSize:])
		}
		c.SetPacketNum(0)
		if err := c.WritePacket(binary.LittleEndian.AppendUint32([]byte{byte(protocol.ComStmtClose)}, a.p.backendID)); err != nil {
			return err
		}
		c.Release()
		return nil
	})
}

// prepareAnswer passes on a server's answer to COM_STMT_PREPARE, which is held
// whole: it has no rows.
type prepareAnswer struct {
	client  *client
	c       *backend.Conn
	p       *prepared
	num     uint8 // of the next packet to the client
	idAt    int   // where in s.out the statement id stands
	refused bool
}

// prepareLimit bounds a packet of a server's answer to COM_STMT_PREPARE.
const prepareLimit = 1 << 20

func (a *prepareAnswer) relay() error {
	b, err := a.read()
	if err != nil {
		return err
	}
	if len(b) < 12 || b[0] != 0 {
		a.refused = true
		if len(b) > 2 {
			a.c.Answer.Rows, a.c.Answer.ErrCode = false, binary.LittleEndian.Uint16(b[1:])
			noteError(a.c)
		}
		a.pass(b)
		return nil
	}
	a.p.backendID = binary.LittleEndian.Uint32(b[1:])
	columns, total := int(binary.LittleEndian.Uint16(b[5:])), int(binary.LittleEndian.Uint16(b[7:]))
	defined := !a.c.Capabilities.Has(protocol.OptionalMetadata) || len(b) < 13 || b[12] != 0
	if total < len(a.p.Hidden) {
		return fmt.Errorf("%w: %d parameters where %d are hidden", protocol.ErrMalformed, total, len(a.p.Hidden))
	}
	a.p.Params = a.p.ClientParams(total)
	a.p.Place(total)
	binary.LittleEndian.PutUint16(b[7:], uint16(a.p.Params))
	a.idAt = len(a.client.out) + protocol.HeaderSize + 1
	a.pass(b)
	for shown := range a.p.Shown(total) {
		if !defined {
			break
		}
		if b, err = a.read(); err != nil {
			return err
		}
		for range shown { // none of those that are hidden, unless the client's stand in their place
			a.pass(b)
		}
	}
	if err := a.terminator(total, a.p.Params); err != nil {
		return err
	}
	for i := 0; i < columns && defined; i++ {
		if b, err = a.read(); err != nil {
			return err
		}
		if err := a.p.numbers.Rows.Define(b, a.c.Capabilities); err != nil {
			return err
		}
		a.pass(b)
	}
	return a.terminator(columns, columns)
}

// read reads the next packet of the answer. Progress reports, which are for a statement
// that runs, are passed on.
func (a *prepareAnswer) read() ([]byte, error) {
	for {
		b, err := a.c.ReadPacket(prepareLimit)
		if err != nil || !a.c.Capabilities.Has(protocol.Progress) || !protocol.IsProgress(b) {
			return b, err
		}
		a.pass(b)
	}
}

// terminator reads the EOF behind n definitions, and passes it on if the client
// got some.
func (a *prepareAnswer) terminator(n, shown int) error {
	if n == 0 || a.c.Capabilities.Has(protocol.DeprecateEOF) {
		return nil
	}
	b, err := a.read()
	if err == nil && shown > 0 {
		a.pass(b)
	}
	return err
}

func (a *prepareAnswer) pass(payload []byte) {
	a.client.out, a.num = protocol.AppendPacket(a.client.out, payload, a.num)
}
