package protocol

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// numbered makes packets of the given length, numbered from first on.
func numbered(first uint8, count, size int) (b []byte) {
	for range count {
		b, first = AppendPacket(b, bytes.Repeat([]byte("r"), size), first)
	}
	return b
}

// The numbers are those of MariaDB 10.11 and MySQL 9.7, which agree.
//
// Checklist 10.
func TestAnswersAreNumberedAsByAServer(t *testing.T) {
	command := packetOf("SELECT 1")
	for _, c := range []struct {
		name   string
		frames []int    // the client's commands, by the number of frames of each
		writes [][]byte // the answers, numbered on from the command's last packet
		want   string
	}{
		{"an answer of three packets", []int{1}, [][]byte{numbered(1, 3, 5)}, "1[1 2 3]"},
		{"in several writes", []int{1}, [][]byte{numbered(1, 2, 5), numbered(3, 1, 5)}, "1[1 2] 2[3]"},
		{
			"cut within a packet and within a header",
			[]int{1},
			[][]byte{numbered(1, 2, 5)[:7], numbered(1, 2, 5)[7:11], numbered(1, 2, 5)[11:]},
			"1[1] 2[] 3[2]",
		},
		{"to a command of three frames", []int{3}, [][]byte{numbered(1, 2, 5)}, "3[3 4]"},
		{"to two commands sent together, in one write", []int{1, 1}, [][]byte{append(numbered(1, 3, 5), numbered(1, 2, 5)...)}, "1[1 2 3] 1[1 2]"},
		{
			"to two commands, with the second's header cut",
			[]int{1, 1},
			[][]byte{append(numbered(1, 3, 5), 1, 0), {0, 1, 'x'}},
			"1[1 2 3] 1[1]",
		},
		{"to three, of one packet each", []int{1, 1, 1}, [][]byte{bytes.Repeat(numbered(1, 1, 5), 3)}, "1[1] 1[1] 1[1]"},
		{"packets beyond 255", []int{1}, [][]byte{numbered(1, 300, 5)}, "1" + fmt.Sprint(count(1, 300))},
		{"an answer of 256 packets and one more", []int{1}, [][]byte{numbered(1, 256, 1), numbered(1, 1, 1)}, "1" + fmt.Sprint(count(1, 256)) + " 2[1]"},
	} {
		p := newFramePair(t, mysqltest.Zlib, false)
		for round := range 2 { // the second round follows all the others
			sent := 0
			for _, n := range c.frames {
				for i := range n {
					part := command[len(command)*i/n : len(command)*(i+1)/n]
					p.say(p.frame(uint8(i), part))
					sent += len(part)
				}
			}
			p.hear(sent)
			size := 0
			for _, b := range c.writes {
				p.answer(b)
				size += len(b)
			}
			if got := outline(p.frames(size)); got != c.want {
				t.Errorf("%s, round %d: got frames and packets %s, want %s", c.name, round, got, c.want)
			}
		}
	}
}

func count(first, n int) (nums []uint8) {
	for i := range n {
		nums = append(nums, uint8(first+i))
	}
	return nums
}

// The frames of a file are numbered from the server's request on, and the answer from the file on.
func TestADialogueIsNumberedThrough(t *testing.T) {
	p := newFramePair(t, mysqltest.Zlib, false)
	p.say(p.frame(0, packetOf("LOAD DATA")))
	p.hear(len(packetOf("LOAD DATA")))
	p.answer(numbered(1, 1, 2))
	p.frames(6)
	data := numbered(2, 3, 5)
	p.say(append(p.frame(2, data[:20]), p.frame(3, data[20:])...))
	p.hear(len(data))
	p.answer(numbered(5, 1, 7))
	if got, want := outline(p.frames(11)), "4[4]"; got != want {
		t.Errorf("got frame and packet %s, want %s", got, want)
	}
}

// Checklist 10.
func TestFramesBeyond255AreNumberedFrom0(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		p := newFramePair(t, how, false)
		command, _ := AppendPacket(nil, bytes.Repeat([]byte("SELECT "), 1000), 0)
		var stream []byte
		num := 0
		for b := command; len(b) > 0; num++ {
			n := min(10, len(b))
			stream = append(stream, p.frame(uint8(num), b[:n])...)
			b = b[n:]
		}
		go func() { _, _ = p.client.Write(stream) }()
		if got := p.hear(len(command)); !bytes.Equal(got, command) {
			t.Error("the command differs from the one sent")
		}
		answer := numbered(1, 300, 15000)
		go func() { _, _ = p.Write(answer) }()
		for i, f := range p.frames(len(answer)) {
			if want := uint8(num + i); f.Num != want {
				t.Fatalf("frame %d of the answer has number %d, want %d", i, f.Num, want)
			}
			if len(f.Plain) > maxFramePlain {
				t.Fatalf("a frame stands for %d bytes, more than a server puts there", len(f.Plain))
			}
		}
	})
}

func TestOnlyWhatGetsShorterIsPacked(t *testing.T) {
	noise := make([]byte, maxFramePlain-HeaderSize)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		for _, c := range []struct {
			name    string
			payload []byte
			want    mysqltest.Packing
		}{
			{"nothing", nil, mysqltest.Stored},
			{"49 bytes with the header", []byte(strings.Repeat("x", 45)), mysqltest.Stored},
			{"200 bytes", []byte(strings.Repeat("x", 200)), how},
			{"noise", noise, mysqltest.Stored},
			{"a little noise", noise[:100], mysqltest.Stored},
			{"text", []byte(strings.Repeat("some text, ", 1000)), how},
		} {
			p := newFramePair(t, how, false)
			packet, _ := AppendPacket(nil, c.payload, 1)
			p.answer(packet)
			frames := p.frames(len(packet))
			if len(frames) != 1 || frames[0].Packing != c.want {
				t.Errorf("%s: got %d frames, the first packed by %q, want one by %q", c.name, len(frames), frames[0].Packing, c.want)
			}
			if !bytes.Equal(joined(frames), packet) {
				t.Errorf("%s: the bytes differ from those written", c.name)
			}
		}
	})
}

func TestEveryZstdLevelIsUnderstood(t *testing.T) {
	packet, _ := AppendPacket(nil, bytes.Repeat([]byte("some text, "), 5000), 1)
	for level := 1; level <= maxZstdLevel; level++ {
		p := rawFramePair(t, mysqltest.Zstd)
		if err := p.StartCompression(Compression{Algorithm: Zstd, Level: level}); err != nil {
			t.Fatal(err)
		}
		p.answer(packet)
		if got := joined(p.frames(len(packet))); !bytes.Equal(got, packet) {
			t.Errorf("level %d: the bytes differ from those written", level)
		}
	}
}

// A client that sends megabytes before it reads must not wait for a proxy that waits for it.
func TestACompressedConnectionReadsAheadWhileItsWriteWaits(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		for _, overTLS := range []bool{false, true} {
			p := rawFramePair(t, how)
			p.narrow()
			if overTLS {
				p.startTLS()
			}
			p.start()
			noise := make([]byte, 256<<10)
			if _, err := rand.Read(noise); err != nil {
				t.Fatal(err)
			}
			command, _ := AppendPacket(nil, noise, 0)
			answer, _ := AppendPacket(nil, append(bytes.Clone(noise), noise...), 1)
			written := make(chan error, 1)
			go func() {
				_, err := p.Write(answer)
				written <- err
			}()
			time.Sleep(2 * readAheadDelay)
			go func() {
				for range 3 {
					if _, err := p.client.Write(p.frame(0, command)); err != nil {
						t.Error(err)
					}
				}
			}()
			time.Sleep(2 * readAheadDelay)
			if got := joined(p.frames(len(answer))); !bytes.Equal(got, answer) {
				t.Error("the answer differs from the one written")
			}
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			if got := p.hear(3 * len(command)); !bytes.Equal(got, bytes.Repeat(command, 3)) {
				t.Error("the commands differ from those sent")
			}
		}
	})
}

// A replica acknowledges events while it gets more: the directions are independent.
func TestFullDuplexCompressesBothDirections(t *testing.T) {
	eachPacking(t, func(t *testing.T, how mysqltest.Packing) {
		p := newFramePair(t, how, false)
		p.say(p.frame(0, packetOf("dump")))
		p.hear(len(packetOf("dump")))
		p.FullDuplex()
		events := numbered(1, 3000, 1000)
		written := make(chan error, 1)
		go func() {
			var err error
			for b := events; len(b) > 0 && err == nil; {
				n := min(5000, len(b))
				_, err = p.Write(b[:n])
				b = b[n:]
			}
			written <- err
		}()
		ack := packetOf("acknowledged " + strings.Repeat(".", 100))
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			if got := p.hear(50 * len(ack)); !bytes.Equal(got, bytes.Repeat(ack, 50)) {
				t.Error("the acknowledgements differ from those sent")
			}
		}()
		go func() {
			for i := range 50 {
				if _, err := p.client.Write(p.frame(uint8(3*i), ack)); err != nil {
					t.Error(err)
				}
			}
		}()
		frames := p.frames(len(events))
		if got := joined(frames); !bytes.Equal(got, events) {
			t.Error("the events differ from those written")
		}
		for i, f := range frames {
			if f.Num != uint8(1+i) {
				t.Fatalf("event frame %d has number %d", i, f.Num)
			}
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
		<-answered
	})
}
