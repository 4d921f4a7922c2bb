package protocol

import "errors"

// Compression says how a stream is compressed; the zero value is not at all.
type Compression struct {
	Algorithm CompressionAlgorithm
	Level     int // of Zstd, 1 to 22, as the client asked; 0 for the others
}

// CompressionAlgorithm is what the payload of compressed frames is packed with.
type CompressionAlgorithm uint8

// The algorithms of MySQL 8.0.18 and later. MariaDB knows zlib alone.
const (
	Uncompressed CompressionAlgorithm = iota
	Zlib
	Zstd
)

// A compressed frame's header: three bytes of payload length, one of frame number,
// three of the length of what the payload stands for, 0 if it is that itself
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression_packet.html).
const frameHeaderSize = 7

// minCompressLength is the length below which nothing is compressed, as in the
// servers (MIN_COMPRESS_LENGTH).
const minCompressLength = 50

// Why a compressed stream cannot be read on. Both servers close the connection
// then; before that they tell the client of the first, ER_NET_PACKETS_OUT_OF_ORDER.
var (
	ErrFrameOrder = errors.New("compressed frame out of order")
	ErrFrame      = errors.New("malformed compressed frame")
)

// frames is the layer of compressed frames under a Conn, of which this side is the
// server's. Without FullDuplex one goroutine uses both directions.
type frames struct {
	in     frameReader
	out    frameWriter
	duplex bool // each direction has a goroutine, and neither looks at the other
}

// StartCompression makes the rest of the stream compressed frames, in both
// directions, with the peer as client. It is called once, when the last OK of a
// login has been written; Uncompressed leaves everything as it is.
func (c *Conn) StartCompression(how Compression) error {
	if how.Algorithm == Uncompressed {
		return nil
	}
	if err := c.Flush(); err != nil {
		return err
	}
	if c.r < c.w { // the client did not wait for the OK
		c.ahead = append(append([]byte(nil), c.Buffered()...), c.ahead...)
		c.r = c.w
	}
	c.give()
	f := &frames{}
	f.in = frameReader{conn: c, algorithm: how.Algorithm, num: firstFrame}
	f.in.num--                                                       // what it comes after
	f.out = frameWriter{conn: c, compress: compressor(how), prev: 1} // an answer starts with 1
	c.frames = f
	return nil
}

// firstFrame is the number of the first frame of a command.
const firstFrame = 0

// isNext says whether a client's frame may have this number: within a packet, one more than the
// frame before. Between packets a new command starts at 0, and what belongs to a dialogue goes on
// from our last frame.
func (f *frames) isNext(num uint8) bool {
	if f.duplex || num == f.in.num+1 {
		return true
	}
	return f.in.packets.between() && (num == firstFrame || num == f.out.num)
}

// part makes the directions independent of each other. What is written next is an
// answer to what was read last, and goes on for ever.
func (f *frames) part() {
	f.duplex = true
	f.out.heard, f.out.num, f.out.prev, f.out.shift = false, f.in.num+1, 0, 0
}

// packetCursor follows packets through a stream that comes in pieces.
type packetCursor struct {
	header [HeaderSize]byte
	have   int // bytes of a header that is not whole
	left   int // bytes of the payload that are to come
}

// between says whether the next byte is the first of a packet.
func (p *packetCursor) between() bool { return p.left == 0 && p.have == 0 }

func (p *packetCursor) skip(b []byte) {
	for len(b) > 0 {
		if n := min(p.left, len(b)); n > 0 {
			p.left -= n
			b = b[n:]
			continue
		}
		n := copy(p.header[p.have:], b)
		p.have += n
		b = b[n:]
		if p.have == HeaderSize {
			p.have, p.left = 0, PayloadLen(p.header[:])
		}
	}
}
