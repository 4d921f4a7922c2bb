package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// A packer takes hundreds of kilobytes. So a connection keeps none: it borrows one for each frame.

// zlibLevel packs rows about as small as the servers do, at a sixth of the cost of the standard
// library's level 6: 100 us for a frame of 16 KB.
const zlibLevel = 5

// compressor returns a function that packs plain and appends the result to dst within dst's
// capacity. That function returns nil if the result is not shorter than plain. dst must have room
// for plain.
func compressor(how Compression) func(dst, plain []byte) []byte {
	if how.Algorithm == Zlib {
		return packZlib
	}
	encoder := zstdEncoder(how.Level)
	return func(dst, plain []byte) []byte {
		packed := encoder.EncodeAll(plain, dst)
		if len(packed)-len(dst) >= len(plain) {
			return nil
		}
		// This copies onto itself, unless the packer had to allocate more room.
		return append(dst, packed[len(dst):]...)
	}
}

type zlibPacker struct {
	to bounded
	w  *zlib.Writer
}

var zlibPackers = sync.Pool{New: func() any {
	p := &zlibPacker{}
	p.w, _ = zlib.NewWriterLevel(&p.to, zlibLevel) // fails only for an invalid level
	return p
}}

func packZlib(dst, plain []byte) []byte {
	p := zlibPackers.Get().(*zlibPacker)
	defer zlibPackers.Put(p)
	p.to = bounded{b: dst, limit: len(dst) + len(plain) - 1}
	p.w.Reset(&p.to)
	_, err := p.w.Write(plain)
	if err == nil {
		err = p.w.Close()
	}
	packed := p.to.b
	p.to = bounded{}
	if err != nil {
		return nil
	}
	return packed
}

// bounded stores what is written to it, up to a limit.
type bounded struct {
	b     []byte
	limit int
}

var errNotShorter = errors.New("it does not become shorter")

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.b)+len(p) > b.limit {
		return 0, errNotShorter
	}
	b.b = append(b.b, p...)
	return len(p), nil
}

// zstdEncoder returns the packer for a level of 1 to 22. All connections share it. It packs as many
// frames at a time as there are processors. Levels above 9 pack like 6 to 9: they gain only with
// more data than a frame has, and take 34 MB of memory.
func zstdEncoder(level int) *zstd.Encoder {
	return zstdEncoders[min(zstd.EncoderLevelFromZstd(level), zstd.SpeedBetterCompression)-zstd.SpeedFastest]()
}

var zstdEncoders = [...]func() *zstd.Encoder{
	newZstdEncoder(zstd.SpeedFastest), newZstdEncoder(zstd.SpeedDefault), newZstdEncoder(zstd.SpeedBetterCompression),
}

func newZstdEncoder(level zstd.EncoderLevel) func() *zstd.Encoder {
	return sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(maxFramePlain), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(fmt.Errorf("protocol: make a zstd encoder: %w", err)) // the options are constants
		}
		return e
	})
}

// zlibDecoder unpacks the payload of one frame.
type zlibDecoder struct {
	io.ReadCloser // nil before the first frame
	payload       bytes.Reader
}

var zlibDecoders = sync.Pool{New: func() any { return new(zlibDecoder) }}

// newZlibDecoder starts to unpack payload. The caller must not change payload before release.
func newZlibDecoder(payload []byte) (d *zlibDecoder, err error) {
	d = zlibDecoders.Get().(*zlibDecoder)
	d.payload.Reset(payload)
	if d.ReadCloser == nil {
		var r io.ReadCloser
		if r, err = zlib.NewReader(&d.payload); err == nil {
			d.ReadCloser = r
		}
	} else {
		err = d.ReadCloser.(zlib.Resetter).Reset(&d.payload, nil)
	}
	if err != nil {
		d.release()
		return nil, err
	}
	return d, nil
}

func (d *zlibDecoder) release() {
	d.payload.Reset(nil)
	zlibDecoders.Put(d)
}

// unpackZstd unpacks payload and appends the result to dst. It fails if the result exceeds dst's
// capacity.
func unpackZstd(dst, payload []byte) ([]byte, error) { return zstdDecoder().DecodeAll(payload, dst) }

// zstdDecoder is shared by all connections. It unpacks as many frames at a time as there are
// processors.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(fmt.Errorf("protocol: make a zstd decoder: %w", err)) // the options are constants
	}
	return d
})
