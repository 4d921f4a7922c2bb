package protocol

import "sync"

// BufferSize is the size of the read buffer that a connection holds while it has bytes to look at.
// An idle connection holds none, except with TLS: that must be read to know whether there is
// something to read.
const BufferSize = 32 << 10

// buffers holds *[BufferSize]byte, so that putting one back does not allocate.
var buffers = sync.Pool{New: func() any { return new([BufferSize]byte) }}

func takeBuffer() []byte { return buffers.Get().(*[BufferSize]byte)[:] }

// giveBuffer returns b to the pool. A buffer that was grown for one long packet
// is left to the garbage collector instead, so that the pool stays small.
func giveBuffer(b []byte) {
	if cap(b) == BufferSize {
		buffers.Put((*[BufferSize]byte)(b[:BufferSize]))
	}
}
