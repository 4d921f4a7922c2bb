package protocol

import "sync"

// maxFramePlain bounds the bytes that go into one frame. Servers use the same size
// (net_buffer_length), so every client has room for it.
const maxFramePlain = 16 << 10

// frameBuffers are for the frames of one write. A write passes on at most one read.
var frameBuffers = sync.Pool{New: func() any { return new([frameBufferSize]byte) }}

const frameBufferSize = 2*BufferSize + 64

// frameWriter packs packets into compressed frames.
//
// The numbers of frames go on from the client's last one, for each answer. The packets inside have
// numbers like that, too: servers give the first packet of an answer the number of its frame, and
// go-sql-driver warns of any other number. If the command took several frames, that number does not
// follow the one of the command's last packet. (Servers also do so when they flush within an
// answer, which no client can expect.)
type frameWriter struct {
	carrier  carrier
	numbers  *frameNumbers
	compress func(dst, plain []byte) []byte // appends; nil if the result is not shorter than plain

	header    [HeaderSize]byte // of a packet whose header is incomplete
	have      int
	remaining int   // bytes still to come of the packet
	prev      uint8 // its number, before shift
	shift     uint8 // added to the numbers of the packets

	plain  []byte // contents of the next frame
	frames []byte // finished frames, not yet written
}

// write takes whole packets or parts of them. It returns when all of b is written. Only an
// incomplete packet header at the end of b waits for the next call.
func (f *frameWriter) write(b []byte) (n int, err error) {
	plain, out := takeBuffer(), frameBuffers.Get().(*[frameBufferSize]byte)
	f.plain, f.frames = plain[:0:maxFramePlain], out[:0]
	n, err = f.pack(b)
	if err == nil {
		err = f.frame()
	}
	if err == nil && len(f.frames) > 0 {
		_, err = f.carrier.writeRaw(f.frames)
	}
	f.plain, f.frames = nil, nil
	giveBuffer(plain[:BufferSize])
	frameBuffers.Put(out)
	if err != nil {
		return 0, err
	}
	return n, nil
}

// pack splits b into packets and puts these into frames.
func (f *frameWriter) pack(b []byte) (n int, err error) {
	for n < len(b) {
		if f.remaining > 0 {
			size := min(f.remaining, len(b)-n)
			if err := f.stage(b[n : n+size]); err != nil {
				return n, err
			}
			f.remaining -= size
			n += size
			continue
		}
		size := copy(f.header[f.have:], b[n:])
		f.have += size
		n += size
		if f.have < HeaderSize {
			break
		}
		if err := f.begin(); err != nil {
			return n, err
		}
		f.have, f.remaining = 0, PayloadLen(f.header[:])
		if err := f.stage(f.header[:]); err != nil {
			return n, err
		}
	}
	return n, nil
}

// begin numbers a packet whose header is complete, and its frame if the packet begins an answer.
// The packets of one answer count up by one and wrap at 256. A packet that does not follow the one
// before begins the next answer: the client did not wait to send that command. (After an answer of
// exactly 256 packets, or a multiple, the next one looks like its continuation.)
func (f *frameWriter) begin() error {
	num := f.header[HeaderSize-1]
	switch {
	case f.numbers.received:
		f.numbers.received = false
		f.numbers.out = f.numbers.in + 1
		f.shift = f.numbers.out - num
	case num != f.prev+1:
		if err := f.frame(); err != nil {
			return err
		}
		f.numbers.out, f.shift = num, 0
	}
	f.prev = num
	f.header[HeaderSize-1] = num + f.shift
	return nil
}

// stage adds bytes to the current frame.
func (f *frameWriter) stage(b []byte) error {
	for len(b) > 0 {
		if len(f.plain) == cap(f.plain) {
			if err := f.frame(); err != nil {
				return err
			}
		}
		n := min(len(b), cap(f.plain)-len(f.plain))
		f.plain = append(f.plain, b[:n]...)
		b = b[n:]
	}
	return nil
}

// frame ends the current frame, unless it is empty.
func (f *frameWriter) frame() error {
	plain := f.plain
	if len(plain) == 0 {
		return nil
	}
	if cap(f.frames)-len(f.frames) < frameHeaderSize+len(plain) {
		if _, err := f.carrier.writeRaw(f.frames); err != nil {
			return err
		}
		f.frames = f.frames[:0]
	}
	start := len(f.frames)
	body := f.frames[: start+frameHeaderSize : start+frameHeaderSize+len(plain)]
	var packed []byte
	if len(plain) >= minCompressLength {
		packed = f.compress(body, plain)
	}
	declared := len(plain)
	if packed == nil {
		packed, declared = append(body, plain...), 0
	}
	header := packed[start:]
	PutHeader(header, len(packed)-start-frameHeaderSize, f.numbers.out)
	header[4], header[5], header[6] = byte(declared), byte(declared>>8), byte(declared>>16)
	f.frames = f.frames[:len(packed)]
	f.numbers.out++
	f.plain = plain[:0]
	return nil
}
