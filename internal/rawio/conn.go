package rawio

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Conn is a TCP or Unix connection. It does what the one below it does, with the same errors and deadlines, but for the way to the kernel. All its methods may be
// called at the same time. Reads and writes of nothing do nothing, also on a closed one.
type Conn struct {
	net.Conn
	raw syscall.RawConn
}

// NewConn takes over nc, which must have a socket.
func NewConn(nc net.Conn) (*Conn, error) {
	raw, err := SocketOf(nc)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: nc, raw: raw}, nil
}

// SocketOf is the socket of a TCP or Unix connection.
func SocketOf(nc net.Conn) (syscall.RawConn, error) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("connection of type %T has no socket", nc)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("get the socket of a connection: %w", err)
	}
	return raw, nil
}

// Read implements [net.Conn].
func (c *Conn) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil // 0 bytes from the kernel are the end
	}
	var errno syscall.Errno
	err = c.raw.Read(func(fd uintptr) bool {
		n, errno = readOnce(fd, b)
		return errno != syscall.EAGAIN
	})
	switch err = c.failed("read", err, errno); {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func readOnce(fd uintptr, b []byte) (n int, errno syscall.Errno) {
	for {
		if n, errno = Read(int(fd), b); errno != syscall.EINTR {
			return n, errno
		}
	}
}

// Write implements [net.Conn]: all of b, or an error.
func (c *Conn) Write(b []byte) (int, error) {
	rest := b
	var errno syscall.Errno
	err := c.raw.Write(func(fd uintptr) bool {
		for len(rest) > 0 {
			n := 0
			switch n, errno = Write(int(fd), rest); errno {
			case 0:
				rest = rest[n:]
			case syscall.EINTR:
			default:
				return errno != syscall.EAGAIN
			}
		}
		return true
	})
	return len(b) - len(rest), c.failed("write", err, errno)
}

// Silent makes sure that the peer has neither said anything nor closed while nobody read. It does not wait, whatever the deadlines are. What it reads is lost: after
// an error the connection can only be closed.
func (c *Conn) Silent() error {
	var n int
	var errno syscall.Errno
	err := c.raw.Control(func(fd uintptr) { n, errno = readOnce(fd, make([]byte, 1)) })
	switch {
	case err == nil && errno == syscall.EAGAIN:
		return nil
	case err != nil || errno != 0:
		return c.failed("read", err, errno)
	case n > 0:
		return errors.New("the peer has sent something unasked")
	}
	return io.EOF
}

// failed is the error that the net package would have: err is of the wait, errno of the system call.
func (c *Conn) failed(op string, err error, errno syscall.Errno) error {
	var of *net.OpError
	switch {
	case errors.As(err, &of):
		err = of.Err // its op is "raw-read"
	case err == nil && errno != 0:
		err = os.NewSyscallError(op, errno)
	}
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
