package protocol

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"seqproxy/internal/rawio"
)

// socket is a TCP or Unix connection with two things net.Conn does not give: a
// read that takes its buffer only once there is something to read, and a write
// that says when it would block. It lies under TLS, too.
//
// One goroutine may read while another writes.
type socket struct {
	net.Conn
	raw syscall.RawConn

	// stall bounds how long a write may wait for the peer without any progress;
	// 0 means for ever.
	stall time.Duration
	// onBlocked is called when a write has to wait, once per write. It may be nil.
	onBlocked func()
	// closing makes a write that would wait fail instead.
	closing atomic.Bool

	// One read and one write at a time: their state is kept here, and the two
	// functions once made, so that neither allocates.
	readFn   func(fd uintptr) bool
	readTo   readBuffer
	readN    int
	readErr  error
	writeFn  func(fd uintptr) bool
	out      []byte
	writeErr error
	blocked  bool
	since    time.Time     // of blocked
	stalled  time.Duration // how long writes were blocked
}

func newSocket(nc net.Conn) (*socket, error) {
	raw, err := rawio.SocketOf(nc)
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: nc, raw: raw}
	s.readFn, s.writeFn = s.tryRead, s.tryWrite
	return s, nil
}

// readBuffer is where a connection is read to. A pair of functions would be two
// allocations for each connection.
type readBuffer interface {
	take() []byte // the room to read to; called when there may be something to read
	give()        // called before a wait, so that no buffer is held meanwhile
}

// readInto waits until the socket is readable and reads once.
func (s *socket) readInto(to readBuffer) (int, error) {
	s.readTo = to
	if err := s.raw.Read(s.readFn); err != nil {
		return 0, err
	}
	if s.readErr != nil {
		return 0, &net.OpError{Op: "read", Net: "socket", Addr: s.RemoteAddr(), Err: s.readErr}
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

// Write writes all of b or fails. When the peer does not take it, onBlocked is
// told and the stall time runs.
func (s *socket) Write(b []byte) (int, error) {
	s.out, s.writeErr, s.blocked = b, nil, false
	err := s.raw.Write(s.writeFn)
	if s.blocked {
		s.stalled += time.Since(s.since)
		if s.stall > 0 {
			_ = s.SetWriteDeadline(time.Time{}) // fails only on a closed connection, which the next write reports
		}
	}
	if err == nil && s.writeErr != nil {
		err = &net.OpError{Op: "write", Net: "socket", Addr: s.RemoteAddr(), Err: s.writeErr}
	}
	n := len(b) - len(s.out)
	s.out = nil
	return n, err
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
