package protocol

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"seqproxy/internal/rawio"
)

// socket is a TCP or Unix connection with two features that net.Conn lacks. A read takes its buffer
// only when there is something to read. A write reports that it would block. TLS runs over it, too.
//
// One goroutine may read while another writes.
type socket struct {
	net.Conn
	raw syscall.RawConn

	// stall bounds how long a write may wait for the peer without progress. 0 means for ever.
	stall time.Duration
	// onBlocked, if set, is called when a write has to wait, once for each write.
	onBlocked func()
	// closing makes a write fail instead of waiting.
	closing atomic.Bool

	// There is one read and one write at a time. Their state is here. Their two functions are made
	// once, so neither allocates.
	readFn   func(fd uintptr) bool
	readTo   readBuffer
	room     room // of Read
	readN    int
	readErr  error
	writeFn  func(fd uintptr) bool
	out      []byte
	writeErr error
	blocked  bool
	since    time.Time     // of blocked
	stalled  time.Duration // total time that writes were blocked
}

// newSocket makes a socket. See socket for stall and onBlocked.
func newSocket(nc net.Conn, stall time.Duration, onBlocked func()) (*socket, error) {
	raw, err := rawio.SocketOf(nc)
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: nc, raw: raw, stall: stall, onBlocked: onBlocked}
	s.readFn, s.writeFn = s.tryRead, s.tryWrite
	return s, nil
}

// readBuffer is the buffer that a connection reads into. It is an interface because two functions
// would be two allocations for each connection.
type readBuffer interface {
	take() []byte // returns the room to read into; called when there may be bytes
	give()        // called before a wait, so that no buffer is kept meanwhile
}

// Read implements [net.Conn], for TLS.
func (s *socket) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil // the kernel says 0 bytes at the end of the stream
	}
	s.room = b
	n, err := s.readInto(&s.room)
	s.room = nil
	return n, err
}

// room is a buffer that the caller keeps during a wait.
type room []byte

func (r *room) take() []byte { return *r }

func (r *room) give() {}

// readInto waits until the socket is readable and reads once.
func (s *socket) readInto(to readBuffer) (int, error) {
	s.readTo = to
	err := s.raw.Read(s.readFn)
	if err == nil {
		err = s.readErr
	}
	if err != nil {
		return 0, rawio.Error("read", s.RemoteAddr(), err)
	}
	if s.readN == 0 {
		return 0, io.EOF
	}
	return s.readN, nil
}

func (s *socket) tryRead(fd uintptr) bool {
	n, errno := rawio.Read(int(fd), s.readTo.take())
	switch errno {
	case 0:
		s.readN, s.readErr = n, nil
	case syscall.EAGAIN:
		s.readTo.give()
		return false
	default:
		s.readN, s.readErr = 0, errno
	}
	return true
}

// Write writes all of b or fails. If the peer does not read, it calls onBlocked, and the stall time
// runs.
func (s *socket) Write(b []byte) (int, error) {
	s.out, s.writeErr, s.blocked = b, nil, false
	err := s.raw.Write(s.writeFn)
	if s.blocked {
		s.stalled += time.Since(s.since)
		if s.stall > 0 {
			// This fails only on a closed connection, which the next write reports.
			_ = s.SetWriteDeadline(time.Time{})
		}
	}
	if err == nil {
		err = s.writeErr
	}
	n := len(b) - len(s.out)
	s.out = nil
	if err != nil {
		return n, rawio.Error("write", s.RemoteAddr(), err)
	}
	return n, nil
}

func (s *socket) tryWrite(fd uintptr) bool {
	for len(s.out) > 0 {
		n, errno := rawio.Write(int(fd), s.out)
		switch errno {
		case 0:
			s.out = s.out[n:]
		case syscall.EAGAIN:
			if s.closing.Load() {
				s.writeErr = errno
				return true
			}
			if s.stall > 0 {
				_ = s.SetWriteDeadline(time.Now().Add(s.stall))
			}
			if !s.blocked {
				s.blocked, s.since = true, time.Now()
				if s.onBlocked != nil {
					s.onBlocked()
				}
			}
			return false
		default:
			s.writeErr = errno
			return true
		}
	}
	return true
}

// BufferSize is the size of a read buffer. A connection has one only while there are bytes to look
// at. An idle connection has none, unless it uses TLS: only a read shows whether TLS has something.
const BufferSize = 32 << 10

// buffers has *[BufferSize]byte. A pointer goes into the pool without an allocation.
var buffers = sync.Pool{New: func() any { return new([BufferSize]byte) }}

func takeBuffer() []byte { return buffers.Get().(*[BufferSize]byte)[:] }

// giveBuffer returns b to the pool. It drops a buffer that has grown for a long packet: the pool
// stays small.
func giveBuffer(b []byte) {
	if cap(b) == BufferSize {
		buffers.Put((*[BufferSize]byte)(b[:BufferSize]))
	}
}
