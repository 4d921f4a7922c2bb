package main

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// readerConn is a connection whose peer has sent everything already.
type readerConn struct {
	net.Conn
	r io.Reader
}

func (c readerConn) Read(p []byte) (int, error)  { return c.r.Read(p) }
func (c readerConn) Write(p []byte) (int, error) { return len(p), nil }

// answering returns a client that has sent a command and gets the given payloads, numbered from 1.
func answering(payloads ...string) *client {
	var stream strings.Builder
	for i, p := range payloads {
		stream.Write(packet(byte(i+1), []byte(p)))
	}
	return &client{net: readerConn{r: iotest.OneByteReader(strings.NewReader(stream.String()))}, buf: make([]byte, 256), next: 1}
}

const (
	definition = "\x03def\x00\x00\x00\x011\x00\x0c\x3f\x00\x01\x00\x00\x00\x03\x81\x00\x00\x00\x00"
	eof        = "\xfe\x00\x00\x02\x00"
)

func TestRightAnswerIsAccepted(t *testing.T) {
	c := answering("\x01", definition, eof, "\x011", eof)
	if err := c.expectText("1"); err != nil {
		t.Fatal(err)
	}
	if c.r != c.w {
		t.Errorf("got %d unread bytes, want none", c.w-c.r)
	}
}

func TestWrongAnswersAreNoticed(t *testing.T) {
	for name, c := range map[string]*client{
		"wrong value":      answering("\x01", definition, eof, "\x012", eof),
		"no row":           answering("\x01", definition, eof, eof),
		"two rows":         answering("\x01", definition, eof, "\x011", "\x011", eof),
		"two columns":      answering("\x02", definition, definition, eof, "\x011\x012", eof),
		"OK, no result":    answering("\x00\x00\x00\x02\x00\x00\x00"),
		"error":            answering("\xff\x15\x04#28000Access denied"),
		"error for a row":  answering("\x01", definition, eof, "\xff\x15\x04#28000Access denied"),
		"error at the end": answering("\x01", definition, eof, "\x011", "\xff\x15\x04#28000Access denied"),
		"NULL":             answering("\x01", definition, eof, "\xfb", eof),
		"no definition":    answering("\x01", eof, "\x011", eof),
		"warning":          answering("\x01", definition, eof, "\x011", "\xfe\x01\x00\x02\x00"),
		"cut":              answering("\x01", definition, eof, "\x011"),
		"too large":        answering("\x01", definition, eof, "\xfc\x2c\x01"+strings.Repeat("1", 300), eof),
	} {
		if err := c.expectText("1"); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestWrongPacketNumberIsNoticed(t *testing.T) {
	c := answering("\x01", definition, eof, "\x011", eof)
	c.next = 2
	if err := c.expectText("1"); err == nil || !strings.Contains(err.Error(), "packet number 1, want 2") {
		t.Errorf("got %v", err)
	}
}

func TestBytesBehindAnAnswerAreNoticedByTheNextCommand(t *testing.T) {
	c := answering("\x01", definition, eof, "\x011", eof)
	c.r, c.w = 0, 1
	if err := c.send(selectOnePacket); err == nil {
		t.Error("got no error")
	}
}

func TestReadingAnswersAllocatesNothing(t *testing.T) {
	var stream strings.Builder
	for i, p := range []string{"\x01", definition, eof, "\x011", eof} {
		stream.Write(packet(byte(i+1), []byte(p)))
	}
	source := strings.NewReader(stream.String())
	c := &client{net: readerConn{r: source}, buf: make([]byte, 256)}
	if n := testing.AllocsPerRun(100, func() {
		source.Reset(stream.String())
		if err := c.selectOne(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func TestClientOfASilentTargetGivesUpWhenTheContextEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := dial(ctx, l.Addr().String(), benchAccount, 1024); err == nil {
		t.Error("got no error")
	}
	if took := time.Since(began); took > ioTimeout/2 {
		t.Errorf("gave up after %v", took)
	}
}
