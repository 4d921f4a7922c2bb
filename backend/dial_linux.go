package backend

import (
	"context"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// dialIP connects to an address that needs no look-up, for a third less than the
// dialer's way for names. The dialer binds such a socket first; the kernel must not
// choose its port then, without knowing where it goes, or ports run out.
func dialIP(ctx context.Context, d net.Dialer, to netip.AddrPort) (net.Conn, error) {
	d.Control = bindWithoutPort
	nc, err := d.DialTCP(ctx, "tcp", netip.AddrPort{}, to)
	if err != nil {
		return nil, err // not nc: a nil *TCPConn is no nil net.Conn
	}
	return nc, nil
}

func bindWithoutPort(_, _ string, c syscall.RawConn) error {
	var err error
	if ctlErr := c.Control(func(fd uintptr) {
		err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1))
	}); ctlErr != nil {
		return ctlErr
	}
	return err
}
