package protocol

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"seqproxy/test/mysqltest"
)

// FuzzFrames reads arbitrary bytes as a client's compressed stream. The result must equal that of a
// reader of whole frames, up to the first invalid frame.
func FuzzFrames(f *testing.F) {
	command := packetOf("SELECT 'some text, some text, some text, some text, some text'")
	for zstd, how := range []mysqltest.Packing{mysqltest.Zlib, mysqltest.Zstd} {
		whole := mysqltest.Frame{Packing: how, Plain: command}.Append(nil)
		stored := mysqltest.Frame{Plain: command}.Append(nil)
		f.Add(zstd == 1, append(whole, stored...))
		f.Add(zstd == 1, append(bytes.Clone(stored[:20]), whole...))
		f.Add(zstd == 1, mysqltest.AppendRawFrame(nil, 0, 70000, mysqltest.Pack(how, make([]byte, 70000))))
		f.Add(zstd == 1, mysqltest.AppendRawFrame(nil, 0, 10, mysqltest.Pack(how, make([]byte, 100))))
	}
	ended := endedConn(f)
	f.Fuzz(func(t *testing.T, zstd bool, stream []byte) {
		how := mysqltest.Zlib
		if zstd {
			how = mysqltest.Zstd
		}
		c, err := NewConn(ended, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Drop()
		c.ahead = bytes.Clone(stream) // as data that came before; the connection ends after it
		if err := c.StartCompression(packings[how]); err != nil {
			t.Fatal(err)
		}
		var got []byte
		for {
			err = c.Fill()
			got = append(got, c.Buffered()...)
			c.Discard(len(c.Buffered()))
			if err != nil {
				break
			}
		}
		var want []byte
		var wantErr error
		for r := bytes.NewReader(stream); wantErr == nil; {
			var frame mysqltest.Frame
			if frame, wantErr = mysqltest.ReadFrame(r, how); wantErr == nil || frame.Packing == mysqltest.Stored {
				want = append(want, frame.Plain...)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if !errors.Is(wantErr, io.EOF) || !bytes.Equal(got, want) {
				t.Errorf("got %d bytes and the end, want %d bytes and %v", len(got), len(want), wantErr)
			}
		case errors.Is(err, ErrFrameOrder), errors.Is(err, ErrFrame), errors.Is(err, io.ErrUnexpectedEOF):
			// A large frame is passed on in pieces, before its end shows that it is invalid.
			if !bytes.HasPrefix(want, got[:min(len(got), len(want))]) {
				t.Errorf("%v: the bytes read differ from those sent", err)
			}
			if errors.Is(err, ErrFrame) && errors.Is(wantErr, io.EOF) {
				t.Errorf("%v, where nothing is wrong", err)
			}
		default:
			t.Errorf("got error %v", err)
		}
	})
}

// endedConn is a connection whose peer has closed it.
func endedConn(t testing.TB) net.Conn {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Close(fds[1])
	file := os.NewFile(uintptr(fds[0]), "ended")
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
