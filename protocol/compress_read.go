package protocol

import (
	"errors"
	"fmt"
	"io"
)

// frameReader unpacks the compressed frames of a client. It keeps a packed frame until all of it
// has come. So the wait for it can be interrupted and resumed, and memory grows with the bytes that
// come, not with the announced size. A frame is below 16 MB, packed and unpacked.
type frameReader struct {
	carrier   carrier
	numbers   *frameNumbers
	algorithm CompressionAlgorithm
	err       error // why the stream cannot be read further

	raw  []byte // nil while it is empty
	r, w int    // raw[r:w] was read but not used

	header    [frameHeaderSize]byte // of a frame whose header is incomplete
	have      int
	remaining int          // bytes of its payload that are still in raw or to come
	declared  int          // length after unpacking; 0: the payload is not packed
	packed    []byte       // an incomplete packed payload
	zlib      *zlibDecoder // unpacks the frame; nil unless output had to wait for room
	got       int          // bytes unpacked so far, of declared
	plain     []byte       // an unpacked zstd frame, not yet passed on

	packets packetCursor // the position in the stream of packets
}

// read waits for bytes and reads them into the Conn's buffer. It takes as many frames as fit, so
// that commands sent together are seen together.
func (f *frameReader) read() (n int, err error) {
	if f.err != nil {
		return 0, f.err
	}
	for {
		var size int
		switch {
		case f.zlib != nil:
			size, err = f.unpackZlib(n)
		case len(f.plain) > 0:
			size = f.passOn(n)
		case f.remaining > 0 && f.declared > 0:
			size, err = f.unpack(n)
		case f.remaining > 0:
			size, err = f.copy(n)
		default:
			err = f.begin(n)
		}
		n += size
		if err != nil || n > 0 && n == len(f.carrier.take()) {
			break
		}
	}
	if f.r == f.w && f.zlib == nil {
		f.giveRaw()
	}
	if errors.Is(err, ErrFrame) || errors.Is(err, ErrFrameOrder) {
		f.err = err
	}
	if n > 0 {
		return n, nil // the error comes again
	}
	return 0, err
}

var errWouldWait = errors.New("the rest has not come yet")

// begin reads the header of the next frame.
func (f *frameReader) begin(n int) error {
	for f.have < frameHeaderSize {
		if err := f.await(n); err != nil {
			return err
		}
		k := copy(f.header[f.have:], f.raw[f.r:f.w])
		f.have += k
		f.r += k
	}
	f.have = 0
	num := f.header[3]
	if !f.isNext(num) {
		return fmt.Errorf("%w: number %d after %d from the client and %d to it", ErrFrameOrder, num, f.numbers.in, f.numbers.out-1)
	}
	f.numbers.in = num
	if !f.numbers.duplex {
		f.numbers.received = true
	}
	f.remaining, f.declared, f.got = PayloadLen(f.header[:]), PayloadLen(f.header[4:]), 0
	if f.remaining == 0 && f.declared > 0 {
		return fmt.Errorf("%w: it announces %d bytes and holds none", ErrFrame, f.declared)
	}
	return nil
}

// await makes sure that raw has bytes. It waits only if nothing was read before (n is 0), so that
// bytes that have come do not wait for later ones.
func (f *frameReader) await(n int) error {
	if f.r < f.w {
		return nil
	}
	if n > 0 {
		return errWouldWait
	}
	return f.more()
}

// copy passes on the payload of a frame that is not packed.
func (f *frameReader) copy(n int) (size int, err error) {
	if err := f.await(n); err != nil {
		return 0, err
	}
	to := f.carrier.take()[n:]
	size = copy(to, f.raw[f.r:min(f.w, f.r+f.remaining)])
	f.packets.skip(to[:size])
	f.r += size
	f.remaining -= size
	return size, nil
}

// unpack collects a payload until it is complete, and then unpacks it. If the frame ends here, it
// returns nothing before the frame has proved right: a damaged command must not run.
func (f *frameReader) unpack(n int) (size int, err error) {
	var payload []byte
	for f.remaining > 0 {
		if err := f.await(n); err != nil {
			return 0, err
		}
		part := f.raw[f.r:min(f.w, f.r+f.remaining)]
		f.r += len(part)
		f.remaining -= len(part)
		if f.remaining == 0 && f.packed == nil {
			payload = part
			break
		}
		f.packed = append(f.packed, part...)
		payload = f.packed
	}
	f.packed = nil
	if f.algorithm == Zstd {
		return f.unpackZstd(n, payload)
	}
	f.zlib, err = newZlibDecoder(payload) // it reads from raw, so raw stays
	if err != nil {
		return 0, f.cause(err)
	}
	return f.unpackZlib(n)
}

// unpackZlib passes on the contents of a zlib frame, as far as there is room.
func (f *frameReader) unpackZlib(n int) (size int, err error) {
	to := f.carrier.take()[n:]
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

// end checks that a zlib frame has no further contents and needed its whole payload.
func (f *frameReader) end() error {
	var beyond [1]byte
	n, err := io.ReadFull(f.zlib, beyond[:])
	switch {
	case n > 0:
		return fmt.Errorf("%w: more comes out than the %d bytes that it announces", ErrFrame, f.declared)
	case !errors.Is(err, io.EOF):
		return f.cause(err)
	case f.zlib.payload.Len() > 0:
		return fmt.Errorf("%w: %d bytes are left of its payload", ErrFrame, f.zlib.payload.Len())
	}
	f.release()
	return nil
}

// cause describes why a frame cannot be unpacked. An end of file inside a frame is not the end of
// the stream.
func (f *frameReader) cause(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: after %d of %d bytes: %w", ErrFrame, f.got, f.declared, err)
}

// unpackZstd unpacks a zstd frame, into the Conn's buffer if there is room. It unpacks the frame in
// one piece, since the window for pieces may be as large as the result.
func (f *frameReader) unpackZstd(n int, payload []byte) (size int, err error) {
	to := f.carrier.take()[n:]
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

// passOn passes on an unpacked zstd frame, as far as there is room.
func (f *frameReader) passOn(n int) (size int) {
	to := f.carrier.take()[n:]
	size = copy(to, f.plain)
	f.packets.skip(to[:size])
	if f.plain = f.plain[size:]; len(f.plain) == 0 {
		f.plain = nil
	}
	return size
}

// more waits for bytes of the peer if raw is empty and nothing was read before.
func (f *frameReader) more() error {
	f.r, f.w = 0, 0
	if f.carrier.IsTLS() {
		f.carrier.give() // TLS needs a buffer to wait with; one is enough
	}
	n, err := f.carrier.readRaw(f)
	f.w = n
	if errors.Is(err, io.EOF) && (f.have > 0 || f.remaining > 0) {
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

// give returns the empty buffers before a wait.
func (f *frameReader) give() {
	f.giveRaw()
	f.carrier.give()
}

func (f *frameReader) giveRaw() {
	if f.raw != nil {
		giveBuffer(f.raw)
		f.raw, f.r, f.w = nil, 0, 0
	}
}

// release returns zlib's decoder.
func (f *frameReader) release() {
	if f.zlib != nil {
		f.zlib.release()
		f.zlib = nil
	}
}

// drop frees everything.
func (f *frameReader) drop() {
	f.release()
	f.giveRaw()
	f.packed, f.plain = nil, nil
}
