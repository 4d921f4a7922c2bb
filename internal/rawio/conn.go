package rawio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
)

// Conn is a TCP or Unix connection. It behaves like the one below it, with the same errors and
// deadlines, but makes its own system calls. All methods may be called at the same time. A read
// into an empty slice does nothing, even on a closed connection.
type Conn struct {
	net.Conn
	raw    syscall.RawConn
	reads  direction
	writes direction
}

// direction is the state of the present read or write. The state and its function are kept, so that
// no call allocates.
type direction struct {
	mu    sync.Mutex // locked during a call, guards the rest
	try   func(fd uintptr) bool
	b     []byte // to read into, or still to write
	n     int    // bytes read
	errno syscall.Errno
}

// Dial connects over "tcp" or "unix".
func Dial(ctx context.Context, d *net.Dialer, network, addr string) (*Conn, error) {
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c, err := newConn(nc)
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return c, nil
}

// newConn takes over nc, which must have a socket.
func newConn(nc net.Conn) (*Conn, error) {
	raw, err := SocketOf(nc)
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: nc, raw: raw}
	c.reads.try, c.writes.try = c.reads.read, c.writes.write
	return c, nil
}

// SocketOf returns the socket of a TCP or Unix connection.
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
func (c *Conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil // the kernel says 0 bytes at the end of the stream
	}
	d := &c.reads
	d.mu.Lock()
	defer d.mu.Unlock()
	d.b = b
	err := c.raw.Read(d.try)
	n, errno := d.n, d.errno
	d.b, d.n, d.errno = nil, 0, 0
	switch err = c.failed("read", err, errno); {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// read reads once. It returns false if it would have to wait.
func (d *direction) read(fd uintptr) bool {
	d.n, d.errno = Read(int(fd), d.b)
	return d.errno != syscall.EAGAIN
}

// Write implements [net.Conn]. It writes all of b or returns an error.
func (c *Conn) Write(b []byte) (int, error) {
	d := &c.writes
	d.mu.Lock()
	defer d.mu.Unlock()
	d.b = b
	err := c.raw.Write(d.try)
	rest, errno := len(d.b), d.errno
	d.b, d.errno = nil, 0
	return len(b) - rest, c.failed("write", err, errno)
}

// write writes as much as there is room for. It returns false if it would have to wait.
func (d *direction) write(fd uintptr) bool {
	for len(d.b) > 0 {
		n, errno := Write(int(fd), d.b)
		switch errno {
		case 0:
			d.b = d.b[n:]
		case syscall.EAGAIN:
			return false
		default:
			d.errno = errno
			return true
		}
	}
	return true
}

// Silent makes sure that the peer has neither sent anything nor closed since the last read. It does
// not wait, whatever the deadlines. It discards what it reads: after an error the connection can
// only be closed.
func (c *Conn) Silent() error {
	var n int
	var errno syscall.Errno
	err := c.raw.Control(func(fd uintptr) { n, errno = Read(int(fd), make([]byte, 1)) })
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

// failed returns the error that the net package would return. err is the error of the wait, errno
// that of the system call.
func (c *Conn) failed(op string, err error, errno syscall.Errno) error {
	switch {
	case err == nil && errno == 0:
		return nil // without an allocation
	case err == nil:
		err = errno
	}
	of := Error(op, c.RemoteAddr(), err)
	of.Source = c.LocalAddr()
	return of
}
