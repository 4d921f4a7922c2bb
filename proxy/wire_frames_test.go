package proxy_test

import (
	"encoding/binary"
	"fmt"
	"io"

	"seqproxy/internal/mysqltest"
	"seqproxy/protocol"
)

// packingLogin makes a login ask for compression, which protocol.ClientLogin does not.
type packingLogin struct {
	*protocol.Conn
	how   mysqltest.Packing
	level byte // of zstd; 0 is 3
	done  bool
}

func (c *packingLogin) WritePacket(payload []byte) error {
	const sslRequest = 32
	if !c.done && len(payload) > sslRequest && c.how != "" {
		c.done = true
		flags := protocol.Capability(binary.LittleEndian.Uint32(payload))
		if c.how == mysqltest.Zlib {
			flags |= protocol.Compress
		} else {
			flags |= protocol.CompressZstd
			payload = append(payload, max(c.level, 3))
		}
		binary.LittleEndian.PutUint32(payload, uint32(flags))
	}
	return c.Conn.WritePacket(payload)
}

// wireFrames is the compressed protocol of a wire, as strict about the numbers of
// frames as libmysqlclient.
type wireFrames struct {
	w   *wire
	how mysqltest.Packing

	next   uint8 // number of the next frame, either way
	plain  []byte
	seen   int // frames read
	packed int // of them, not stored
}

// firstFrame is how much of a command libmysqlclient puts into its first frame.
const firstFrame = 16 << 10

// write sends packets: each command in frames of its own, numbered from 0.
func (f *wireFrames) write(b []byte) (int, error) {
	var out []byte
	for rest := b; len(rest) > 0; {
		n := len(rest)
		if len(rest) > protocol.HeaderSize && rest[3] == 0 { // a command: what follows may be another
			f.next, n = 0, 0
			for continued := true; continued && len(rest)-n >= protocol.HeaderSize; {
				size := protocol.PayloadLen(rest[n:])
				continued = size == protocol.MaxFragment
				n += protocol.HeaderSize + size
			}
			n = min(n, len(rest))
		}
		for part := rest[:n]; len(part) > 0; {
			size := min(len(part), protocol.MaxFragment)
			if f.next == 0 {
				size = min(size, firstFrame)
			}
			frame := mysqltest.Frame{Num: f.next, Plain: part[:size]}
			if size >= 50 {
				frame.Packing = f.how
			}
			out = frame.Append(out)
			f.next++
			part = part[size:]
		}
		rest = rest[n:]
	}
	if _, err := f.w.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *wireFrames) fill() error {
	frame, err := mysqltest.ReadFrame(byteStream{f.w.Conn}, f.how)
	if err != nil {
		return err
	}
	if frame.Num != f.next && frame.Num != 1 { // 1: an answer to a command that was sent before the last
		return fmt.Errorf("frame number %d, want %d", frame.Num, f.next)
	}
	f.next = frame.Num + 1
	f.plain = append(f.plain, frame.Plain...)
	f.seen++
	if frame.Packing != mysqltest.Stored {
		f.packed++
	}
	return nil
}

// byteStream reads a Conn as a stream.
type byteStream struct{ *protocol.Conn }

func (s byteStream) Read(b []byte) (int, error) {
	for len(s.Buffered()) == 0 {
		if err := s.Fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.Buffered())
	s.Discard(n)
	return n, nil
}

var _ io.Reader = byteStream{}

// What a wire writes and reads goes through its frames, if it has any.

func (w *wire) Write(b []byte) (int, error) {
	if w.frames != nil {
		return w.frames.write(b)
	}
	return w.Conn.Write(b)
}

func (w *wire) Fill() error {
	if w.frames != nil {
		return w.frames.fill()
	}
	return w.Conn.Fill()
}

func (w *wire) Buffered() []byte {
	if w.frames != nil {
		return w.frames.plain
	}
	return w.Conn.Buffered()
}

func (w *wire) Discard(n int) {
	if w.frames != nil {
		w.frames.plain = w.frames.plain[n:]
		return
	}
	w.Conn.Discard(n)
}
