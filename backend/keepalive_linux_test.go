package backend

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Checklist 35.
func TestAServerThatVanishesIsFoundByKeepalive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, address := range []string{"127.0.0.1:" + port, "localhost:" + port} {
		// dialled here, and by package net
		c, err := newNode(address).dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		raw, err := c.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		for name, o := range map[string]struct{ level, option, want int }{
			"SO_KEEPALIVE": {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			"TCP_KEEPIDLE": {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 60},
			"TCP_NODELAY":  {unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		} {
			var got int
			var optErr error
			if err := raw.Control(func(fd uintptr) { got, optErr = unix.GetsockoptInt(int(fd), o.level, o.option) }); err != nil || optErr != nil {
				t.Fatal(err, optErr)
			}
			if got != o.want {
				t.Errorf("%s of a connection to %s: got %d, want %d", name, address, got, o.want)
			}
		}
	}
}
