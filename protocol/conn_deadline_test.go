package protocol

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// slowly is a connection that writes in small pieces, and calls before ahead of each.
type slowly struct {
	net.Conn
	piece  int
	before func()
}

func (s *slowly) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		s.before()
		var k int
		k, err = s.Conn.Write(b[n:min(len(b), n+s.piece)])
		n += k
	}
	return n, err
}

// A deadline may end a read anywhere in the stream: within a packet, a TLS record, a frame.
func TestAReadGoesOnWhereADeadlineHasEndedIt(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for _, kind := range []string{"plain", "TLS"} {
			t.Run(network+" "+kind, func(t *testing.T) {
				l := newLink(t, network, 0, 1<<20, false)
				slow := &slowly{l.peer, 1500, func() {}}
				l.peer = slow
				if kind == "TLS" {
					l.overTLS(t)
				}
				want := randomBytes(200_000)
				ended, sent := make(chan struct{}), make(chan error, 1)
				defer close(ended)
				slow.before = func() { <-ended } // a deadline ends a read before each piece
				go func() {
					_, err := l.peer.Write(want)
					sent <- err
				}()
				for len(l.Buffered()) < len(want) {
					if err := l.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
						t.Fatal(err)
					}
					if err := l.Fill(); errors.Is(err, os.ErrDeadlineExceeded) {
						select {
						case ended <- struct{}{}:
						default:
						}
					} else if err != nil {
						t.Fatalf("after %d bytes: %v", len(l.Buffered()), err)
					}
				}
				if err := <-sent; err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(l.Buffered(), want) {
					t.Error("the bytes are others than were sent")
				}
			})
		}
	}
}

// Reading ahead ends by a deadline, too. That must not replace the caller's deadline.
func TestADeadlineOutlastsAWriteThatReadsAhead(t *testing.T) {
	everyLink(t, 0, 1<<20, true, func(t *testing.T, l *link) {
		for name, at := range map[string]func() error{
			"set before the write": func() error { return l.SetReadDeadline(time.Now().Add(10 * readAheadDelay)) },
			"set during the write": func() error {
				// the read shows it
				time.AfterFunc(2*readAheadDelay, func() { _ = l.SetReadDeadline(time.Unix(1, 0)) })
				return nil
			},
		} {
			if err := at(); err != nil {
				t.Fatal(err)
			}
			const size = 4 << 20
			got := make(chan error, 1)
			time.AfterFunc(4*readAheadDelay, func() {
				_, err := io.CopyN(io.Discard, l.peer, size)
				got <- err
			})
			_, err := l.Write(make([]byte, size))
			if err = errors.Join(err, <-got); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			within(t, 10*time.Second, name, func() {
				if err := l.Fill(); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: the read ends with %v, want its deadline's error", name, err)
				}
			})
			if err := l.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
