package torture

import (
	"net"
	"os"
	"slices"
	"testing"
)

// The check sees the open TCP sockets of a process, by their addresses, and its files, by their
// number.
func TestOpenFilesAndSocketsOfAProcessAreSeen(t *testing.T) {
	count := func() ([]socket, int) {
		t.Helper()
		sockets, files, err := tcpSockets("/proc/self")
		if err != nil {
			t.Fatal(err)
		}
		return sockets, files - len(sockets)
	}
	_, before := count()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	const more = 30
	for range more {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
	}
	sockets, after := count()
	if !slices.ContainsFunc(sockets, func(s socket) bool { return s.listens && s.local == l.Addr().String() }) {
		t.Errorf("the listener at %v is not among %+v", l.Addr(), sockets)
	}
	if after < before+more {
		t.Errorf("%d files were open, and then %d more, and %d are seen", before, more, after)
	}
}
