package protocol

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
	"seqproxy/test/network"
)

// framePair is a Conn that compresses, and a client at the other end that makes and reads frames
// itself.
type framePair struct {
	*Conn
	t      testing.TB
	client net.Conn
	how    mysqltest.Packing
}

var packings = map[mysqltest.Packing]Compression{
	mysqltest.Zlib: {Algorithm: Zlib},
	mysqltest.Zstd: {Algorithm: Zstd, Level: 3},
}

func eachPacking(t *testing.T, test func(*testing.T, mysqltest.Packing)) {
	for how := range packings {
		t.Run(string(how), func(t *testing.T) { test(t, how) })
	}
}

func newFramePair(t testing.TB, how mysqltest.Packing, overTLS bool) *framePair {
	t.Helper()
	p := rawFramePair(t, how)
	if overTLS {
		p.startTLS()
	}
	p.start()
	return p
}

func (p *framePair) startTLS() {
	p.t.Helper()
	// the test's own certificate
	client := tls.Client(p.client, &tls.Config{InsecureSkipVerify: true})
	done := make(chan error, 1)
	go func() { done <- client.Handshake() }()
	if err := p.StartTLSServer(serverTLS()); err != nil {
		p.t.Fatal(err)
	}
	if err := <-done; err != nil {
		p.t.Fatal(err)
	}
	p.client = client
}

// narrow makes the kernel's buffers between the two ends small.
func (p *framePair) narrow() {
	p.t.Helper()
	for _, end := range []net.Conn{p.client, p.sock.Conn} {
		tcp := end.(*net.TCPConn)
		if err := errors.Join(tcp.SetReadBuffer(16<<10), tcp.SetWriteBuffer(16<<10)); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *framePair) start() {
	p.t.Helper()
	if err := p.StartCompression(packings[p.how]); err != nil {
		p.t.Fatal(err)
	}
}

// rawFramePair is a framePair before its compression starts.
func rawFramePair(t testing.TB, how mysqltest.Packing) *framePair {
	t.Helper()
	client, nc := network.Pair(t)
	c, err := NewConn(nc, 10*time.Second, 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	p := &framePair{Conn: c, t: t, client: client, how: how}
	t.Cleanup(func() {
		client.Close()
		c.Drop()
		c.Close()
	})
	p.deadline(20 * time.Second)
	return p
}

func (p *framePair) deadline(after time.Duration) {
	end := time.Now().Add(after)
	if err := p.client.SetDeadline(end); err != nil {
		p.t.Fatal(err)
	}
	if err := p.SetDeadline(end); err != nil {
		p.t.Fatal(err)
	}
}

// say makes the client send bytes as they are.
func (p *framePair) say(b []byte) {
	p.t.Helper()
	if _, err := p.client.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// frame makes one of the client's frames.
func (p *framePair) frame(num uint8, plain []byte) []byte {
	return mysqltest.Frame{Num: num, Packing: p.how, Plain: plain}.Append(nil)
}

// hear reads n bytes at the server's end.
func (p *framePair) hear(n int) []byte {
	p.t.Helper()
	var got []byte
	for len(got) < n {
		if err := p.Fill(); err != nil {
			p.t.Fatalf("after %d of %d bytes: %v", len(got), n, err)
		}
		got = append(got, p.Buffered()...)
		p.Discard(len(p.Buffered()))
	}
	if len(got) > n {
		p.t.Fatalf("got %d bytes more than the %d that were sent", len(got)-n, n)
	}
	return got
}

// answer writes b at the server's end.
func (p *framePair) answer(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// frames reads frames until n bytes of plain data have come.
func (p *framePair) frames(n int) (frames []mysqltest.Frame) {
	p.t.Helper()
	for n > 0 {
		f, err := mysqltest.ReadFrame(p.client, p.how)
		if err != nil {
			p.t.Fatalf("%d bytes before the end: %v", n, err)
		}
		n -= len(f.Plain)
		frames = append(frames, f)
	}
	return frames
}

func joined(frames []mysqltest.Frame) []byte {
	var b bytes.Buffer
	for _, f := range frames {
		b.Write(f.Plain)
	}
	return b.Bytes()
}

// outline shows the numbers of frames and of the packets that begin in them: "1[1 2 3] 2[4]".
func outline(frames []mysqltest.Frame) (s string) {
	var packets packetCursor
	for i, f := range frames {
		if i > 0 {
			s += " "
		}
		var nums []uint8
		for b := f.Plain; len(b) > 0; {
			if packets.remaining == 0 && packets.have < HeaderSize {
				n := copy(packets.header[packets.have:], b)
				if packets.have += n; packets.have == HeaderSize {
					nums = append(nums, packets.header[3])
					packets.have, packets.remaining = 0, PayloadLen(packets.header[:])
				}
				b = b[n:]
				continue
			}
			n := min(packets.remaining, len(b))
			packets.remaining -= n
			b = b[n:]
		}
		s += fmt.Sprintf("%d%d", f.Num, nums)
	}
	return s
}
