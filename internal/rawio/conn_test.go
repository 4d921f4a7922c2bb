package rawio

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns a connection of the net package, and its peer.
func pair(t *testing.T, network string) (conn, peer net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if conn, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if peer, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), peer.Close() })
	return conn, peer
}

// wrapped is pair with a Conn as own.
func wrapped(t *testing.T, network string) (conn *Conn, peer net.Conn) {
	t.Helper()
	nc, peer := pair(t, network)
	conn, err := newConn(nc)
	if err != nil {
		t.Fatal(err)
	}
	return conn, peer
}

// TestStreamsBothWaysAtOnce sends more than the kernel can buffer, in both directions, so that
// reads and writes have to wait.
func TestStreamsBothWaysAtOnce(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			conn, peer := wrapped(t, network)
			sent := make([]byte, 32<<20)
			_, _ = rand.Read(sent)
			var all sync.WaitGroup
			for _, way := range []struct{ from, to net.Conn }{{conn, peer}, {peer, conn}} {
				all.Go(func() {
					if n, err := way.from.Write(sent); n != len(sent) || err != nil {
						t.Errorf("%T wrote %d of %d: %v", way.from, n, len(sent), err)
					}
				})
				all.Go(func() {
					// the writer fills the kernel's buffers meanwhile
					time.Sleep(20 * time.Millisecond)
					got := make([]byte, len(sent))
					if _, err := io.ReadFull(way.to, got); err != nil {
						t.Errorf("%T read: %v", way.to, err)
					}
					if !bytes.Equal(got, sent) {
						t.Errorf("%T read other bytes than were sent", way.to)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestFailsLikeTheNetPackage does the same with a connection of the net package and with a Conn,
// and compares the errors.
func TestFailsLikeTheNetPackage(t *testing.T) {
	long := make([]byte, 32<<20)
	for name, do := range map[string]func(conn, peer net.Conn) (int, error){
		"read with a deadline": func(conn, _ net.Conn) (int, error) {
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			return conn.Read(make([]byte, 8))
		},
		"read after a deadline": func(conn, peer net.Conn) (int, error) {
			_ = conn.SetReadDeadline(time.Unix(1, 0))
			_, _ = peer.Write([]byte("x"))
			return conn.Read(make([]byte, 8))
		},
		"read nothing": func(conn, _ net.Conn) (int, error) { return conn.Read(nil) },
		"read at the end": func(conn, peer net.Conn) (int, error) {
			_ = peer.Close()
			return conn.Read(make([]byte, 8))
		},
		"read after a reset": func(conn, peer net.Conn) (int, error) {
			_ = peer.(*net.TCPConn).SetLinger(0)
			_ = peer.Close()
			return conn.Read(make([]byte, 8))
		},
		"read after close": func(conn, _ net.Conn) (int, error) {
			_ = conn.Close()
			return conn.Read(make([]byte, 8))
		},
		"read while it is closed": func(conn, _ net.Conn) (int, error) {
			time.AfterFunc(20*time.Millisecond, func() { _ = conn.Close() })
			return conn.Read(make([]byte, 8))
		},
		"write after close": func(conn, _ net.Conn) (int, error) {
			_ = conn.Close()
			return conn.Write([]byte("x"))
		},
		"write after a reset": func(conn, peer net.Conn) (int, error) {
			_ = peer.(*net.TCPConn).SetLinger(0)
			_ = peer.Close()
			_, _ = conn.Read(make([]byte, 8)) // waits for the reset
			return conn.Write([]byte("x"))
		},
		"write after a deadline": func(conn, _ net.Conn) (int, error) {
			_ = conn.SetWriteDeadline(time.Unix(1, 0))
			return conn.Write([]byte("x"))
		},
		"write with a deadline": func(conn, _ net.Conn) (int, error) {
			_ = conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			n, err := conn.Write(long) // the peer does not read
			if n == 0 || n == len(long) {
				return n, fmt.Errorf("wrote %d: %w", n, err)
			}
			return -1, err // the kernel may accept any amount
		},
	} {
		t.Run(name, func(t *testing.T) {
			type outcome struct {
				n       int
				err     error
				text    string
				timeout bool
			}
			run := func(wrap bool) (o outcome) {
				conn, peer := pair(t, "tcp")
				ends := strings.NewReplacer(conn.LocalAddr().String(), "OWN", conn.RemoteAddr().String(), "PEER")
				if wrap {
					c, err := newConn(conn)
					if err != nil {
						t.Fatal(err)
					}
					conn = c
				}
				o.n, o.err = do(conn, peer)
				o.text = ends.Replace(fmt.Sprint(o.err))
				var ne net.Error
				o.timeout = errors.As(o.err, &ne) && ne.Timeout()
				return o
			}
			want, got := run(false), run(true)
			if got.n != want.n || got.text != want.text || got.timeout != want.timeout {
				t.Errorf("%d, %q, timeout %v\nwant %d, %q, timeout %v", got.n, got.text, got.timeout, want.n, want.text, want.timeout)
			}
			for _, target := range []error{io.EOF, net.ErrClosed, os.ErrDeadlineExceeded, syscall.ECONNRESET, syscall.EPIPE} {
				if errors.Is(got.err, target) != errors.Is(want.err, target) {
					t.Errorf("is %v: %v, want %v", target, errors.Is(got.err, target), errors.Is(want.err, target))
				}
			}
		})
	}
}

func TestSilent(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(conn *Conn, peer net.Conn)
		want string
	}{
		"nothing came":            {func(*Conn, net.Conn) {}, ""},
		"after an old deadline":   {func(conn *Conn, _ net.Conn) { _ = conn.SetDeadline(time.Unix(1, 0)) }, ""},
		"the peer has closed":     {func(_ *Conn, peer net.Conn) { _ = peer.Close() }, "EOF"},
		"the peer has spoken":     {func(_ *Conn, peer net.Conn) { _, _ = peer.Write([]byte("x")) }, "unasked"},
		"this end is closed":      {func(conn *Conn, _ net.Conn) { _ = conn.Close() }, "use of closed network connection"},
		"the peer has reset":      {reset, "connection reset by peer"},
		"all that came was read":  {answered, ""},
		"what came was read, end": {func(conn *Conn, peer net.Conn) { answered(conn, peer); _ = peer.Close() }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, peer := wrapped(t, "tcp")
			test.do(conn, peer)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for { // the peer's action arrives after a moment
				err := conn.Silent()
				if err != nil && test.want != "" && strings.Contains(err.Error(), test.want) || err == nil && test.want == "" {
					return
				}
				if err != nil || ctx.Err() != nil {
					t.Fatalf("got %v, want %q", err, test.want)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

func reset(_ *Conn, peer net.Conn) {
	_ = peer.(*net.TCPConn).SetLinger(0)
	_ = peer.Close()
}

// answered lets the peer send something and reads it.
func answered(conn *Conn, peer net.Conn) {
	_, _ = peer.Write([]byte("x"))
	_, _ = conn.Read(make([]byte, 8))
}

func TestReadingAndWritingAllocatesNothing(t *testing.T) {
	conn, far := wrapped(t, "tcp")
	peer, err := newConn(far)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(peer, b); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a write and its read allocate %v times", n)
	}
}

func TestAConnectionWithoutASocketIsRefused(t *testing.T) {
	conn, peer := net.Pipe()
	defer func() { _, _ = conn.Close(), peer.Close() }()
	if _, err := newConn(conn); err == nil || !strings.Contains(err.Error(), "*net.pipe") {
		t.Error(err)
	}
}

func TestAConnBehavesAsThoseOfTheNetPackage(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for name, swap := range map[string]bool{"": false, " as peer": true} {
			t.Run(network+name, func(t *testing.T) {
				nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
					c1, c2 = wrapped(t, network)
					if swap {
						c1, c2 = c2, c1
					}
					return c1, c2, func() { c1.Close(); c2.Close() }, nil
				})
			})
		}
	}
}
