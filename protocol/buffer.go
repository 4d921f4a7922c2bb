package protocol

import "sync"

// BufferSize is the size of a read buffer. A connection has one only while there are bytes to look
// at. An idle connection has none, unless it uses TLS: only a read shows whether TLS has something.
const BufferSize = 32 << 10

// buffers holds *[BufferSize]byte. A pointer goes into the pool without an allocation.
var buffers = sync.Pool{New: func() any { return new([BufferSize]byte) }}

func takeBuffer() []byte { return buffers.Get().(*[BufferSize]byte)[:] }

// giveBuffer returns b to the pool. It drops a buffer that has grown for a long packet, so that the
// pool stays small.
func giveBuffer(b []byte) {
	if cap(b) == BufferSize {
		buffers.Put((*[BufferSize]byte)(b[:BufferSize]))
	}
}
