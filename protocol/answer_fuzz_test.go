package protocol

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// reference reads an answer top-down, packet by packet, as the protocol's documentation describes
// it. Each part of the grammar is a function, and there is no state between them. Tests compare it
// with Answer's state machine.
type reference struct {
	b    []byte
	caps Capability
	w    walked
}

// stopped is the panic that ends a reference's reading.
type stopped struct{ event Event }

func (r *reference) stop(ev Event) { panic(stopped{ev}) }

// referenceWalk returns the right outcome of a walk over all of b.
func referenceWalk(shape Shape, caps Capability, b []byte) (w walked) {
	r := &reference{b: b, caps: caps}
	defer func() {
		if s, ok := recover().(stopped); ok {
			w = r.w
			w.Event = s.event
		}
	}()
	switch shape {
	case ShapeNone:
	case ShapeOne:
		r.single()
	case ShapeResult, ShapeCursor:
		for more := true; more; {
			more = r.result(shape == ShapeCursor)
		}
	case ShapeRows, ShapeFields:
		r.rows()
	default:
		r.head()
		r.stop(Malformed)
	}
	r.stop(Done)
	return w
}

// head returns the visible part of the next payload and the length of its first packet. It skips
// progress reports, but not the payload.
func (r *reference) head() (head []byte, size int) {
	for {
		rest := r.b[r.w.Accepted:]
		if len(rest) < 4 {
			r.stop(NeedMore)
		}
		size = int(binary.LittleEndian.Uint32(rest) & 0xffffff)
		need := min(size, 23)
		if len(rest) < 4+need {
			r.stop(NeedMore)
		}
		head = rest[4 : 4+need]
		if r.caps&Progress == 0 || size < 4 || [3]byte(head) != [3]byte{0xff, 0xff, 0xff} || head[3] == '#' {
			return head, size
		}
		r.pass()
	}
}

// pass goes over the next payload with all packets that it takes.
func (r *reference) pass() {
	for size := 0xffffff; size == 0xffffff; {
		rest := r.b[r.w.Accepted:]
		if len(rest) < 4 {
			r.stop(NeedMore)
		}
		size = int(binary.LittleEndian.Uint32(rest) & 0xffffff)
		r.w.PacketNum = rest[3]
		if len(rest) < 4+size {
			r.w.Accepted = len(r.b)
			r.stop(NeedMore)
		}
		r.w.Accepted += 4 + size
	}
}

// integer takes a length-encoded integer off the front of b.
func (r *reference) integer(b []byte) (n uint64, rest []byte) {
	extra := 0
	switch {
	case len(b) == 0 || b[0] == 0xfb || b[0] == 0xff:
		r.stop(Malformed)
	case b[0] >= 0xfc:
		extra = []int{2, 3, 8}[b[0]-0xfc]
	default:
		return uint64(b[0]), b[1:]
	}
	if len(b) < 1+extra {
		r.stop(Malformed)
	}
	for i := extra; i > 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n, b[1+extra:]
}

func (r *reference) okPacket(head []byte) {
	_, rest := r.integer(head[1:])
	_, rest = r.integer(rest)
	if len(rest) < 4 {
		r.stop(Malformed)
	}
	r.w.Status, r.w.Warnings = Status(binary.LittleEndian.Uint16(rest)), binary.LittleEndian.Uint16(rest[2:])
	r.pass()
}

func (r *reference) eofPacket(head []byte) {
	if len(head) < 5 {
		r.stop(Malformed)
	}
	r.w.Warnings, r.w.Status = binary.LittleEndian.Uint16(head[1:]), Status(binary.LittleEndian.Uint16(head[3:]))
	r.pass()
}

func (r *reference) errPacket(head []byte) {
	if len(head) < 3 {
		r.stop(Malformed)
	}
	r.w.ErrCode = binary.LittleEndian.Uint16(head[1:])
	r.pass()
	r.stop(Done)
}

func (r *reference) single() {
	head, size := r.head()
	switch {
	case size == 0:
		r.pass()
	case head[0] == 0xff:
		r.errPacket(head)
	case head[0] == 0xfe && size >= 7 && r.caps&DeprecateEOF != 0:
		r.okPacket(head)
	case head[0] == 0xfe && size < 9:
		r.eofPacket(head)
	case head[0] == 0 && size >= 7:
		r.okPacket(head)
	default:
		r.pass()
	}
}

// result reads one result, perhaps of a cursor, and says whether another follows.
func (r *reference) result(cursor bool) (more bool) {
	head, size := r.head()
	if size == 0 {
		r.stop(Malformed)
	}
	switch head[0] {
	case 0:
		r.okPacket(head)
		return r.w.Status&8 != 0
	case 0xff:
		r.errPacket(head)
	case 0xfb:
		r.pass()
		r.w.Files = append(r.w.Files, r.w.Accepted)
		return true
	}
	columns, rest := r.integer(head)
	if columns == 0 || size > len(head) {
		r.stop(Malformed)
	}
	defined := true
	if r.caps&(OptionalMetadata|CacheMetadata) != 0 {
		if len(rest) == 0 {
			r.stop(Malformed)
		}
		defined, rest = rest[0] != 0, rest[1:]
	}
	if len(rest) > 0 {
		r.stop(Malformed)
	}
	r.w.Rows = true
	r.pass()
	for ; columns > 0 && defined; columns-- {
		head, size := r.head()
		if size == 0 {
			r.stop(Malformed)
		}
		if head[0] == 0xff {
			r.errPacket(head)
		}
		r.pass()
	}
	if r.caps&DeprecateEOF == 0 {
		head, size := r.head()
		if size > 0 && head[0] == 0xff {
			r.errPacket(head)
		}
		if size == 0 || head[0] != 0xfe {
			r.stop(Malformed)
		}
		r.eofPacket(head)
		if cursor && r.w.Status&0x48 == 0x40 {
			return false
		}
		if r.w.Status&0x1008 == 0x1008 {
			more = true
		}
	}
	r.rows()
	return more || r.w.Status&8 != 0
}

func (r *reference) rows() {
	for {
		head, size := r.head()
		switch {
		case size > 0 && head[0] == 0xff:
			r.errPacket(head)
		case size > 0 && head[0] == 0xfe && r.caps&DeprecateEOF != 0 && size != 0xffffff:
			r.okPacket(head)
			return
		case size > 0 && head[0] == 0xfe && r.caps&DeprecateEOF == 0 && size < 9:
			r.eofPacket(head)
			return
		}
		r.pass()
	}
}

// FuzzAnswer walks over any bytes, whole and in pieces, and compares with the
// reference.
func FuzzAnswer(f *testing.F) {
	framing := []Capability{DeprecateEOF, OptionalMetadata, CacheMetadata, Progress}
	for i, c := range answerCases() {
		var flags uint8
		for bit, flag := range framing {
			if c.caps.Has(flag) {
				flags |= 1 << bit
			}
		}
		f.Add(uint8(c.shape), flags, uint64(i), c.bytes)
		f.Add(uint8(c.shape), flags, uint64(i), slices.Concat(c.bytes, answerBytes(okBytes(0, 2, 0, ""))))
	}
	f.Fuzz(func(t *testing.T, shape, flags uint8, seed uint64, b []byte) {
		caps := classic
		for bit, flag := range framing {
			if flags&(1<<bit) != 0 {
				caps |= flag
			}
		}
		s := Shape(shape % uint8(ShapePrepare+2))
		want := referenceWalk(s, caps, b)
		if got := walkIn(t, s, caps, b); !got.equal(want) {
			t.Fatalf("whole: got %+v, want %+v", got, want)
		}
		if len(b) < 4096 {
			if got := walkIn(t, s, caps, b, everyByte(len(b))...); !got.equal(want) {
				t.Fatalf("byte by byte: got %+v, want %+v", got, want)
			}
		}
		random := rand.New(rand.NewPCG(seed, 1))
		for range 4 {
			var cuts []int
			for at := 0; at <= len(b); at += 1 + random.IntN(1+len(b)) {
				cuts = append(cuts, at)
			}
			if got := walkIn(t, s, caps, b, cuts...); !got.equal(want) {
				t.Fatalf("cut at %d: got %+v, want %+v", cuts, got, want)
			}
		}
	})
}
