package mysqltest

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// SilentListener returns an address where dials wait, like that of a machine that is down or behind
// a firewall. It is a listening socket with a full queue that never accepts.
func SilentListener(t testing.TB) netip.AddrPort {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) }) // nobody was served
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(sa.(*syscall.SockaddrInet4).Port))
	const tries = 10 // systems round the length of the queue up
	for range tries {
		c, err := net.DialTimeout("tcp", to.String(), 50*time.Millisecond)
		if err != nil {
			return to
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatalf("%s still takes connections after %d that nobody accepted", to, tries)
	return to
}
