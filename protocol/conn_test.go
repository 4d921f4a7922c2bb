package protocol

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// link is a Conn under test and its peer's plain end.
type link struct {
	*Conn
	peer net.Conn // with TLS a *tls.Conn
	raw  net.Conn // what peer runs over
}

// newLink connects over "tcp" or "unix". The Conn is the server. small makes the kernel's buffers
// small, so that writes block soon.
func newLink(t testing.TB, network string, stall time.Duration, readAhead int, small bool) *link {
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
	peer, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if small {
		for _, c := range []net.Conn{peer, nc} {
			b := c.(interface {
				SetReadBuffer(int) error
				SetWriteBuffer(int) error
			})
			if err := errors.Join(b.SetReadBuffer(128<<10), b.SetWriteBuffer(128<<10)); err != nil {
				t.Fatal(err)
			}
		}
	}
	conn, err := NewConn(nc, stall, readAhead)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := peer.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &link{Conn: conn, peer: peer, raw: peer}
}

// overTLS shakes hands on both ends.
func (l *link) overTLS(t testing.TB) *link {
	t.Helper()
	peer := tls.Client(l.peer, clientTLS())
	done := make(chan error, 1)
	go func() { done <- peer.Handshake() }()
	if err := l.StartTLSServer(serverTLS()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.peer = peer
	return l
}

// everyLink runs a test on each kind of connection.
func everyLink(t *testing.T, stall time.Duration, readAhead int, small bool, test func(t *testing.T, l *link)) {
	t.Helper()
	for _, network := range []string{"tcp", "unix", "TLS"} {
		t.Run(network, func(t *testing.T) {
			if network == "TLS" {
				test(t, newLink(t, "tcp", stall, readAhead, small).overTLS(t))
				return
			}
			test(t, newLink(t, network, stall, readAhead, small))
		})
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b) // this never fails
	return b
}

// within fails the test if f takes longer than limit.
func within(t testing.TB, limit time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s takes longer than %v", what, limit)
	}
}

func TestBytesComeInTheirOrder(t *testing.T) {
	everyLink(t, 0, 0, false, func(t *testing.T, l *link) {
		want := randomBytes(2 << 20)
		sent := make(chan error, 1)
		go func() {
			random := rand.New(rand.NewPCG(1, 2))
			for b := want; len(b) > 0; {
				n := min(len(b), 1+random.IntN(100_000))
				if _, err := l.peer.Write(b[:n]); err != nil {
					sent <- err
					return
				}
				b = b[n:]
			}
			sent <- l.peer.Close()
		}()
		random := rand.New(rand.NewPCG(3, 4))
		at := 0
		for {
			err := l.Fill()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			b := l.Buffered()
			if !bytes.Equal(b, want[at:min(at+len(b), len(want))]) {
				t.Fatalf("%d bytes from %d on are not what was sent", len(b), at)
			}
			n := random.IntN(len(b) + 1)
			if len(b) > 200_000 || random.IntN(4) == 0 {
				n = len(b)
			}
			l.Discard(n)
			at += n
			l.Release()
			if n == len(b) && l.buf != nil {
				t.Fatal("an empty buffer is kept after Release")
			}
		}
		if got := at + len(l.Buffered()); got != len(want) {
			t.Errorf("got %d bytes, want %d", got, len(want))
		}
		if err := <-sent; err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestAConnThatWaitsHoldsNoBuffer(t *testing.T) {
	everyLink(t, 0, 0, false, func(t *testing.T, l *link) {
		for range 2 {
			if _, err := l.peer.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			for len(l.Buffered()) < 5 {
				if err := l.Fill(); err != nil {
					t.Fatal(err)
				}
			}
			l.Discard(5)
			if err := l.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if err := l.Fill(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("got %v, want the deadline's error", err)
			}
			if l.buf != nil && !l.IsTLS() {
				t.Errorf("the waiting connection has a buffer of %d bytes, want none", len(l.buf))
			}
			if err := l.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestWhatIsBufferedSurvivesAWait(t *testing.T) {
	everyLink(t, 0, 0, false, func(t *testing.T, l *link) {
		if _, err := l.peer.Write([]byte("part")); err != nil {
			t.Fatal(err)
		}
		for len(l.Buffered()) < 4 {
			if err := l.Fill(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if err := l.Fill(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v, want the deadline's error", err)
		}
		l.Release()
		if err := l.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.peer.Write([]byte("ial")); err != nil {
			t.Fatal(err)
		}
		for len(l.Buffered()) < 7 {
			if err := l.Fill(); err != nil {
				t.Fatal(err)
			}
		}
		if got := string(l.Buffered()); got != "partial" {
			t.Errorf("got %q, want %q", got, "partial")
		}
	})
}

func TestTheBufferGrowsForALongPacketAndShrinksBehindIt(t *testing.T) {
	everyLink(t, 0, 0, false, func(t *testing.T, l *link) {
		want := randomBytes(300_000)
		sent := make(chan error, 1)
		go func() {
			b, _ := AppendPacket(nil, want, 7)
			_, err := l.peer.Write(b)
			sent <- err
		}()
		got, err := l.ReadPacket(len(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes and %v, want the %d that were sent", len(got), err, len(want))
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if len(l.buf) > 4*len(want) {
			t.Errorf("the buffer has %d bytes for a packet of %d", len(l.buf), len(want))
		}
		l.Release()
		if _, err := l.peer.Write([]byte("short")); err != nil {
			t.Fatal(err)
		}
		if err := l.Fill(); err != nil {
			t.Fatal(err)
		}
		if len(l.buf) != BufferSize {
			t.Errorf("afterwards the buffer has %d bytes, want %d", len(l.buf), BufferSize)
		}
	})
}

func TestPacketsAreReadWithTheirNumbersAndLimits(t *testing.T) {
	everyLink(t, 0, 0, false, func(t *testing.T, l *link) {
		var b []byte
		for i, p := range []string{"", "one", "longer than the limit"} {
			b, _ = AppendPacket(b, []byte(p), uint8(254+i))
		}
		if _, err := l.peer.Write(b); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", "one"} {
			got, err := l.ReadPacket(3)
			if err != nil || string(got) != want {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
			if got, want := l.PacketNum(), uint8(255+i); got != want {
				t.Errorf("next number: got %d, want %d", got, want)
			}
		}
		if _, err := l.ReadPacket(3); !errors.Is(err, ErrMalformed) {
			t.Errorf("longer than the limit: got %v, want ErrMalformed", err)
		}

		// Numbers go on from the last packet read, and wrap.
		l.SetPacketNum(255)
		for range 2 {
			if err := l.WritePacket([]byte("abc")); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 14)
		if _, err := io.ReadFull(l.peer, got); err != nil || string(got) != "\x03\x00\x00\xffabc\x03\x00\x00\x00abc" {
			t.Errorf("got %q, %v", got, err)
		}
		if err := l.WritePacket(make([]byte, MaxFragment)); err == nil {
			t.Error("a packet of 16 MB is written as one")
		}
	})
}

func TestPacketsWaitForTheNextWriteOrRead(t *testing.T) {
	for name, push := range map[string]func(l *link) error{
		"Flush": func(l *link) error { return l.Flush() },
		"Write": func(l *link) error {
			n, err := l.Write([]byte("more"))
			if n != 4 {
				err = fmt.Errorf("Write: got %d, %w, want 4", n, err)
			}
			return err
		},
		"Fill": func(l *link) error {
			if err := l.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
				return err
			}
			if err := l.Fill(); !errors.Is(err, os.ErrDeadlineExceeded) {
				return fmt.Errorf("Fill: got %w, want a deadline's error", err)
			}
			return nil
		},
	} {
		everyLink(t, 0, 0, false, func(t *testing.T, l *link) {
			want := "\x03\x00\x00\x00abc\x00\x00\x00\x01"
			if name == "Write" {
				want += "more"
			}
			for _, p := range []string{"abc", ""} {
				if err := l.WritePacket([]byte(p)); err != nil {
					t.Fatal(err)
				}
			}
			if err := push(l); err != nil {
				t.Fatal(err)
			}
			if err := l.Flush(); err != nil { // nothing is left
				t.Fatal(err)
			}
			l.Close()
			got, err := io.ReadAll(l.peer)
			if err != nil || string(got) != want {
				t.Errorf("%s: the peer got %q, %v, want %q", name, got, err, want)
			}
		})
	}
}

func TestDropForgetsWhatIsBuffered(t *testing.T) {
	everyLink(t, 0, 0, false, func(t *testing.T, l *link) {
		l.Drop() // nothing yet
		if _, err := l.peer.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		if err := l.Fill(); err != nil {
			t.Fatal(err)
		}
		l.ahead = []byte("def")
		l.Drop()
		if l.buf != nil || l.ahead != nil || len(l.Buffered()) != 0 {
			t.Errorf("got %q and %q in the buffers, want nothing", l.buf, l.ahead)
		}
	})
}

func TestAPacketOf16MBIsRefusedWhateverTheLimit(t *testing.T) {
	l := newLink(t, "unix", 0, 0, false)
	if _, err := l.peer.Write([]byte{0xff, 0xff, 0xff, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReadPacket(1 << 30); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v, want ErrMalformed", err)
	}
}

func TestTheEndOfTheStreamInsideAPacketIsUnexpected(t *testing.T) {
	for sent, want := range map[string]error{
		"":                    io.EOF,
		"\x03\x00":            io.ErrUnexpectedEOF,
		"\x03\x00\x00\x00":    io.ErrUnexpectedEOF,
		"\x03\x00\x00\x00ab":  io.ErrUnexpectedEOF,
		"\x03\x00\x00\x00abc": nil,
	} {
		everyLink(t, 0, 0, false, func(t *testing.T, l *link) {
			if _, err := l.peer.Write([]byte(sent)); err != nil {
				t.Fatal(err)
			}
			if err := l.peer.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := l.ReadPacket(100); !errors.Is(err, want) {
				t.Errorf("after %q: got %v, want %v", sent, err, want)
			}
		})
	}
}

func TestDiscardOfMoreThanIsBufferedPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	newLink(t, "unix", 0, 0, false).Discard(1)
}

func TestAConnectionWithoutASocketIsRefused(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	if _, err := NewConn(a, 0, 0); err == nil {
		t.Fatal("a pipe is accepted")
	}
	if _, err := a.Write([]byte{1}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("NewConn did not close a connection that it refused: %v", err)
	}
}

func TestAWriteThatStallsFails(t *testing.T) {
	everyLink(t, 50*time.Millisecond, 0, true, func(t *testing.T, l *link) {
		b := make([]byte, 1<<20)
		within(t, 20*time.Second, "a write to a peer that does not read", func() {
			for {
				if _, err := l.Write(b); err != nil {
					if !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("got %v, want a deadline's error", err)
					}
					return
				}
			}
		})
	})
}

func TestAPeerThatReadsSlowlyIsNotStalled(t *testing.T) {
	const stall = 5 * time.Second // much longer than it takes to read what makes room for a write
	everyLink(t, stall, 0, true, func(t *testing.T, l *link) {
		t.Parallel()
		want := randomBytes(10 << 20)
		got := make(chan []byte, 1)
		start := time.Now()
		go func() {
			b := make([]byte, len(want))
			at := 0
			for at < len(b) {
				if time.Since(start) < stall*3/2 {
					time.Sleep(30 * time.Millisecond)
				}
				n, err := l.peer.Read(b[at:min(len(b), at+32<<10)])
				at += n
				if err != nil {
					break
				}
			}
			got <- b[:at]
		}()
		if n, err := l.Write(want); n != len(want) || err != nil {
			t.Errorf("got %d, %v, want all %d bytes", n, err, len(want))
			l.Close()
		} else if took := time.Since(start); took < stall {
			t.Errorf("the write took %v, which shows nothing", took)
		}
		if b := <-got; !bytes.Equal(b, want) {
			t.Errorf("the peer got %d bytes, want the %d that were written", len(b), len(want))
		}
	})
}

// A client that sends much before it reads must not wait for a proxy that waits for it.
func TestAPeerThatWritesBeforeItReadsDoesNotLockUp(t *testing.T) {
	const size = 3 << 20
	everyLink(t, 10*time.Second, size, true, func(t *testing.T, l *link) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		ours, theirs := randomBytes(size), randomBytes(size+1)
		type read struct {
			b   []byte
			err error
		}
		peer := make(chan read, 1)
		go func() {
			if _, err := l.peer.Write(theirs); err != nil {
				peer <- read{err: err}
				return
			}
			b := make([]byte, size)
			_, err := io.ReadFull(l.peer, b)
			peer <- read{b, err}
		}()
		// The buffer has data already: reading ahead appends to it.
		if err := l.Fill(); err != nil {
			t.Fatal(err)
		}
		if n, err := l.Write(ours); n != size || err != nil {
			t.Fatalf("got %d, %v, want all %d bytes written", n, err, size)
		}
		if got := <-peer; got.err != nil || !bytes.Equal(got.b, ours) {
			t.Fatalf("the peer got %d bytes, %v, want what was written", len(got.b), got.err)
		}
		var got []byte
		for len(got) < len(theirs) {
			got = append(got, l.Buffered()...)
			l.Discard(len(l.Buffered()))
			if len(got) == len(theirs) {
				break
			}
			if err := l.Fill(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, theirs) {
			t.Error("the bytes of the peer are not in order")
		}
		if l.ahead != nil {
			t.Errorf("%d bytes read ahead are kept", len(l.ahead))
		}
	})
}

func TestReadAheadIsBounded(t *testing.T) {
	const limit = 100_000
	everyLink(t, 300*time.Millisecond, limit, true, func(t *testing.T, l *link) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		done := make(chan error, 1)
		go func() {
			_, err := l.peer.Write(make([]byte, 3<<20))
			done <- err
		}()
		if _, err := l.Write(make([]byte, 3<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want the stall's error", err)
		}
		if got := len(l.ahead); got != limit {
			t.Errorf("read ahead: got %d bytes, want %d", got, limit)
		}
		l.raw.Close()
		if err := <-done; err == nil {
			t.Error("the peer could write all")
		}
	})
}

// TLS has to send an alert for a broken record, after the write that is blocked. That write must
// not wait for the alert.
func TestABrokenTLSRecordDuringABlockedWriteDoesNotLockUp(t *testing.T) {
	l := newLink(t, "tcp", 300*time.Millisecond, 1<<20, true).overTLS(t)
	go func() {
		time.Sleep(3 * readAheadDelay)
		// The other side sees whether the bytes came.
		_, _ = l.raw.Write([]byte("\x17\x03\x03\x00\x20this is no record of this stream"))
	}()
	var err error
	within(t, 10*time.Second, "a blocked write", func() {
		for err == nil {
			_, err = l.Write(make([]byte, 1<<20))
		}
	})
	within(t, 10*time.Second, "the read behind it", func() {
		for err = nil; err == nil; l.Discard(len(l.Buffered())) {
			err = l.Fill()
		}
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want the broken record's error", err)
	}
}

func TestCloseEndsReadsAndWritesOfOthers(t *testing.T) {
	everyLink(t, 0, 1<<20, true, func(t *testing.T, l *link) {
		time.AfterFunc(50*time.Millisecond, func() { l.Close() })
		within(t, 10*time.Second, "a read", func() {
			if err := l.Fill(); err == nil {
				t.Error("the read succeeds")
			}
		})
	})
	everyLink(t, 0, 1<<20, true, func(t *testing.T, l *link) {
		time.AfterFunc(100*time.Millisecond, func() { l.Close() })
		within(t, 10*time.Second, "a write", func() {
			for {
				if _, err := l.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		})
	})
}

// A peer that does not read must not delay Close.
func TestCloseDoesNotWait(t *testing.T) {
	everyLink(t, time.Minute, 0, true, func(t *testing.T, l *link) {
		l.sock.stall = 10 * time.Millisecond
		for {
			if _, err := l.Write(make([]byte, 1<<20)); err != nil {
				break
			}
		}
		for n := 1; n > 0; { // fills all buffers, because an alert is short
			if err := l.sock.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			n, _ = l.sock.Conn.Write([]byte("some more"))
		}
		if err := l.sock.SetWriteDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		l.sock.stall = time.Minute
		within(t, 20*time.Second, "Close", func() { l.Close() })
	})
}

// prefixWriter sends a prefix before its first bytes, in one write with them.
type prefixWriter struct {
	net.Conn
	prefix []byte
}

func (p *prefixWriter) Write(b []byte) (int, error) {
	n := len(p.prefix)
	k, err := p.Conn.Write(append(p.prefix, b...))
	p.prefix = nil
	return max(k-n, 0), err
}

func TestAClientMaySendItsTLSHelloWithTheRequest(t *testing.T) {
	l := newLink(t, "tcp", 0, 0, false)
	request, _ := AppendPacket(nil, []byte("SSL request"), 1)
	peer := tls.Client(&prefixWriter{l.raw, request}, clientTLS())
	done := make(chan error, 1)
	go func() {
		_, err := peer.Write([]byte("\x03\x00\x00\x02abc"))
		done <- err
	}()
	for len(l.Buffered()) <= len(request) {
		if err := l.Fill(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := l.ReadPacket(100); err != nil || string(got) != "SSL request" {
		t.Fatalf("got %q, %v", got, err)
	}
	if err := l.StartTLSServer(serverTLS()); err != nil {
		t.Fatal(err)
	}
	if got, err := l.ReadPacket(100); err != nil || string(got) != "abc" || !l.IsTLS() || l.PacketNum() != 3 {
		t.Errorf("got %q, %v, next number %d", got, err, l.PacketNum())
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// An attacker in between may add packets in clear after the request. They must not count as the
// client's.
func TestAPacketInClearBehindTheTLSRequestIsNotTaken(t *testing.T) {
	l := newLink(t, "tcp", 0, 0, false)
	b, _ := AppendPacket(nil, []byte("SSL request"), 1)
	b, _ = AppendPacket(b, []byte("a login in clear"), 2)
	if _, err := l.raw.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReadPacket(100); err != nil {
		t.Fatal(err)
	}
	if err := l.StartTLSServer(serverTLS()); err == nil {
		t.Error("the handshake succeeds")
	}
	if got := l.Buffered(); len(got) != 0 || l.IsTLS() {
		t.Errorf("got %q to be read, IsTLS %v", got, l.IsTLS())
	}
}

// echo sends back what comes, until the connection ends.
func echo(c net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

func roundTrip(t testing.TB, l *link, b []byte) {
	if _, err := l.Write(b); err != nil {
		t.Fatal(err)
	}
	for len(l.Buffered()) < len(b) {
		if err := l.Fill(); err != nil {
			t.Fatal(err)
		}
	}
	l.Discard(len(b))
	l.Release()
}

func TestARoundTripAllocatesNothing(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			l := newLink(t, network, time.Minute, 1<<20, false)
			done := make(chan struct{})
			go func() {
				defer close(done)
				echo(l.peer)
			}()
			b := make([]byte, 100)
			// A garbage collection may empty the pool meanwhile: allow less than one allocation.
			if got := testing.AllocsPerRun(1000, func() { roundTrip(t, l, b) }); got >= 1 {
				t.Errorf("got %v allocations, want 0", got)
			}
			l.Close()
			<-done
		})
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, network := range []string{"tcp", "unix", "TLS"} {
		for _, size := range []int{32, 16 << 10} {
			b.Run(fmt.Sprintf("%s/%d", network, size), func(b *testing.B) {
				var l *link
				if network == "TLS" {
					l = newLink(b, "tcp", time.Minute, 1<<20, false).overTLS(b)
				} else {
					l = newLink(b, network, time.Minute, 1<<20, false)
				}
				if err := l.raw.SetDeadline(time.Time{}); err != nil {
					b.Fatal(err)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					echo(l.peer)
				}()
				message := make([]byte, size)
				b.ReportAllocs()
				for b.Loop() {
					roundTrip(b, l, message)
				}
				l.Close()
				<-done
			})
		}
	}
}
