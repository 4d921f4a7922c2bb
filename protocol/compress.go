package protocol

import "errors"

// Compression says how a stream is compressed. The zero value means not at all.
type Compression struct {
	Algorithm CompressionAlgorithm
	Level     int // for Zstd, 1 to 22, chosen by the client; else 0
}

// CompressionAlgorithm is the algorithm for the payload of compressed frames.
type CompressionAlgorithm uint8

// The algorithms of MySQL 8.0.18 and later. MariaDB has zlib only.
const (
	Uncompressed CompressionAlgorithm = iota
	Zlib
	Zstd
)

// A compressed frame's header: three bytes of payload length, one of frame number, three of the
// length after unpacking. The last is 0 if the payload is not packed
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression_packet.html).
const frameHeaderSize = 7

// minCompressLength is the length from which data are compressed, as in the servers
// (MIN_COMPRESS_LENGTH).
const minCompressLength = 50

// Reasons why a compressed stream cannot be read further. Both servers then close the connection.
// For the first they send ER_NET_PACKETS_OUT_OF_ORDER before that.
var (
	ErrFrameOrder = errors.New("compressed frame out of order")
	ErrFrame      = errors.New("malformed compressed frame")
)

// frames is the layer of compressed frames under a Conn to a client. Before FullDuplex one
// goroutine uses both directions.
type frames struct {
	numbers frameNumbers
	in      frameReader
	out     frameWriter
}

// frameNumbers are the numbers of frames in both directions. The frames of an answer go on from the
// client's last one.
type frameNumbers struct {
	in       uint8 // of the client's last frame
	out      uint8 // of the next frame to the client
	received bool  // a frame of the client has come since the last packet to it
	duplex   bool  // each direction has its own goroutine and must not look at the other
}

// carrier is what carries frames: the Conn. Its buffer is for what is unpacked.
type carrier interface {
	readBuffer
	readRaw(to readBuffer) (int, error)
	writeRaw(b []byte) (int, error)
	IsTLS() bool
}

// StartCompression makes the rest of the stream compressed frames, in both directions. The peer is
// the client. Call it once, after the last OK of a login. With Uncompressed it does nothing.
func (c *Conn) StartCompression(how Compression) error {
	if how.Algorithm == Uncompressed {
		return nil
	}
	if err := c.Flush(); err != nil {
		return err
	}
	if c.r < c.w { // the client has sent more without waiting for the OK
		c.ahead = append(append([]byte(nil), c.Buffered()...), c.ahead...)
		c.r = c.w
	}
	c.give()
	f := &frames{numbers: frameNumbers{in: firstFrame}}
	f.numbers.in-- // the first frame follows this number
	f.in = frameReader{carrier: c, numbers: &f.numbers, algorithm: how.Algorithm}
	f.out = frameWriter{carrier: c, numbers: &f.numbers, compress: compressor(how), prev: 1} // an answer starts with 1
	c.frames = f
	return nil
}

// firstFrame is the number of a command's first frame.
const firstFrame = 0

// isNext reports whether a client's frame may have this number. Within a packet the number must
// follow the frame before. Between packets a new command starts at 0, and a dialogue goes on from
// the proxy's last frame.
func (f *frameReader) isNext(num uint8) bool {
	if f.numbers.duplex || num == f.numbers.in+1 {
		return true
	}
	return f.packets.between() && (num == firstFrame || num == f.numbers.out)
}

// part makes the two directions independent. From now on all writes answer what was read last.
func (f *frames) part() {
	f.numbers.duplex, f.numbers.received, f.numbers.out = true, false, f.numbers.in+1
	f.out.prev, f.out.shift = 0, 0
}

// packetCursor finds packet borders in a stream that comes in pieces.
type packetCursor struct {
	header    [HeaderSize]byte
	have      int // bytes of an incomplete header
	remaining int // bytes still to come of the payload
}

// between reports whether the next byte begins a packet.
func (p *packetCursor) between() bool { return p.remaining == 0 && p.have == 0 }

func (p *packetCursor) skip(b []byte) {
	for len(b) > 0 {
		if n := min(p.remaining, len(b)); n > 0 {
			p.remaining -= n
			b = b[n:]
			continue
		}
		n := copy(p.header[p.have:], b)
		p.have += n
		b = b[n:]
		if p.have == HeaderSize {
			p.have, p.remaining = 0, PayloadLen(p.header[:])
		}
	}
}
