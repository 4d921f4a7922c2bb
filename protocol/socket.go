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
	room     room // of Read
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

// Read implements [net.Conn], for TLS.
func (s *socket) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil // 0 bytes from the kernel are the end
	}
	s.room = b
	n, err := s.readInto(&s.room)
	s.room = nil
	return n, err
}

// room is a buffer that its owner keeps during a wait.
type room []byte

func (r *room) take() []byte { return *r }
func (r *room) give()        {}

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

// Write writes all of b or fails. When the peer does not take it, onBlocked is
// told and the stall time runs.
func (s *socket) Write(b []byte) (int, error) {
	s.out, s.writeErr, s.blocked = b, nil, false
	err := s.raw.Write(s.writeFn)
	if s.blocked {
		s.stalled += time.Since(s.since)
		if s.stall > 0 {
			// fails only on a closed connection, which the next write reports
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
