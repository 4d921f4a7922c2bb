package proxy

import (
	"net"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"seqproxy/backend"
)

// Checklist 35.
func TestAClientThatVanishesIsFoundByKeepalive(t *testing.T) {
	shards, err := backend.New(backend.Options{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Shards: shards, KeyOptions: KeyOptions{Sequences: unasked{}}, Logger: zap.NewNop()})
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer s.listener.Close()
	client, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := s.listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	raw, err := accepted.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]struct{ level, option, want int }{
		"SO_KEEPALIVE":  {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"TCP_KEEPIDLE":  {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 60},
		"TCP_KEEPINTVL": {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 10},
		"TCP_KEEPCNT":   {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 6},
	} {
		var got int
		var optErr error
		if err := raw.Control(func(fd uintptr) { got, optErr = unix.GetsockoptInt(int(fd), o.level, o.option) }); err != nil || optErr != nil {
			t.Fatal(err, optErr)
		}
		if got != o.want {
			t.Errorf("%s of a client's connection: got %d, want %d", name, got, o.want)
		}
	}
}
