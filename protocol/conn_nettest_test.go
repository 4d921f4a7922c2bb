package protocol

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"seqproxy/test/network"
)

// stream makes a net.Conn of a Conn: any number of goroutines may read and write.
type stream struct {
	*Conn
	packets bool // written data are packets, as a compressed stream requires
	reading packetCursor
	r, w    sync.Mutex
}

func (s *stream) Read(b []byte) (int, error) {
	s.r.Lock()
	defer s.r.Unlock()
	for {
		for s.packets && len(s.Buffered()) > 0 && s.reading.remaining == 0 {
			s.reading.skip(s.Buffered()[:1]) // a byte of a header
			s.Discard(1)
		}
		if n := copy(b, s.Buffered()); n > 0 {
			if s.packets {
				n = min(n, s.reading.remaining)
				s.reading.remaining -= n
			}
			s.Discard(n)
			return n, nil
		}
		if err := s.Fill(); err != nil {
			return 0, err
		}
	}
}

func (s *stream) Write(b []byte) (int, error) {
	s.w.Lock()
	defer s.w.Unlock()
	if !s.packets {
		return s.Conn.Write(b)
	}
	n := 0
	for n < len(b) {
		part := b[n:min(len(b), n+1<<20)]
		packet, _ := AppendPacket(nil, part, 0)
		if _, err := s.Conn.Write(packet); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

func (s *stream) SetWriteDeadline(t time.Time) error { return s.sock.SetWriteDeadline(t) }

// streams connects two of them over network, with TLS or compression as asked. The second is the
// client.
func streams(t *testing.T, network string, overTLS bool, how Compression) (server, client *stream) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var conns [2]*Conn
	for i, open := range []func() (net.Conn, error){
		func() (net.Conn, error) { return net.Dial(network, l.Addr().String()) }, l.Accept,
	} {
		nc, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if conns[i], err = NewConn(nc, 0, 1<<20); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conns[i].Close() })
	}
	if overTLS {
		shaken := make(chan error, 1)
		go func() { shaken <- conns[0].StartTLSClient(clientTLS()) }()
		if err := conns[1].StartTLSServer(serverTLS()); err != nil {
			t.Fatal(err)
		}
		if err := <-shaken; err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range conns {
		if err := c.StartCompression(how); err != nil {
			t.Fatal(err)
		}
		c.FullDuplex()
	}
	packets := how.Algorithm != Uncompressed
	return &stream{Conn: conns[1], packets: packets}, &stream{Conn: conns[0], packets: packets}
}

// testStreams runs the tests of package nettest at both ends.
func testStreams(t *testing.T, network string, overTLS bool, how Compression) {
	for name, swap := range map[string]bool{"server": false, "client": true} {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				c1, c2 = streams(t, network, overTLS, how)
				if swap {
					c1, c2 = c2, c1
				}
				return c1, c2, func() { c1.Close(); c2.Close() }, nil
			})
		})
	}
}

func TestAConnBehavesAsThoseOfPackageNet(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) { testStreams(t, network, false, Compression{}) })
	}
}

// goesOnAfterAWrite are three tests that write again after a write has hit its deadline. A stream
// of records or frames cannot do that: part of one may have been sent, and the peer could not find
// the next. For this reason crypto/tls keeps the error of such a write for ever, also over package
// net's own connections (see the test below). No caller here writes again after it.
const goesOnAfterAWrite = "///^(PastTimeout|FutureTimeout|ConcurrentMethods)$"

func TestAConnOfRecordsBehavesAsThoseOfPackageNet(t *testing.T) {
	const inside = "SEQPROXY_TEST_NETTEST"
	if os.Getenv(inside) == "" { // only a command line can leave tests out
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.skip="+goesOnAfterAWrite)
		cmd.Env = append(os.Environ(), inside+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	t.Run("TLS", func(t *testing.T) { testStreams(t, "tcp", true, Compression{}) })
	t.Run("TLS over unix", func(t *testing.T) { testStreams(t, "unix", true, Compression{}) })
	for packing, how := range packings {
		t.Run(string(packing), func(t *testing.T) { testStreams(t, "tcp", false, how) })
		t.Run("TLS and "+string(packing), func(t *testing.T) { testStreams(t, "tcp", true, how) })
	}
}

// crypto/tls over package net's own connections fails the same three tests in the same way.
func TestTLSItselfDoesNotWriteOnAfterADeadline(t *testing.T) {
	near, far := network.Pair(t)
	client, server := tls.Client(near, clientTLS()), tls.Server(far, serverTLS())
	defer func() { near.Close(); far.Close() }()
	shaken := make(chan error, 1)
	go func() { shaken <- client.Handshake() }()
	if err := errors.Join(server.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}
	for _, deadline := range []time.Time{time.Unix(1, 0), {}} {
		if err := client.SetWriteDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("with deadline %v: got %v, want the error of the deadline", deadline, err)
		}
	}
}
