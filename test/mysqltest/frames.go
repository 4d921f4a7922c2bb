package mysqltest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Packing is the compression of a frame of the compressed protocol.
type Packing string

// The ways to pack a frame.
const (
	Stored Packing = ""
	Zlib   Packing = "zlib"
	Zstd   Packing = "zstd"
)

// Frame is a frame of the compressed protocol. This code is independent of the proxy's: zlib is the
// standard library's, and zstd works on whole frames.
type Frame struct {
	Num     uint8
	Packing Packing
	Plain   []byte // unpacked contents, below 16 MB
}

// Append appends the frame as a client or a server writes it.
func (f Frame) Append(b []byte) []byte {
	declared := len(f.Plain)
	var payload []byte
	switch f.Packing {
	case Stored:
		payload, declared = f.Plain, 0
	default:
		payload = Pack(f.Packing, f.Plain)
	}
	return AppendRawFrame(b, f.Num, declared, payload)
}

// Pack packs plain.
func Pack(how Packing, plain []byte) []byte {
	if how == Zstd {
		encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err) // without options there is none
		}
		return encoder.EncodeAll(plain, nil)
	}
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	if err != nil {
		panic(err) // a constant that there is
	}
	_, _ = w.Write(plain) // to memory
	_ = w.Close()
	return b.Bytes()
}

// AppendRawFrame appends a frame with any declared length of its payload.
func AppendRawFrame(b []byte, num uint8, declared int, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(n), byte(n>>8), byte(n>>16), num, byte(declared), byte(declared>>8), byte(declared>>16))
	return append(b, payload...)
}

// ReadFrame reads and checks one frame of a stream with the given packing. The error is io.EOF at
// the end of the stream only.
func ReadFrame(r io.Reader, how Packing) (Frame, error) {
	var header [7]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Frame{}, err
	}
	payload := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
	if _, err := io.ReadFull(r, payload); err != nil {
		return Frame{}, fmt.Errorf("payload of %d bytes: %w", len(payload), io.ErrUnexpectedEOF)
	}
	f := Frame{Num: header[3], Plain: payload}
	declared := int(header[4]) | int(header[5])<<8 | int(header[6])<<16
	if declared == 0 {
		return f, nil
	}
	f.Packing = how
	plain, err := unpack(how, payload)
	if err != nil {
		return f, fmt.Errorf("frame %d of %d bytes: %w", f.Num, len(payload), err)
	}
	if len(plain) != declared {
		return f, fmt.Errorf("frame %d: %d bytes come out, %d are announced", f.Num, len(plain), declared)
	}
	f.Plain = plain
	return f, nil
}

func unpack(how Packing, payload []byte) ([]byte, error) {
	const most = 1 << 24
	if how == Zstd {
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(most), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer decoder.Close()
		return decoder.DecodeAll(payload, nil)
	}
	rest := bytes.NewReader(payload)
	r, err := zlib.NewReader(rest)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, most))
	if err == nil && rest.Len() > 0 {
		err = fmt.Errorf("%d bytes are left", rest.Len())
	}
	return plain, err
}
