package backend

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"seqproxy/protocol"
	"seqproxy/test/mysqltest"
)

// dialled is a connection by dialIP, and its peer.
func dialled(t testing.TB) (c, peer net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if c, err = dialIP(ctx, netip.MustParseAddrPort(l.Addr().String())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if peer, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	return c, peer
}

func TestADialledConnectionBehavesAsThoseOfPackageNet(t *testing.T) {
	for name, swap := range map[string]bool{"dialled": false, "dialled as peer": true} {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				c1, c2 = dialled(t)
				if swap {
					c1, c2 = c2, c1
				}
				return c1, c2, func() { c1.Close(); c2.Close() }, nil
			})
		})
	}
}

// A read error that is not temporary in the words of package net ends a TLS connection for good.
func TestTLSToAServerGoesOnAfterADeadline(t *testing.T) {
	nc, far := dialled(t)
	ca := mysqltest.NewCA(t)
	files := ca.Server(t, "127.0.0.1")
	certificate, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	peer := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{certificate}})
	c, err := protocol.NewConn(nc, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	shaken := make(chan error, 1)
	go func() { shaken <- peer.Handshake() }()
	if err := c.StartTLSClient(&tls.Config{RootCAs: ca.Pool, ServerName: "127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	for _, deadline := range []time.Time{time.Unix(1, 0), time.Now().Add(20 * time.Millisecond)} {
		if err := c.SetReadDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		if err := c.Fill(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v, want the deadline's error", err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := c.Fill(); err != nil || string(c.Buffered()) != "x" {
			t.Fatalf("after a deadline: %q, %v", c.Buffered(), err)
		}
		c.Discard(1)
	}
}
