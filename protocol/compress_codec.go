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

// Packers and unpackers are large (hundreds of kilobytes) and none is kept by a
// connection: they are borrowed for one frame.

// zlibLevel packs rows about as well as the servers do, at a sixth of the cost of the standard
// library's level 6: 100 us for a frame of 16 KB.
const zlibLevel = 5

// compressor returns what packs frames: it appends to dst what plain becomes, within
// dst's capacity, or returns nil if that is not shorter than plain. dst has room for
// plain.
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
		// the same place, unless it had no room there meanwhile
		return append(dst, packed[len(dst):]...)
	}
}

type zlibPacker struct {
	to bounded
	w  *zlib.Writer
}

var zlibPackers = sync.Pool{New: func() any {
	p := &zlibPacker{}
	p.w, _ = zlib.NewWriterLevel(&p.to, zlibLevel) // fails only for a level that there is not
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

// bounded takes what is written to it up to a limit.
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

// zstdEncoder returns the packer for a level of 1 to 22; each is shared by all
// connections, and packs as many frames at a time as there are processors. Levels
// above 9 are those of 6 to 9: what they add needs more than a frame to work on, and
// 34 MB.
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

// newZlibDecoder begins to unpack payload, which must stay as it is until release.
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

// unpackZstd appends to dst what payload becomes, within dst's capacity: more than
// that is an error.
func unpackZstd(dst, payload []byte) ([]byte, error) { return zstdDecoder().DecodeAll(payload, dst) }

// zstdDecoder is shared by all connections, and unpacks as many frames at a time as
// there are processors.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(fmt.Errorf("protocol: make a zstd decoder: %w", err)) // the options are constants
	}
	return d
})
