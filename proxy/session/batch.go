package session

import (
	"fmt"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/stats"
)

// batch is the beginning of the client's buffer: commands that go to a server in one write, then
// the command being handled, then what was not looked at. Answers that the client gets are in
// order, those of ours among them.
type batch struct {
	client  *protocol.Conn
	payload []byte // of the command being handled; nil if not all of it is in memory
	parsed  int    // bytes up to the end of the command being handled
	size    int    // bytes of the commands that go to the server; 0: there are none
	conn    *backend.Conn
	answers []expected // that the commands will have
	ready   []byte     // those of ours among them
	unsent  []span     // their commands: parts that no server gets
}

// expected is what the client gets next: the answer of a server, or one of ours that
// is ready and waits for those before it.
type expected struct {
	shape protocol.Shape
	ours  int  // bytes of it in batch.ready; 0 for a server's
	text  head // of the statement, if it is one
	kind  stats.Kind

	unexplained bool // an insert id in the answer is unexpected
	awaited     bool // the server was waited for already
}

// Bounds of what waits for answers before it: bytes of our answers, and answers in all.
const (
	maxWaiting  = protocol.BufferSize
	maxInflight = 4096
)

// span is a part of the client's buffer.
type span struct{ from, to int }

// errPacketOrder is the end of a session whose client has sent a packet of a wrong number.
var errPacketOrder = fmt.Errorf("%w: packets out of order", protocol.ErrMalformed)

// next returns the payload of the next command that has come whole. It is an error
// if its packet has another number than that of a command; no more than the header has to
// have come for that.
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

// number gives a packet of the client the number that it has to have, if the client
// compresses: then the servers do not look at it, and Connector/J, for one, sends
// commands that begin with 1 and files that begin with 0. On the connection to the
// server, which has no frames, they do.
func (b *batch) number(header []byte, num uint8) {
	if b.client.Compressed() {
		header[3] = num
	}
}

// command returns the packet of the command being handled, if nothing is in front of it.
func (b *batch) command() []byte { return b.client.Buffered()[:b.parsed] }

// drop gives up the command being handled, if nothing is in front of it. Behind it may come a file.
func (b *batch) drop() {
	b.client.Discard(b.parsed)
	b.parsed = 0
}

// more reports whether the client has sent on behind the command being handled.
func (b *batch) more() bool { return len(b.client.Buffered()) > b.parsed }

// elsewhere reports whether commands wait that go to another connection than c.
func (b *batch) elsewhere(c *backend.Conn) bool { return b.size > 0 && b.conn != c }

// add takes the command being handled into the batch, for c.
func (b *batch) add(c *backend.Conn, answer expected) {
	b.conn = c
	if answer.shape != protocol.ShapeNone {
		b.answers = append(b.answers, answer)
	}
	b.size = b.parsed
}

// full reports whether no further answer of ours may wait.
func (b *batch) full() bool { return len(b.ready) > maxWaiting || len(b.answers) > maxInflight }

// addOurs takes the command being handled into the batch with an answer of ours.
func (b *batch) addOurs(answer []byte) {
	b.ready = append(b.ready, answer...)
	b.answers = append(b.answers, expected{ours: len(answer)})
	b.unsent = append(b.unsent, span{b.size, b.parsed})
	b.size = b.parsed
}

// send sends the commands in one piece. What follows in the client's buffer may belong to the last of
// them: a file. scratch may be another after it.
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

// forServer appends those of the commands that are not answered here.
func (b *batch) forServer(to, all []byte) []byte {
	from := 0
	for _, u := range b.unsent {
		to = append(to, all[from:u.from]...)
		from = u.to
	}
	return append(to, all[from:]...)
}

// answered records that the client has got the answers.
func (b *batch) answered() { b.answers, b.ready = b.answers[:0], b.ready[:0] }
