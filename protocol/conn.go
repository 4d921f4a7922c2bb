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

// Conn is the byte stream of one MySQL connection, to a client or to a backend. It has a read
// buffer only while there are bytes in it. It reads and writes packets for the login. Its writes
// cannot deadlock with a peer that also writes.
//
// One goroutine uses it at a time. Only Abort, Control, SetReadDeadline and PeerAddr may be called
// from another.
type Conn struct {
	sock   *socket
	tls    *tls.Conn // nil on a plain connection
	remote net.Addr  // from a PROXY header; nil: the socket's

	frames *frames // nil while the stream is not compressed

	buf  []byte // nil while empty
	r, w int    // buf[r:w] was read and not discarded

	ahead      []byte // read while a write was blocked; follows buf and precedes the socket
	aheadLimit int
	writing    bool // writeRaw runs; TLS also writes outside of it, for handshakes and alerts
	// aheadBegins starts reading ahead while a write is blocked; nil: none is. aheadDone is closed
	// at the end of that reading.
	aheadBegins *time.Timer
	aheadDone   chan struct{}

	deadline struct { // of reads
		sync.Mutex
		of       time.Time
		endAhead bool // a deadline of its own is ending the reading ahead
	}

	received, sent uint64 // bytes since the last Take..., inside TLS and compression

	packetNum uint8  // of the next packet written
	pending   []byte // packets that wait for the next write or read
}

// ErrTLSHandshake says that a TLS handshake has failed, on either side.
var ErrTLSHandshake = errors.New("TLS handshake")

// readAheadDelay is how long a write must be blocked before the Conn reads the peer's bytes
// meanwhile. A peer that only reads slowly needs no reading ahead.
const readAheadDelay = 20 * time.Millisecond

// NewConn makes a Conn of a TCP or Unix connection. From then on the Conn owns that, even if
// NewConn returns an error.
//
// writeStall bounds how long a write waits without progress. 0 means for ever. readAhead bounds the
// bytes that are read while a write is blocked. 0 means none. A client may send many statements
// before it reads an answer. Without reading ahead, client and proxy would wait for each other.
func NewConn(nc net.Conn, writeStall time.Duration, readAhead int) (*Conn, error) {
	c := &Conn{aheadLimit: readAhead}
	var onBlocked func()
	if readAhead > 0 {
		onBlocked = c.startReadAhead
	}
	var err error
	if c.sock, err = newSocket(nc, writeStall, onBlocked); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// Compressed reports whether the stream consists of compressed frames. Servers then check the
// numbers of frames and ignore those of the packets inside.
func (c *Conn) Compressed() bool { return c.frames != nil }

// Buffered returns the bytes that were read and not discarded. The slice is valid until the next
// Fill, ReadPacket or Discard. The caller may change its bytes.
func (c *Conn) Buffered() []byte { return c.buf[c.r:c.w] }

// Discard drops the first n buffered bytes.
func (c *Conn) Discard(n int) {
	c.r += n
	if c.r > c.w {
		panic("protocol: Discard of more than is buffered")
	}
}

// Replace puts b in place of the first n buffered bytes.
func (c *Conn) Replace(n int, b []byte) {
	rest := c.w - c.r - n
	c.Reserve(len(b) + rest)
	copy(c.buf[c.r+len(b):], c.buf[c.r+n:c.w])
	copy(c.buf[c.r:], b)
	c.w = c.r + len(b) + rest
}

// Fill waits for bytes and reads once. Buffered grows and may move, so slices of it become invalid.
// The buffer grows with its unread bytes: callers bound it by what they leave unread. The error is
// io.EOF if the peer has closed.
func (c *Conn) Fill() error {
	if len(c.pending) > 0 {
		if err := c.Flush(); err != nil {
			return err
		}
	}
	if c.r == c.w {
		c.r, c.w = 0, 0
		if len(c.buf) > BufferSize { // it has grown for a long packet
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

// Reserve makes room for n bytes, with those buffered. Until then Fill reads no byte beyond these
// n, and does not grow the buffer.
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

// makeRoom moves the buffered bytes to the start of the buffer. If the buffer is more than half
// full, they go to a larger one.
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

// Release frees the buffer if it is empty.
func (c *Conn) Release() { c.give() }

func (c *Conn) read() (int, error) {
	if c.frames != nil {
		return c.frames.in.read()
	}
	return c.readRaw(c)
}

// readRaw reads once from the connection itself into to.
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
		return n, nil // the error comes again
	}
	return n, err
}

// take returns the free part of the buffer, which it makes if there is none.
func (c *Conn) take() []byte {
	if c.buf == nil {
		c.buf, c.r, c.w = takeBuffer(), 0, 0
	}
	return c.buf[c.w:]
}

// give returns the buffer to the pool if it is empty.
func (c *Conn) give() {
	if c.r == c.w && c.buf != nil {
		giveBuffer(c.buf)
		c.buf, c.r, c.w = nil, 0, 0
	}
}

// Write writes b unchanged, after the packets that wait.
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

// TakeReceived returns the number of bytes read since the last call, counted inside compression and
// TLS. Only the reading goroutine may call it.
func (c *Conn) TakeReceived() (bytes uint64) {
	bytes, c.received = c.received, 0
	return bytes
}

// Sent returns the count of TakeSent without resetting it.
func (c *Conn) Sent() (bytes uint64) { return c.sent }

// TakeSent is TakeReceived for bytes written. stalled is how long writes have waited for the peer.
// Only the writing goroutine may call it.
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
	// TLS has released its lock for writes only now. The reader may need that lock, to answer a
	// broken record or a change of keys.
	c.stopReadAhead()
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

// writePending writes the packets that wait and frees their memory. Few packets wait after a login.
func (c *Conn) writePending() (int, error) {
	b := c.pending
	c.pending = nil
	n, err := c.writeThrough(b)
	giveBuffer(b)
	return n, err
}

// startReadAhead starts reading ahead when a write has to wait, once for each writeRaw.
func (c *Conn) startReadAhead() {
	if !c.writing || c.aheadBegins != nil {
		return
	}
	done := make(chan struct{})
	c.aheadDone = done
	c.aheadBegins = time.AfterFunc(readAheadDelay, func() {
		defer close(done)
		c.readAhead()
	})
}

// stopReadAhead ends the reading ahead that a write began, if any.
func (c *Conn) stopReadAhead() {
	if c.aheadBegins == nil {
		return
	}
	if !c.aheadBegins.Stop() {
		// End the goroutine's read, wait for it, and restore the caller's deadline. A write of the
		// goroutine itself may be blocked, and must not begin another.
		c.deadline.Lock()
		c.deadline.endAhead = true
		_ = c.sock.SetReadDeadline(time.Unix(1, 0))
		c.deadline.Unlock()
		<-c.aheadDone
		c.deadline.Lock()
		c.deadline.endAhead = false
		_ = c.sock.SetReadDeadline(c.deadline.of)
		c.deadline.Unlock()
	}
	c.aheadBegins = nil
}

// readAhead reads what the peer sends, until a read deadline stops it or it has enough. It ignores
// errors: the next Fill meets them again.
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

// ReadPacket reads one packet and returns its payload, which is valid until the next read. It
// refuses a payload of more than limit bytes, or of 16 MB and more, before reading it. The next
// packet written has the number after this one's.
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

// fillPacket is Fill within a packet. The end of the stream is unexpected there, unless no byte of
// the packet has come.
func (c *Conn) fillPacket() error {
	partial := c.w > c.r
	err := c.Fill()
	if errors.Is(err, io.EOF) && partial {
		return io.ErrUnexpectedEOF
	}
	return err
}

// WritePacket writes payload as one packet. Its number follows the last packet read or written. It
// refuses 16 MB and more.
func (c *Conn) WritePacket(payload []byte) error {
	if err := c.QueuePacket(payload); err != nil {
		return err
	}
	return c.Flush()
}

// QueuePacket is WritePacket for a packet that another follows at once. Both go out in one system
// call. The packet waits for the next write, but not beyond the next read.
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

// SetPacketNum sets the number of the next packet written. A new command starts at 0.
func (c *Conn) SetPacketNum(n uint8) { c.packetNum = n }

// PacketNum returns the number of the next packet written.
func (c *Conn) PacketNum() uint8 { return c.packetNum }

// StartTLSServer makes the rest of the stream TLS. The peer is the TLS client. Bytes after the
// client's SSLRequest are read as TLS, so an attacker cannot slip in clear packets.
func (c *Conn) StartTLSServer(cfg *tls.Config) error { return c.startTLS(tls.Server, cfg) }

// StartTLSClient makes the rest of the stream TLS. The peer is the TLS server.
func (c *Conn) StartTLSClient(cfg *tls.Config) error { return c.startTLS(tls.Client, cfg) }

func (c *Conn) startTLS(side func(net.Conn, *tls.Config) *tls.Conn, cfg *tls.Config) error {
	if err := c.Flush(); err != nil {
		return err
	}
	var under net.Conn = c.sock
	if c.r < c.w {
		// The client may send its TLS hello in the same segment as the request.
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

// prefixed is a connection whose first bytes were read before.
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

// IsTLS reports whether the stream is encrypted.
func (c *Conn) IsTLS() bool { return c.tls != nil }

// LocalAddr returns the proxy's address of the connection.
func (c *Conn) LocalAddr() net.Addr { return c.sock.LocalAddr() }

// RemoteAddr returns the peer's address, or the one in a balancer's PROXY header (ReadProxyHeader).
func (c *Conn) RemoteAddr() net.Addr {
	if c.remote != nil {
		return c.remote
	}
	return c.sock.RemoteAddr()
}

// PeerAddr returns the address of the direct peer, which may be a balancer. Any goroutine may call
// it. RemoteAddr is safe only when no PROXY header can come any more.
func (c *Conn) PeerAddr() net.Addr { return c.sock.RemoteAddr() }

// SetDeadline bounds reads and writes. A write that hits it ends the connection: part of it may
// have been sent, and TLS does not write after that.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.sock.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads. A time in the past ends a read that waits. The connection can go on
// with a later deadline.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	if c.deadline.of = t; c.deadline.endAhead {
		return nil // the end of reading ahead sets it in a moment
	}
	return c.sock.SetReadDeadline(t)
}

// Control calls f with the socket's descriptor, which stays open during the call. Any goroutine may
// call it. It fails once the socket is closed.
func (c *Conn) Control(f func(fd uintptr)) error { return c.sock.raw.Control(f) }

// Drop frees all buffers. The goroutine that uses the connection calls it before Close. Close may
// come from another goroutine and does not touch the buffers.
func (c *Conn) Drop() {
	c.ahead = nil
	c.r = c.w
	c.give()
	if c.frames != nil {
		c.frames.in.drop()
	}
}

// FullDuplex allows one goroutine to read while another writes, from now on. It ends all reading
// ahead. No packet may wait to be written.
func (c *Conn) FullDuplex() {
	c.sock.onBlocked = nil
	if c.frames != nil {
		c.frames.part()
	}
}

// DontWait makes writes fail instead of waiting, from now on.
func (c *Conn) DontWait() { c.sock.closing.Store(true) }

// Abort closes the socket at once. Any goroutine may call it. A read or write that waits fails, and
// the connection's user must still call Close.
func (c *Conn) Abort() { _ = c.sock.Close() }

// Close closes the socket at once. It sends a TLS peer an alert if that needs no wait.
func (c *Conn) Close() error {
	if c.tls == nil {
		return c.sock.Close()
	}
	c.sock.closing.Store(true)
	_ = c.sock.SetDeadline(time.Now().Add(time.Second))      // ends a write that waits
	if err := c.tls.Close(); errors.Is(err, net.ErrClosed) { // this closes the socket, too
		return err
	}
	return nil // the alert may not have been sent
}
