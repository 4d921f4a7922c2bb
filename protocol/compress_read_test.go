package protocol

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// randomPackets makes a stream of commands. The packets are numbered 0, have many lengths, and some
// compress well.
func randomPackets(r *rand.Rand, size int) (b []byte) {
	for len(b) < size {
		n := 1 << r.IntN(18)
		payload := bytes.Repeat([]byte("SELECT "), n/7+1)[:n]
		if r.IntN(2) == 0 {
			for i := range payload {
				payload[i] = byte(r.Uint32())
			}
		}
		b, _ = AppendPacket(b, payload, 0)
	}
	return b
}

func TestCompressedPacketsArriveHoweverFramesAndSegmentsCutThem(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, 1))
			p := newFramePair(t, how, seed%2 == 1)
			want := randomPackets(r, 1<<18)
			var stream []byte
			var num uint8
			for b := want; len(b) > 0; num++ {
				n := min(1+r.IntN(1<<(4+r.IntN(14))), len(b))
				f := mysqltest.Frame{Num: num, Plain: b[:n]}
				if r.IntN(4) > 0 {
					f.Packing = how
				}
				stream = f.Append(stream)
				b = b[n:]
			}
			go func() {
				for len(stream) > 0 {
					n := min(1+r.IntN(100000), len(stream))
					if _, err := p.client.Write(stream[:n]); err != nil {
						t.Error(err)
						return
					}
					stream = stream[n:]
				}
			}()
			if got := p.hear(len(want)); !bytes.Equal(got, want) {
				t.Errorf("seed %d: the bytes read differ from those sent", seed)
			}
		}
	})
}

func TestAFrameOfAlmost16MBIsReadInPieces(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		p := newFramePair(t, how, false)
		want, _ := AppendPacket(nil, bytes.Repeat([]byte("0123456789abcdef"), MaxFragment/16+1), 0)
		frame := p.frame(0, want[:MaxFragment])
		frame = append(frame, p.frame(1, want[MaxFragment:])...)
		go func() { _, _ = p.client.Write(frame) }()
		if got := p.hear(len(want)); !bytes.Equal(got, want) {
			t.Error("the bytes read differ from those sent")
		}
		if n := cap(p.buf); n > 2*BufferSize {
			t.Errorf("the buffer has grown to %d bytes", n)
		}
	})
}

// A frame with more data than there is room for is unpacked further at the next read. Until then
// nobody else may get its buffer.
func TestABufferWithAFrameInItIsNotGivenAway(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		p := newFramePair(t, how, false)
		payload := make([]byte, 80_000)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range payload { // a fourth of it is left when it is packed
			payload[i] = "acgt"[r.IntN(4)]
		}
		want := packetOf(string(payload))
		frame := p.frame(0, want)
		if len(frame) > BufferSize {
			t.Fatalf("the frame has %d bytes: it does not fit into one buffer", len(frame))
		}
		p.say(frame)
		time.Sleep(10 * time.Millisecond) // it is to come in one piece
		var got []byte
		for len(got) < len(want) {
			if err := p.Fill(); err != nil {
				t.Fatalf("after %d bytes: %v", len(got), err)
			}
			got = append(got, p.Buffered()...)
			p.Discard(len(p.Buffered()))
			var others [4][]byte
			for i := range others {
				others[i] = takeBuffer()
				clear(others[i])
			}
			for _, b := range others {
				giveBuffer(b)
			}
		}
		if !bytes.Equal(got, want) {
			t.Error("the bytes read differ from those sent")
		}
	})
}

// Commands that were sent together are seen together: they go to a server in one write.
func TestCommandsInSeveralFramesAreReadAtOnce(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		p := newFramePair(t, how, false)
		command, _ := AppendPacket(nil, bytes.Repeat([]byte("x"), 100), 0)
		var stream []byte
		for range 5 {
			stream = append(stream, p.frame(0, command)...)
		}
		begun := p.frame(0, command)
		p.say(append(stream, begun[:len(begun)-1]...))
		time.Sleep(10 * time.Millisecond)
		if err := p.Fill(); err != nil {
			t.Fatal(err)
		}
		if got, want := len(p.Buffered()), 5*len(command); got != want {
			t.Errorf("one Fill brought %d bytes, want %d: all whole frames and none that would have to be waited for", got, want)
		}
	})
}

func TestACompressedConnectionHoldsNoBufferWhileIdle(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		p := newFramePair(t, how, false)
		command := packetOf("SELECT '" + strings.Repeat("x", 1000) + "'")
		frame := p.frame(0, command)
		for _, cut := range []int{0, 3, 10} {
			// The last waits are in the middle of the header and of the payload.
			p.say(frame[:cut])
			frame = frame[cut:]
			if err := p.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if err := p.Fill(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("got %v, want a timeout", err)
			}
			if p.buf != nil || p.Conn.frames.in.raw != nil {
				t.Errorf("after %d more bytes of a frame: the idle connection has a buffer, want none", cut)
			}
		}
		p.say(frame)
		p.deadline(10 * time.Second)
		if got := p.hear(len(command)); !bytes.Equal(got, command) {
			t.Errorf("got %q after timeouts, want the command", got)
		}
	})
}

func packetOf(payload string) []byte {
	b, _ := AppendPacket(nil, []byte(payload), 0)
	return b
}

// Checklist 10.
func TestBytesSentBehindTheLoginAreReadAsFrames(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		p := rawFramePair(t, how)
		p.say(append([]byte("login"), p.frame(0, packetOf("SELECT 1"))...))
		time.Sleep(10 * time.Millisecond)
		if err := p.Fill(); err != nil {
			t.Fatal(err)
		}
		p.Discard(len("login"))
		p.start()
		if got := p.hear(len(packetOf("SELECT 1"))); !bytes.Equal(got, packetOf("SELECT 1")) {
			t.Errorf("got %q", got)
		}
	})
}

func TestABrokenFrameEndsTheStreamAndNothingOfItIsExecuted(t *testing.T) {
	command := packetOf("SELECT " + strings.Repeat("1", 100))
	n := len(command)
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		packed := mysqltest.Pack(how, command)
		flipped := bytes.Clone(packed)
		flipped[len(flipped)/2] ^= 0x10
		half := mysqltest.Frame{Packing: how, Plain: command[:n/2]}.Append(nil)
		for _, c := range []struct {
			name   string
			frames []byte
			want   error
		}{
			{"a number that is not the first", mysqltest.AppendRawFrame(nil, 5, n, packed), ErrFrameOrder},
			{"a number that starts anew within a command", mysqltest.AppendRawFrame(half, 0, 0, command[n/2:]), ErrFrameOrder},
			{"a number left out within a command", mysqltest.AppendRawFrame(half, 2, 0, command[n/2:]), ErrFrameOrder},
			{"more announced than comes out", mysqltest.AppendRawFrame(nil, 0, n+1, packed), ErrFrame},
			{"much more announced than comes out", mysqltest.AppendRawFrame(nil, 0, MaxFragment, packed), ErrFrame},
			{"less announced than comes out", mysqltest.AppendRawFrame(nil, 0, n-1, packed), ErrFrame},
			{"bytes behind what is packed", mysqltest.AppendRawFrame(nil, 0, n, append(bytes.Clone(packed), 1, 2, 3)), ErrFrame},
			{"packed bytes cut off", mysqltest.AppendRawFrame(nil, 0, n, packed[:len(packed)-1]), ErrFrame},
			{"a flipped bit", mysqltest.AppendRawFrame(nil, 0, n, flipped), ErrFrame},
			{"not packed at all", mysqltest.AppendRawFrame(nil, 0, n, command), ErrFrame},
			{"announced and empty", mysqltest.AppendRawFrame(nil, 0, n, nil), ErrFrame},
			{"cut in the header", mysqltest.AppendRawFrame(nil, 0, n, packed)[:4], io.ErrUnexpectedEOF},
			{"cut in the payload", mysqltest.AppendRawFrame(nil, 0, n, packed)[:12], io.ErrUnexpectedEOF},
			{"cut in a payload that is not packed", mysqltest.AppendRawFrame(nil, 0, 0, command)[:12], io.ErrUnexpectedEOF},
			{"nothing", nil, io.EOF},
		} {
			for _, before := range []int{0, 2} { // valid commands before the bomb
				p := newFramePair(t, how, false)
				var stream []byte
				for range before {
					stream = append(stream, p.frame(0, command)...)
				}
				p.say(append(stream, c.frames...))
				p.client.Close()
				var got []byte
				var err error
				for err == nil {
					err = p.Fill()
					got = append(got, p.Buffered()...)
					p.Discard(len(p.Buffered()))
				}
				if !errors.Is(err, c.want) {
					t.Errorf("%s, after %d commands: got error %v, want %v", c.name, before, err, c.want)
				}
				if again := p.Fill(); errors.Is(c.want, ErrFrame) && !errors.Is(again, ErrFrame) {
					t.Errorf("%s: the next read: got %v", c.name, again)
				}
				whole := 0
				for rest := got; len(rest) >= n; rest = rest[n:] {
					if bytes.Equal(rest[:n], command) {
						whole++
					}
				}
				if whole != before {
					t.Errorf("%s: got %d commands, want %d", c.name, whole, before)
				}
			}
		}
	})
}

// allocated returns how many bytes f allocates, in all goroutines.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAnAnnouncementAllocatesNothing(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		warm := newFramePair(t, how, false)
		warm.say(warm.frame(0, packetOf("SELECT 1")))
		warm.hear(len(packetOf("SELECT 1")))
		p := newFramePair(t, how, false)
		var header []byte
		header = mysqltest.AppendRawFrame(header, 0, MaxFragment, make([]byte, MaxFragment))[:20]
		p.say(header)
		if err := p.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n := allocated(func() {
			if err := p.Fill(); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, ErrFrame) {
				t.Errorf("got %v", err)
			}
		})
		if n > 1<<20 {
			t.Errorf("20 bytes of a frame that announces 16 MB made us allocate %d bytes", n)
		}
	})
}

// A frame of a few kilobytes that unpacks to gigabytes is refused at its announced length.
func TestABombIsGivenUpAtItsAnnouncedLength(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		bomb := mysqltest.Pack(how, make([]byte, 20<<20))
		p := newFramePair(t, how, false)
		go func() { _, _ = p.client.Write(mysqltest.AppendRawFrame(nil, 0, 1000, bomb)) }()
		n := allocated(func() {
			if err := p.Fill(); !errors.Is(err, ErrFrame) {
				t.Errorf("got error %v, want %v", err, ErrFrame)
			}
		})
		if n > 4<<20 {
			t.Errorf("%d bytes that become 20 MB and announce 1000 made us allocate %d bytes", len(bomb), n)
		}
		if how == mysqltest.Zlib {
			p := newFramePair(t, how, false)
			frame := mysqltest.AppendRawFrame(nil, 0, MaxFragment, mysqltest.Pack(how, make([]byte, MaxFragment)))
			go func() { _, _ = p.client.Write(frame) }()
			n := allocated(func() { p.discard(MaxFragment) })
			if n > 4<<20 {
				t.Errorf("a frame of 16 MB made us allocate %d bytes", n)
			}
		}
	})
}

func (p *framePair) discard(n int) {
	p.t.Helper()
	for n > 0 {
		if err := p.Fill(); err != nil {
			p.t.Fatal(err)
		}
		n -= len(p.Buffered())
		p.Discard(len(p.Buffered()))
	}
}
