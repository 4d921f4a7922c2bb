package session

import (
	"fmt"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/stats"
)

// batch is the beginning of the client's buffer: commands that go to a server in one write, then
// the command being handled, then bytes not looked at yet. The client gets all answers in order,
// those of the proxy among them.
type batch struct {
	client  *protocol.Conn
	payload []byte // of the command being handled; nil if it is not in memory as a whole
	parsed  int    // bytes up to the end of the command being handled
	size    int    // bytes of the commands that go to the server; 0: none
	conn    *backend.Conn
	answers []expected // the answers to the commands
	ready   []byte     // the proxy's own answers among them
	unsent  []span     // commands that no server gets
}

// expected is the next answer to the client: a server's, or one of the proxy's that is ready and
// waits for those before it.
type expected struct {
	shape protocol.Shape
	ours  int  // its bytes in batch.ready; 0 for a server's answer
	text  head // of the statement, if it is one
	kind  stats.Kind

	unexplained bool // the statement does not explain an insert id in the answer
	awaited     bool // the session has already waited for the server
}

// resetsWarnings reports whether a server's answer is to a statement. Other commands keep the
// warnings of the last one.
func (e *expected) resetsWarnings() bool {
	return e.shape == protocol.ShapeResult || e.shape == protocol.ShapeCursor
}

// Bounds of what waits for earlier answers: bytes of the proxy's answers, and answers in all.
const (
	maxWaiting  = protocol.BufferSize
	maxInflight = 4096
)

// span is a part of the client's buffer.
type span struct{ from, to int }

// errPacketOrder ends a session whose client has sent a packet of a wrong number.
var errPacketOrder = fmt.Errorf("%w: packets out of order", protocol.ErrMalformed)

// next returns the payload of the next complete command. It fails if the packet's number is not a
// command's, for which the header is enough.
func (b *batch) next() (payload []byte, ok bool, err error) {
	packet := b.client.Buffered()[b.parsed:]
	if len(packet) < protocol.HeaderSize {
		return nil, false, nil
	}
	if b.client.Compressed() {
		b.number(packet, 0)
	}
	if packet[3] != 0 {
		return nil, false, errPacketOrder
	}
	size := protocol.PayloadLen(packet)
	if size == protocol.MaxFragment || len(packet) < protocol.HeaderSize+size {
		return nil, false, nil
	}
	b.parsed += protocol.HeaderSize + size
	return packet[protocol.HeaderSize : protocol.HeaderSize+size], true, nil
}

// number gives a client's packet the right number if the client compresses. Servers ignore the
// numbers of packets in frames, and Connector/J, for one, sends commands that begin with 1 and
// files that begin with 0. The connection to the server has no frames, so the server checks them
// there.
func (b *batch) number(header []byte, num uint8) {
	if b.client.Compressed() {
		header[3] = num
	}
}

// command returns the packet of the command being handled, if it is the first.
func (b *batch) command() []byte { return b.client.Buffered()[:b.parsed] }

// drop removes the command being handled, if it is the first. A file may follow it.
func (b *batch) drop() {
	b.client.Discard(b.parsed)
	b.parsed = 0
}

// more reports whether the client has sent more after the command being handled.
func (b *batch) more() bool { return len(b.client.Buffered()) > b.parsed }

// elsewhere reports whether commands wait for another connection than c.
func (b *batch) elsewhere(c *backend.Conn) bool { return b.size > 0 && b.conn != c }

// add puts the command being handled into the batch, for c.
func (b *batch) add(c *backend.Conn, answer expected) {
	b.conn = c
	if answer.shape != protocol.ShapeNone {
		b.answers = append(b.answers, answer)
	}
	b.size = b.parsed
}

// full reports whether no further answer of the proxy's may wait.
func (b *batch) full() bool { return len(b.ready) > maxWaiting || len(b.answers) > maxInflight }

// addOurs puts the command being handled into the batch, with an answer of the proxy's.
func (b *batch) addOurs(answer []byte) {
	b.ready = append(b.ready, answer...)
	b.answers = append(b.answers, expected{ours: len(answer)})
	b.unsent = append(b.unsent, span{b.size, b.parsed})
	b.size = b.parsed
}

// send sends the commands in one write. What follows in the client's buffer may be the file of the
// last one. scratch is room to use. after is that room, which may have moved.
func (b *batch) send(scratch []byte) (after []byte, err error) {
	all := b.client.Buffered()[:b.size]
	if len(b.unsent) > 0 {
		scratch = b.forServer(scratch[:0], all)
		all = scratch
	}
	_, err = b.conn.Write(all)
	b.client.Discard(b.size)
	b.parsed -= b.size
	b.size, b.unsent = 0, b.unsent[:0]
	return scratch, err
}

// forServer appends the commands that the server gets.
func (b *batch) forServer(to, all []byte) []byte {
	from := 0
	for _, u := range b.unsent {
		to = append(to, all[from:u.from]...)
		from = u.to
	}
	return append(to, all[from:]...)
}

// answered records that the client has all answers.
func (b *batch) answered() { b.answers, b.ready = b.answers[:0], b.ready[:0] }
