package protocol

import (
	"errors"
	"fmt"
	"io"
)

// frameReader unpacks the compressed frames of a client. zlib is unpacked as it
// comes, in a fixed memory. A zstd frame is held until it has come whole, since
// the window that it needs may be as large as what it stands for; that is below
// 16 MB, and so is the frame.
type frameReader struct {
	conn      *Conn
	algorithm CompressionAlgorithm
	err       error // why the stream cannot be read on

	raw    []byte // nil while nothing is in it
	r, w   int    // raw[r:w] was read and not looked at
	takeFn func() []byte
	giveFn func()
	empty  bool // nothing was read into the Conn's buffer: a wait may give it back

	header   [frameHeaderSize]byte // of a frame whose header has not come whole
	have     int
	num      uint8        // of the last frame
	left     int          // bytes of its payload that were not taken out of raw
	declared int          // what the payload stands for; 0: it is that itself
	got      int          // of declared
	zlib     *zlibDecoder // nil between frames, and in one of another kind
	plain    []byte       // what a zstd frame became, not yet passed on

	packets packetCursor // where in the stream of packets we are
}

// read waits until there is something and reads into the Conn's buffer. Of what has
// come it takes as many frames as there is room for, so that commands sent in one
// piece are seen in one piece.
func (f *frameReader) read() (n int, err error) {
	if f.err != nil {
		return 0, f.err
	}
	for {
		f.empty = n == 0
		var size int
		switch {
		case f.zlib != nil:
			f.empty = false
			size, err = f.unpack(n)
		case len(f.plain) > 0:
			size = f.passOn(n)
		case f.left > 0:
			size, err = f.copy(n)
		default:
			size, err = f.begin(n)
		}
		n += size
		if err != nil || n > 0 && n == len(f.conn.take()) {
			break
		}
	}
	if f.r == f.w && f.zlib == nil {
		f.give()
	}
	if err != nil && !errors.Is(err, errWouldWait) {
		inFrame := f.zlib != nil || f.left > 0 && f.declared > 0
		if inFrame || errors.Is(err, ErrFrame) || errors.Is(err, ErrFrameOrder) {
			f.err = err
		}
	}
	if n > 0 {
		return n, nil // an error comes again
	}
	return 0, err
}

// errWouldWait says that what comes next has not come far enough to be read without
// waiting, which must not keep what has been read.
var errWouldWait = errors.New("the rest has not come yet")

// begin reads the header of the next frame, and the frame as far as it must be whole.
func (f *frameReader) begin(n int) (size int, err error) {
	for f.have < frameHeaderSize {
		if err := f.await(n); err != nil {
			return 0, err
		}
		k := copy(f.header[f.have:], f.raw[f.r:f.w])
		f.have += k
		f.r += k
	}
	length, declared := PayloadLen(f.header[:]), PayloadLen(f.header[4:])
	whole := f.w-f.r >= length
	if n > 0 && declared > 0 && !whole {
		return 0, errWouldWait
	}
	f.have = 0
	layer := f.conn.frames
	num := f.header[3]
	if !layer.isNext(num) {
		return 0, fmt.Errorf("%w: number %d after %d from the client and %d to it", ErrFrameOrder, num, f.num, layer.out.num-1)
	}
	f.num = num
	if !layer.duplex {
		layer.out.heard = true
	}
	f.left, f.declared, f.got = length, declared, 0
	switch {
	case declared == 0:
		return 0, nil
	case length == 0:
		return 0, fmt.Errorf("%w: it announces %d bytes and holds none", ErrFrame, declared)
	case f.algorithm == Zstd:
		return f.unpackWhole(n)
	case whole:
		f.zlib, err = newWholeZlibDecoder(f.raw[f.r : f.r+length])
		f.r += length
		f.left = 0
	default:
		f.zlib, err = newZlibDecoder(f)
	}
	return 0, f.cause(err)
}

// await sees to it that there is something in raw. It waits only where nothing has
// been read, n being 0.
func (f *frameReader) await(n int) error {
	if f.r < f.w {
		return nil
	}
	if n > 0 {
		return errWouldWait
	}
	return f.more()
}

// copy takes over the payload of a frame that is not compressed.
func (f *frameReader) copy(n int) (size int, err error) {
	if err := f.await(n); err != nil {
		return 0, err
	}
	to := f.conn.take()[n:]
	size = copy(to, f.raw[f.r:min(f.w, f.r+f.left)])
	f.packets.skip(to[:size])
	f.r += size
	f.left -= size
	return size, nil
}

// unpack reads what comes out of a zlib frame, to its end or as far as there is
// room. Of a frame that ends here nothing is returned before it has proved right:
// a damaged command must not be executed.
func (f *frameReader) unpack(n int) (size int, err error) {
	to := f.conn.take()[n:]
	for size < len(to) && f.got < f.declared {
		k, err := f.zlib.Read(to[size:min(len(to), size+f.declared-f.got)])
		size += k
		f.got += k
		if err != nil && (!errors.Is(err, io.EOF) || f.got < f.declared) {
			return 0, f.cause(err)
		}
	}
	if f.got == f.declared {
		if err := f.end(); err != nil {
			return 0, err
		}
	}
	f.packets.skip(to[:size])
	return size, nil
}

// end checks that nothing more comes out of a zlib frame and that all of its payload
// was needed for that.
func (f *frameReader) end() error {
	var beyond [1]byte
	n, err := io.ReadFull(f.zlib, beyond[:])
	rest := f.left + f.zlib.whole.Len()
	switch {
	case n > 0:
		return fmt.Errorf("%w: more comes out than the %d bytes that it announces", ErrFrame, f.declared)
	case !errors.Is(err, io.EOF):
		return f.cause(err)
	case rest > 0:
		return fmt.Errorf("%w: %d bytes are left of its payload", ErrFrame, rest)
	}
	f.release()
	return nil
}

// cause words why a frame cannot be unpacked; if the connection broke, it is that.
func (f *frameReader) cause(err error) error {
	if err == nil || f.err != nil {
		return f.err
	}
	return fmt.Errorf("%w: after %d of %d bytes: %w", ErrFrame, f.got, f.declared, err)
}

// unpackWhole unpacks a zstd frame, into the Conn's buffer if there is room. Memory
// grows with the payload as it comes, not as it is announced.
func (f *frameReader) unpackWhole(n int) (size int, err error) {
	var payload []byte
	for payload == nil || f.left > 0 {
		if f.r == f.w {
			if err := f.more(); err != nil {
				return 0, err
			}
		}
		part := f.raw[f.r:min(f.w, f.r+f.left)]
		f.r += len(part)
		f.left -= len(part)
		if payload == nil && f.left == 0 {
			payload = part
			break
		}
		payload = append(payload, part...)
	}
	to := f.conn.take()[n:]
	inPlace := len(to) >= f.declared
	if !inPlace {
		to = make([]byte, f.declared)
	}
	unpacked, err := unpackZstd(to[:0:f.declared], payload)
	switch {
	case err != nil:
		return 0, f.cause(err)
	case len(unpacked) != f.declared:
		return 0, fmt.Errorf("%w: %d bytes come out where it announces %d", ErrFrame, len(unpacked), f.declared)
	case !inPlace:
		f.plain = unpacked
		return 0, nil
	}
	if &unpacked[0] != &to[0] {
		copy(to, unpacked)
	}
	f.packets.skip(unpacked)
	return len(unpacked), nil
}

// passOn takes over what a zstd frame became, as far as there is room.
func (f *frameReader) passOn(n int) (size int) {
	to := f.conn.take()[n:]
	size = copy(to, f.plain)
	f.packets.skip(to[:size])
	if f.plain = f.plain[size:]; len(f.plain) == 0 {
		f.plain = nil
	}
	return size
}

// Read gives zlib the payload of the frame as it comes.
func (f *frameReader) Read(b []byte) (n int, err error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	if f.r == f.w {
		if f.err = f.more(); f.err != nil {
			return 0, f.err
		}
	}
	n = copy(b, f.raw[f.r:min(f.w, f.r+f.left)])
	f.r += n
	f.left -= n
	return n, nil
}

// ReadByte makes zlib read no further than the frame.
func (f *frameReader) ReadByte() (byte, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	if f.r == f.w {
		if f.err = f.more(); f.err != nil {
			return 0, f.err
		}
	}
	b := f.raw[f.r]
	f.r++
	f.left--
	return b, nil
}

// more waits for bytes of the peer, where none are left.
func (f *frameReader) more() error {
	f.r, f.w = 0, 0
	if f.conn.tls != nil && f.empty {
		f.conn.give() // TLS cannot wait without a buffer: one is enough
	}
	n, err := f.conn.readRaw(f.takeFn, f.giveFn)
	f.w = n
	if errors.Is(err, io.EOF) && (f.have > 0 || f.left > 0) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (f *frameReader) take() []byte {
	if f.raw == nil {
		f.raw = takeBuffer()
	}
	return f.raw
}

// giveAll returns the buffers that nothing is in, before a wait.
func (f *frameReader) giveAll() {
	f.give()
	if f.empty {
		f.conn.give()
	}
}

func (f *frameReader) give() {
	if f.raw != nil {
		giveBuffer(f.raw)
		f.raw, f.r, f.w = nil, 0, 0
	}
}

// release ends the use of zlib's decoder.
func (f *frameReader) release() {
	if f.zlib != nil {
		f.zlib.release()
		f.zlib = nil
	}
}

// drop gives up everything.
func (f *frameReader) drop() {
	f.release()
	f.give()
	f.plain = nil
}
