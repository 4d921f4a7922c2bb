package protocol

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Conn is one MySQL connection's byte stream, to a client or to a backend: a read buffer that
// exists only while there are bytes in it, packets for the login, and writes that cannot deadlock
// with a peer that writes, too.
//
// It is used by one goroutine at a time; only Abort, Control and SetReadDeadline may
// be called from another.
type Conn struct {
	sock   *socket
	tls    *tls.Conn // nil on a plain connection
	remote net.Addr  // by a PROXY header; nil: the socket's

	frames *frames // nil while nothing is compressed

	buf  []byte // nil while nothing is buffered
	r, w int    // buf[r:w] was read and not discarded

	ahead      []byte // read while a write was blocked; comes after buf and before the socket
	aheadLimit int
	writing    bool   // in writeRaw; TLS also writes by itself, for handshakes and alerts
	stopAhead  func() // ends the reading ahead that a write began; nil if none did

	deadline struct { // of reads
		sync.Mutex
		of       time.Time
		endAhead bool // another one ends the reading ahead just now
	}

	received, sent uint64 // bytes since they were taken; those inside of TLS and compression

	packetNum uint8  // of the next packet written
	pending   []byte // packets written that wait for the next write or read
}

// ErrTLSHandshake is the beginning of TLS that failed, on either side.
var ErrTLSHandshake = errors.New("TLS handshake")

// readAheadDelay is how long a write must have been blocked before the peer's
// own bytes are read meanwhile. A peer that only reads slowly is not worth it.
const readAheadDelay = 20 * time.Millisecond

// NewConn makes a Conn of a TCP or Unix connection and owns it from then on,
// also when it returns an error.
//
// writeStall bounds how long a write waits without progress (0: for ever).
// readAhead is how many bytes of the peer may be taken in while a write to it is
// blocked: a client that sends many statements before it reads any answer would
// otherwise wait for the proxy while the proxy waits for it. 0 turns that off.
func NewConn(nc net.Conn, writeStall time.Duration, readAhead int) (*Conn, error) {
	s, err := newSocket(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	s.stall = writeStall
	c := &Conn{sock: s, aheadLimit: readAhead}
	if readAhead > 0 {
		s.onBlocked = c.startReadAhead
	}
	return c, nil
}

// Compressed says whether the stream is one of compressed frames. In these the servers
// check the frames' numbers and never those of the packets inside.
func (c *Conn) Compressed() bool { return c.frames != nil }

// Buffered returns the bytes that were read and not discarded. They are valid,
// and may be changed in place, until the next Fill, ReadPacket or Discard.
func (c *Conn) Buffered() []byte { return c.buf[c.r:c.w] }

// Discard drops the first n buffered bytes.
func (c *Conn) Discard(n int) {
	c.r += n
	if c.r > c.w {
		panic("protocol: Discard of more than is buffered")
	}
}

// Fill waits for more bytes and reads once. Buffered grows. It may move, so slices of it are
// invalid afterwards. The buffer grows as far as its unread bytes demand: callers bound that by
// what they leave unread. It returns io.EOF when the peer has closed.
func (c *Conn) Fill() error {
	if len(c.pending) > 0 {
		if err := c.Flush(); err != nil {
			return err
		}
	}
	if c.r == c.w {
		c.r, c.w = 0, 0
		if len(c.buf) > BufferSize { // grown for one long packet
			c.buf = nil
		}
	} else if c.w == len(c.buf) {
		c.makeRoom()
	}
	n, err := c.read()
	c.w += n
	c.received += uint64(n)
	return err
}

// Reserve makes room for n bytes, those that are buffered included: Fill reads so many and none
// behind them, and does not grow the buffer for them.
func (c *Conn) Reserve(n int) {
	if n <= len(c.buf)-c.r {
		return
	}
	to := make([]byte, n)
	k := copy(to, c.Buffered())
	if c.buf != nil {
		giveBuffer(c.buf)
	}
	c.buf, c.r, c.w = to, 0, k
}

// makeRoom moves what is buffered to the start of the buffer, of a larger one if
// it is more than half full.
func (c *Conn) makeRoom() {
	n := c.w - c.r
	to := c.buf
	if n > len(c.buf)/2 {
		to = make([]byte, 2*len(c.buf))
	}
	copy(to, c.buf[c.r:c.w])
	if &to[0] != &c.buf[0] {
		giveBuffer(c.buf)
		c.buf = to
	}
	c.r, c.w = 0, n
}

// Release gives the buffer back if nothing is in it.
func (c *Conn) Release() {
	if c.buf != nil && c.r == c.w {
		c.give()
	}
}

func (c *Conn) read() (int, error) {
	if c.frames != nil {
		return c.frames.in.read()
	}
	return c.readRaw(c)
}

// readRaw reads once from the connection itself, into to.
func (c *Conn) readRaw(to readBuffer) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(to.take(), c.ahead)
		c.ahead = c.ahead[n:]
		if len(c.ahead) == 0 {
			c.ahead = nil
		}
		return n, nil
	}
	if c.tls == nil {
		return c.sock.readInto(to)
	}
	n, err := c.tls.Read(to.take())
	if n > 0 {
		return n, nil // an error comes again
	}
	return n, err
}

// take returns the free part of the buffer, making one if there is none.
func (c *Conn) take() []byte {
	if c.buf == nil {
		c.buf, c.r, c.w = takeBuffer(), 0, 0
	}
	return c.buf[c.w:]
}

// give returns the buffer to the pool if nothing is in it.
func (c *Conn) give() {
	if c.r == c.w && c.buf != nil {
		giveBuffer(c.buf)
		c.buf, c.r, c.w = nil, 0, 0
	}
}

// Write writes b as it is, behind packets that wait.
func (c *Conn) Write(b []byte) (int, error) {
	if len(c.pending) > 0 {
		waiting := len(c.pending)
		c.pending = append(c.pending, b...)
		n, err := c.writePending()
		return max(n-waiting, 0), err
	}
	return c.writeThrough(b)
}

func (c *Conn) writeThrough(b []byte) (n int, err error) {
	if c.frames != nil {
		n, err = c.frames.out.write(b)
	} else {
		n, err = c.writeRaw(b)
	}
	c.sent += uint64(n)
	return n, err
}

// TakeReceived returns how many bytes were read since it was called last, as they were
// before compression and TLS. It is for the goroutine that reads.
func (c *Conn) TakeReceived() (bytes uint64) {
	bytes, c.received = c.received, 0
	return bytes
}

// Sent returns what TakeSent would.
func (c *Conn) Sent() (bytes uint64) { return c.sent }

// TakeSent is TakeReceived for the bytes written, and for how long writes waited for the
// peer to read. It is for the goroutine that writes.
func (c *Conn) TakeSent() (bytes uint64, stalled time.Duration) {
	bytes, stalled = c.sent, c.sock.stalled
	c.sent, c.sock.stalled = 0, 0
	return bytes, stalled
}

// writeRaw writes to the connection itself.
func (c *Conn) writeRaw(b []byte) (n int, err error) {
	c.writing = true
	if c.tls != nil {
		n, err = c.tls.Write(b)
	} else {
		n, err = c.sock.Write(b)
	}
	// Only here, where TLS has let go of its lock for writes: the reader may need
	// that, to answer a broken record or a change of keys.
	if c.stopAhead != nil {
		c.stopAhead()
		c.stopAhead = nil
	}
	c.writing = false
	return n, err
}

// Flush writes the packets that wait.
func (c *Conn) Flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	_, err := c.writePending()
	return err
}

// writePending writes the packets that wait and gives their memory back, since logins
// are few in a connection's life.
func (c *Conn) writePending() (int, error) {
	b := c.pending
	c.pending = nil
	n, err := c.writeThrough(b)
	giveBuffer(b)
	return n, err
}

// startReadAhead is called when a write to the peer has to wait. One reader is
// enough for all that writeRaw writes.
func (c *Conn) startReadAhead() {
	if !c.writing || c.stopAhead != nil {
		return
	}
	done := make(chan struct{})
	t := time.AfterFunc(readAheadDelay, func() {
		defer close(done)
		c.readAhead()
	})
	c.stopAhead = func() {
		if t.Stop() {
			return
		}
		// The goroutine runs: end its read, wait for it, and allow reads as before.
		c.deadline.Lock()
		c.deadline.endAhead = true
		_ = c.sock.SetReadDeadline(time.Unix(1, 0))
		c.deadline.Unlock()
		<-done
		c.deadline.Lock()
		c.deadline.endAhead = false
		_ = c.sock.SetReadDeadline(c.deadline.of)
		c.deadline.Unlock()
	}
}

// readAhead takes in what the peer sends until it is stopped by a read deadline
// or has enough. Errors are left for the next Fill, which meets them again.
func (c *Conn) readAhead() {
	chunk := takeBuffer()
	defer giveBuffer(chunk)
	for len(c.ahead) < c.aheadLimit {
		chunk := chunk[:min(len(chunk), c.aheadLimit-len(c.ahead))]
		var n int
		var err error
		if c.tls != nil {
			n, err = c.tls.Read(chunk)
		} else {
			n, err = c.sock.Read(chunk)
		}
		c.ahead = append(c.ahead, chunk[:n]...)
		if err != nil {
			return
		}
	}
}

// ReadPacket reads one packet and returns its payload, valid until the next read.
// A payload of more than limit bytes (or of 16 MB and more) is an error, found
// before it is read. The next packet written continues its numbering.
func (c *Conn) ReadPacket(limit int) ([]byte, error) {
	for c.w-c.r < HeaderSize {
		if err := c.fillPacket(); err != nil {
			return nil, err
		}
	}
	n := PayloadLen(c.buf[c.r:])
	if n > limit || n == MaxFragment {
		return nil, fmt.Errorf("%w: %d bytes where at most %d are expected", ErrMalformed, n, limit)
	}
	for c.w-c.r < HeaderSize+n {
		if err := c.fillPacket(); err != nil {
			return nil, err
		}
	}
	c.packetNum = c.buf[c.r+3] + 1
	payload := c.buf[c.r+HeaderSize : c.r+HeaderSize+n]
	c.r += HeaderSize + n
	return payload, nil
}

// fillPacket is Fill inside a packet, where an end of the stream is unexpected
// unless nothing of the packet has come.
func (c *Conn) fillPacket() error {
	partial := c.w > c.r
	err := c.Fill()
	if errors.Is(err, io.EOF) && partial {
		return io.ErrUnexpectedEOF
	}
	return err
}

// WritePacket writes payload as one packet, numbered on from the last packet read
// or written; 16 MB and more are refused.
func (c *Conn) WritePacket(payload []byte) error {
	if err := c.QueuePacket(payload); err != nil {
		return err
	}
	return c.Flush()
}

// QueuePacket is WritePacket for a packet that is followed by another at once: it is
// written with what is written next, at the latest before the next read, in one
// system call.
func (c *Conn) QueuePacket(payload []byte) error {
	if len(payload) >= MaxFragment {
		return fmt.Errorf("packet of %d bytes is too long to be written whole", len(payload))
	}
	if c.pending == nil {
		c.pending = takeBuffer()[:0]
	}
	c.pending, c.packetNum = AppendPacket(c.pending, payload, c.packetNum)
	return nil
}

// SetPacketNum sets the number of the next packet that WritePacket writes; a new
// command starts at 0.
func (c *Conn) SetPacketNum(n uint8) { c.packetNum = n }

// PacketNum returns the number of the next packet that WritePacket writes.
func (c *Conn) PacketNum() uint8 { return c.packetNum }

// StartTLSServer makes the rest of the stream TLS, with the peer as TLS client.
// Bytes that came behind the client's SSLRequest are read as TLS, never as clear
// packets that somebody slipped in.
func (c *Conn) StartTLSServer(cfg *tls.Config) error { return c.startTLS(tls.Server, cfg) }

// StartTLSClient makes the rest of the stream TLS, with the peer as TLS server.
func (c *Conn) StartTLSClient(cfg *tls.Config) error { return c.startTLS(tls.Client, cfg) }

func (c *Conn) startTLS(side func(net.Conn, *tls.Config) *tls.Conn, cfg *tls.Config) error {
	if err := c.Flush(); err != nil {
		return err
	}
	var under net.Conn = c.sock
	if c.r < c.w {
		// The client may have sent its TLS hello in one segment with the request.
		under = &prefixed{Conn: c.sock, prefix: append([]byte(nil), c.Buffered()...)}
		c.r = c.w
	}
	c.give()
	t := side(under, cfg)
	if err := t.Handshake(); err != nil {
		return fmt.Errorf("%w: %w", ErrTLSHandshake, err)
	}
	c.tls = t
	return nil
}

// prefixed is a connection some of whose bytes were read already.
type prefixed struct {
	net.Conn
	prefix []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.prefix) > 0 {
		n := copy(b, p.prefix)
		p.prefix = p.prefix[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// IsTLS says whether the stream is encrypted.
func (c *Conn) IsTLS() bool { return c.tls != nil }

// LocalAddr returns the address that the peer has connected to.
func (c *Conn) LocalAddr() net.Addr { return c.sock.LocalAddr() }

// RemoteAddr returns the peer's address, or the one that a balancer named for it
// (ReadProxyHeader).
func (c *Conn) RemoteAddr() net.Addr {
	if c.remote != nil {
		return c.remote
	}
	return c.sock.RemoteAddr()
}

// PeerAddr returns the address of whoever has connected, a balancer perhaps. It may be
// called from any goroutine; RemoteAddr only when no PROXY header is to come.
func (c *Conn) PeerAddr() net.Addr { return c.sock.RemoteAddr() }

// SetDeadline bounds reads and writes together. A write that runs into it ends the
// connection: a part may have been written, and TLS writes no more.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.sock.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads; a time in the past ends one that waits. The connection
// goes on with a later one.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	if c.deadline.of = t; c.deadline.endAhead {
		return nil // it is set in a moment
	}
	return c.sock.SetReadDeadline(t)
}

// Control runs f with the socket's descriptor, which stays open meanwhile. It may be
// called from any goroutine; it fails once the socket is closed.
func (c *Conn) Control(f func(fd uintptr)) error { return c.sock.raw.Control(f) }

// Drop forgets what is buffered and gives the memory back. The connection's user
// calls it before Close, which may come from elsewhere and leaves the buffer alone.
func (c *Conn) Drop() {
	c.ahead = nil
	if c.buf != nil {
		c.r = c.w
		c.give()
	}
	if c.frames != nil {
		c.frames.in.drop()
	}
}

// FullDuplex lets one goroutine read while another writes, from now on: nothing is
// read ahead any more. No packet may wait to be written.
func (c *Conn) FullDuplex() {
	c.sock.onBlocked = nil
	if c.frames != nil {
		c.frames.part()
	}
}

// DontWait makes every write that would have to wait fail, from now on.
func (c *Conn) DontWait() { c.sock.closing.Store(true) }

// Abort closes the socket at once, from whichever goroutine: what its user waits for
// fails. The user must still Close.
func (c *Conn) Abort() { _ = c.sock.Close() }

// Close closes the socket at once; a TLS peer is told first if that does not wait.
func (c *Conn) Close() error {
	if c.tls == nil {
		return c.sock.Close()
	}
	c.sock.closing.Store(true)
	_ = c.sock.SetDeadline(time.Now().Add(time.Second))      // for a write that waits already
	if err := c.tls.Close(); errors.Is(err, net.ErrClosed) { // it closes the socket, too
		return err
	}
	return nil // though the peer may not have been told
}
