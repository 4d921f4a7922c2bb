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

// Conn is a TCP or Unix connection. It does what the one below it does, with the same errors and
// deadlines, but for the way to the kernel. All its methods may be called at the same time. A read
// of nothing does nothing, also on a closed one.
type Conn struct {
	net.Conn
	raw    syscall.RawConn
	reads  direction
	writes direction
}

// direction is the state of the one read, or the one write, that is going on. It is kept, with the
// function that uses it, so that none allocates.
type direction struct {
	mu    sync.Mutex // held during a call, the rest is guarded by it
	try   func(fd uintptr) bool
	b     []byte // to read to, or that is still to be written
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
func (c *Conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil // 0 bytes from the kernel are the end
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

// read reads once. It reports whether there was something, or the end, or an error.
func (d *direction) read(fd uintptr) bool {
	d.n, d.errno = Read(int(fd), d.b)
	return d.errno != syscall.EAGAIN
}

// Write implements [net.Conn]: all of b, or an error.
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

// write writes what there is room for. It reports whether that was all, or an error.
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

// Silent makes sure that the peer has neither said anything nor closed while nobody read. It does
// not wait, whatever the deadlines are. What it reads is lost: after an error the connection can
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

// failed is the error that the net package would have: err is of the wait, errno of the system
// call.
func (c *Conn) failed(op string, err error, errno syscall.Errno) error {
	switch {
	case err == nil && errno == 0:
		return nil // before anything is allocated
	case err == nil:
		err = errno
	}
	of := Error(op, c.RemoteAddr(), err)
	of.Source = c.LocalAddr()
	return of
}
