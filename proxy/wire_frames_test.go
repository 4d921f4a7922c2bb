package proxy_test

import (
	"encoding/binary"
	"fmt"
	"io"

	"seqproxy/protocol"
	"seqproxy/test/mysqltest"
)

// packingLogin makes a login ask for compression, which protocol.ClientLogin does not do.
type packingLogin struct {
	*protocol.Conn
	flags protocol.Capability
	level byte
}

func newPackingLogin(c *protocol.Conn, l wireLogin) *packingLogin {
	p := &packingLogin{Conn: c, flags: l.Flags, level: 3}
	switch l.Packing {
	case mysqltest.Zlib:
		p.flags |= protocol.Compress
	case mysqltest.Zstd:
		p.flags |= protocol.CompressZstd
	}
	if l.ZstdLevel != nil {
		p.level = *l.ZstdLevel
	}
	return p
}

func (c *packingLogin) WritePacket(payload []byte) error {
	const sslRequest = 32
	if len(payload) > sslRequest && c.flags != 0 {
		binary.LittleEndian.PutUint32(payload, binary.LittleEndian.Uint32(payload)|uint32(c.flags))
		if c.flags.Has(protocol.CompressZstd) {
			payload = append(payload, c.level)
		}
		c.flags = 0
	}
	return c.Conn.WritePacket(payload)
}

// wireFrames is the compressed protocol of a wire, as strict about the numbers of frames as
// libmysqlclient.
type wireFrames struct {
	w   *wire
	how mysqltest.Packing

	next   uint8 // number of the next frame, in either direction
	plain  []byte
	seen   int // frames read
	packed int // of them, not stored

	// The first packet of an answer has the number of its frame. plain numbers it as without
	// compression: after the last packet written.
	begins  bool   // the next packet begins an answer
	alone   bool   // the answer to the one command that was written last
	written uint8  // number of the last packet written
	shift   uint8  // difference added to the numbers
	header  []byte // of a packet whose header is incomplete
	rest    int    // bytes of a packet still to come
}

// firstFrame is how much of a command libmysqlclient puts into its first frame.
const firstFrame = 16 << 10

// write sends packets: each command in frames of its own, numbered from 0.
func (f *wireFrames) write(b []byte) (int, error) {
	var out []byte
	commands := 0
	for rest := b; len(rest) > 0; {
		n := len(rest)
		if len(rest) > protocol.HeaderSize && rest[3] == 0 {
			// This is a command, and more may follow.
			f.next, n = 0, 0
			commands++
			for continued := true; continued && len(rest)-n >= protocol.HeaderSize; {
				size := protocol.PayloadLen(rest[n:])
				continued = size == protocol.MaxFragment
				f.written = rest[n+3]
				n += protocol.HeaderSize + size
			}
			n = min(n, len(rest))
		}
		if rest[3] != 0 { // a file
			for part := rest; len(part) > 0; part = part[protocol.HeaderSize+protocol.PayloadLen(part):] {
				f.written = part[3]
			}
		}
		f.begins, f.alone = true, commands <= 1
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
	// 1: an answer to a command before the last one; 0: an unrequested packet.
	if frame.Num != f.next && frame.Num > 1 {
		return fmt.Errorf("frame number %d, want %d", frame.Num, f.next)
	}
	f.next = frame.Num + 1
	for b := frame.Plain; len(b) > 0; {
		if n := min(f.rest, len(b)); n > 0 {
			f.plain = append(f.plain, b[:n]...)
			f.rest -= n
			b = b[n:]
			continue
		}
		n := min(protocol.HeaderSize-len(f.header), len(b))
		f.header = append(f.header, b[:n]...)
		b = b[n:]
		if len(f.header) < protocol.HeaderSize {
			break
		}
		num := f.header[3]
		if f.begins {
			f.begins, f.shift = false, 0
			if f.alone {
				f.shift = num - (f.written + 1)
				if num != frame.Num {
					return fmt.Errorf("packet number %d in frame number %d", num, frame.Num)
				}
			}
		}
		f.header[3] = num - f.shift
		f.plain = append(f.plain, f.header...)
		f.rest, f.header = protocol.PayloadLen(f.header), f.header[:0]
	}
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

// A wire writes and reads through its frames, if it has any.

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
