package protocol

import "sync"

// maxFramePlain is how much of the stream goes into one frame: what the servers'
// net_buffer_length lets them put there, for which every client has room.
const maxFramePlain = 16 << 10

// frameBuffers hold the frames that one write makes of what one read brought.
var frameBuffers = sync.Pool{New: func() any { return new([frameBufferSize]byte) }}

const frameBufferSize = 2*BufferSize + 64

// frameWriter packs packets into compressed frames.
//
// Frames are numbered on from the client's last one, and each answer starts anew.
// So do the packets inside: servers number the first packet of an answer like its
// frame, and go-sql-driver warns of another number. That differs from the number
// that follows the command's last packet where the command took several frames.
// (Servers do so again whenever they flush within an answer; nobody can expect that.)
type frameWriter struct {
	conn     *Conn
	compress func(dst, plain []byte) []byte // appends; nil if that is not shorter than plain

	num   uint8 // of the next frame
	heard bool  // the client has said something since the last packet

	header [HeaderSize]byte // of a packet whose header has not come whole: it waits
	have   int
	left   int   // bytes to come of the packet
	prev   uint8 // its number, as it came
	shift  uint8 // what is added to the numbers of the packets

	plain  []byte // of the next frame
	frames []byte // not yet written
}

// write takes whole packets or parts of them. All of b is written when it returns,
// but for a packet's header that b has only a part of.
func (f *frameWriter) write(b []byte) (n int, err error) {
	plain, out := takeBuffer(), frameBuffers.Get().(*[frameBufferSize]byte)
	f.plain, f.frames = plain[:0:maxFramePlain], out[:0]
	n, err = f.pack(b)
	if err == nil {
		err = f.frame()
	}
	if err == nil && len(f.frames) > 0 {
		_, err = f.conn.writeRaw(f.frames)
	}
	f.plain, f.frames = nil, nil
	giveBuffer(plain[:BufferSize])
	frameBuffers.Put(out)
	if err != nil {
		return 0, err
	}
	return n, nil
}

// pack takes b apart into packets and these together into frames.
func (f *frameWriter) pack(b []byte) (n int, err error) {
	for n < len(b) {
		if f.left > 0 {
			size := min(f.left, len(b)-n)
			if err := f.stage(b[n : n+size]); err != nil {
				return n, err
			}
			f.left -= size
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
		f.have, f.left = 0, PayloadLen(f.header[:])
		if err := f.stage(f.header[:]); err != nil {
			return n, err
		}
	}
	return n, nil
}

// begin numbers the packet whose header has come, and its frame if it starts an
// answer. The packets of one answer count up by one and wrap at 256: one that
// does not follow its predecessor starts the next answer, to a command that the
// client did not wait to send. (It is taken for a continuation after an answer of
// exactly 256 packets, or a multiple of that.)
func (f *frameWriter) begin() error {
	num := f.header[HeaderSize-1]
	switch {
	case f.heard:
		f.heard = false
		f.num = f.conn.frames.in.num + 1
		f.shift = f.num - num
	case num != f.prev+1:
		if err := f.frame(); err != nil {
			return err
		}
		f.num, f.shift = num, 0
	}
	f.prev = num
	f.header[HeaderSize-1] = num + f.shift
	return nil
}

// stage adds to the frame that is being filled.
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

// frame ends the frame that is being filled, if there is anything in it.
func (f *frameWriter) frame() error {
	plain := f.plain
	if len(plain) == 0 {
		return nil
	}
	if cap(f.frames)-len(f.frames) < frameHeaderSize+len(plain) {
		if _, err := f.conn.writeRaw(f.frames); err != nil {
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
	PutHeader(header, len(packed)-start-frameHeaderSize, f.num)
	header[4], header[5], header[6] = byte(declared), byte(declared>>8), byte(declared>>16)
	f.frames = f.frames[:len(packed)]
	f.num++
	f.plain = plain[:0]
	return nil
}
