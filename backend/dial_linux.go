package backend

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"seqproxy/internal/rawio"
)

// dialIP connects to an address that needs no look-up. It makes half as many system calls as
// package net's dialer, which counts because every client costs a dial.
func dialIP(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	fail := func(call string, err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: os.NewSyscallError(call, err)}
	}
	family := unix.AF_INET
	if !to.Addr().Unmap().Is4() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fail("socket", err)
	}
	for _, o := range [...]struct{ level, option, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(keepAlive.Idle / time.Second)},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.option, o.value); err != nil {
			_ = unix.Close(fd)
			return fail("setsockopt", err)
		}
	}
	if errno := rawConnect(fd, to); errno != 0 && errno != unix.EINPROGRESS && errno != unix.EINTR {
		_ = unix.Close(fd)
		return fail("connect", errno)
	}
	c := &ipConn{file: os.NewFile(uintptr(fd), "server"), to: to}
	if err := c.connected(ctx); err != nil {
		_ = c.Close()
		return fail("connect", err)
	}
	return c, nil
}

// rawConnect is connect(2) on a non-blocking socket. Like the reads and writes of package protocol
// it does not announce the call to the scheduler, which would give the processor away when the
// kernel wakes the server.
func rawConnect(fd int, to netip.AddrPort) syscall.Errno {
	var port [2]byte
	binary.BigEndian.PutUint16(port[:], to.Port())
	networkOrder := binary.NativeEndian.Uint16(port[:])
	if ip := to.Addr().Unmap(); ip.Is4() {
		sa := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: networkOrder, Addr: ip.As4()}
		_, _, errno := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&sa)), unsafe.Sizeof(sa))
		return errno
	}
	sa := unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: networkOrder, Addr: to.Addr().As16()}
	_, _, errno := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&sa)), unsafe.Sizeof(sa))
	return errno
}

// hasPeer reports whether a socket is connected. Unlike package unix's Getpeername it builds no
// address.
func hasPeer(fd uintptr) bool {
	var peer unix.RawSockaddrAny
	size := uint32(unsafe.Sizeof(peer))
	_, _, errno := syscall.RawSyscall(unix.SYS_GETPEERNAME, fd, uintptr(unsafe.Pointer(&peer)), uintptr(unsafe.Pointer(&size)))
	return errno == 0
}

// ipConn is a TCP connection whose file is in the runtime's poller. It behaves and fails like a
// *net.TCPConn.
type ipConn struct {
	file *os.File
	to   netip.AddrPort
}

// connected waits until the connection is made, or ctx's deadline.
func (c *ipConn) connected(ctx context.Context) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetWriteDeadline(deadline); err != nil {
			return err
		}
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		if code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err != nil || code != 0 {
			if failed = err; err == nil {
				failed = syscall.Errno(code)
			}
			return true
		}
		return hasPeer(fd)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return c.SetWriteDeadline(time.Time{})
}

// Read implements [net.Conn].
func (c *ipConn) Read(b []byte) (int, error) {
	n, err := c.file.Read(b)
	if err == io.EOF {
		return n, err
	}
	return n, c.failed("read", err)
}

// Write implements [net.Conn].
func (c *ipConn) Write(b []byte) (int, error) {
	n, err := c.file.Write(b)
	return n, c.failed("write", err)
}

// SyscallConn implements [syscall.Conn].
func (c *ipConn) SyscallConn() (syscall.RawConn, error) { return c.file.SyscallConn() }

// Close implements [net.Conn].
func (c *ipConn) Close() error { return c.failed("close", c.file.Close()) }

// SetDeadline implements [net.Conn].
func (c *ipConn) SetDeadline(t time.Time) error { return c.failed("set", c.file.SetDeadline(t)) }

// SetReadDeadline implements [net.Conn].
func (c *ipConn) SetReadDeadline(t time.Time) error {
	return c.failed("set", c.file.SetReadDeadline(t))
}

// SetWriteDeadline implements [net.Conn].
func (c *ipConn) SetWriteDeadline(t time.Time) error {
	return c.failed("set", c.file.SetWriteDeadline(t))
}

// LocalAddr returns an empty address. Nothing reads it.
func (c *ipConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements [net.Conn].
func (c *ipConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }

func (c *ipConn) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return rawio.Error(op, c.RemoteAddr(), err)
}
