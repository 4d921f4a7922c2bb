package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// filledAnswer is a server's answer with placeholders, and the client's expected answer.
type filledAnswer struct {
	server, client []byte
	numServer      uint8
	numClient      uint8
}

func (a *filledAnswer) both(payload []byte) { a.each(payload, payload) }

func (a *filledAnswer) each(server, client []byte) {
	a.server, a.numServer = AppendPacket(a.server, server, a.numServer)
	a.client, a.numClient = AppendPacket(a.client, client, a.numClient)
}

func definition(typ uint8, extended bool) []byte {
	var b []byte
	for _, s := range [...]string{"def", "schema", "t", "t", "column", "column"} {
		b = AppendLenEncBytes(b, s)
	}
	if extended {
		b = AppendLenEncBytes(b, "\x00\x04uuid")
	}
	return append(b, 0x0c, 63, 0, 20, 0, 0, 0, typ, 0x21, 0, 0, 0, 0)
}

// fillCase says what an answer looks like.
type fillCase struct {
	caps    Capability
	binary  bool
	types   []uint8
	columns []int // as FillOptions has them
	rows    int
	value   func(rng *rand.Rand) int // length of a string
	number  uint64                   // of the first row
	end     string                   // "eof", "more", "err"
	omitted bool
	noNulls bool
}

// append appends the result and returns the numbers that its rows have.
func (c *fillCase) append(a *filledAnswer, rng *rand.Rand) (numbers []uint64) {
	filled := map[int]bool{}
	for _, i := range c.columns {
		if i < 0 {
			i += len(c.types)
		}
		filled[i] = true
	}
	count := AppendLenEncInt(nil, uint64(len(c.types)))
	if c.caps.HasAny(MetadataFlags) {
		follow := byte(1)
		if c.omitted {
			follow = 0
		}
		count = append(count, follow)
	}
	a.both(count)
	eof := []byte{headerEOF, 0, 0, 2, 0}
	if !c.omitted {
		for _, typ := range c.types {
			a.both(definition(typ, c.caps.Has(ExtendedMetadata)))
		}
	}
	if !c.caps.Has(DeprecateEOF) {
		a.both(eof)
	}
	next := c.number
	for range c.rows {
		if c.caps.Has(Progress) && rng.IntN(4) == 0 {
			a.both([]byte{headerERR, 0xff, 0xff, 1, 1, 0})
		}
		var server, client []byte
		if c.binary {
			server = make([]byte, 1+(len(c.types)+9)/8)
			for i := range c.types {
				if !filled[i] && (rng.IntN(3) == 0 && !c.noNulls || c.types[i] == mysql.MYSQL_TYPE_NULL) {
					server[1+(i+2)/8] |= 1 << ((i + 2) % 8)
				}
			}
			client = append(client, server...)
		}
		for i, typ := range c.types {
			null := c.binary && server[1+(i+2)/8]&(1<<((i+2)%8)) != 0
			switch {
			case filled[i]:
				n := next
				numbers = append(numbers, n)
				next += 7
				if c.binary {
					server = append(server, binaryPlaceholder...)
					client = binary.LittleEndian.AppendUint64(client, n)
				} else {
					server = append(server, textPlaceholder...)
					client = AppendLenEncBytes(client, strconv.FormatUint(n, 10))
				}
				continue
			case null:
				continue
			case !c.binary && !c.noNulls && rng.IntN(4) == 0:
				server, client = append(server, 0xfb), append(client, 0xfb)
				continue
			}
			var value []byte
			if w := binaryWidth(typ); c.binary && w >= 0 {
				value = bytes.Repeat([]byte{0xfe}, w)
			} else {
				value = AppendLenEncBytes(nil, bytes.Repeat([]byte{byte(rng.IntN(256))}, c.value(rng)))
			}
			server, client = append(server, value...), append(client, value...)
		}
		a.each(server, client)
	}
	switch {
	case c.end == "err":
		a.both([]byte("\xff\x25\x05#70100killed"))
	case c.caps.Has(DeprecateEOF):
		a.both([]byte{headerEOF, 0, 0, 2 | c.status(), 0, 0, 0})
	default:
		a.both([]byte{headerEOF, 0, 0, 2 | c.status(), 0})
	}
	return numbers
}

func (c *fillCase) status() byte {
	if c.end == "more" {
		return byte(MoreResults)
	}
	return 0
}

// fill lets f walk over b in pieces of the sizes that next gives.
func fill(f *Filler, b []byte, next func() int) (out []byte, rest int, ev Event) {
	b = bytes.Clone(b)
	end := min(next(), len(b))
	for {
		n, w, ev := f.Walk(b[:end])
		out = append(out, b[:w]...)
		b, end = b[n:], end-n
		switch ev {
		case Stored:
			out = append(out, f.Stored()...)
		case NeedMore:
			if end == len(b) {
				return out, len(b), ev
			}
			end = min(end+next(), len(b))
		default:
			return out, len(b), ev
		}
	}
}

func TestRowsAreFilledHoweverTheyAreCut(t *testing.T) {
	short := func(rng *rand.Rand) int { return rng.IntN(12) }
	mixed := func(rng *rand.Rand) int { return []int{0, 250, 251, 70_000}[rng.IntN(4)] }
	str, long, date := uint8(mysql.MYSQL_TYPE_VAR_STRING), uint8(mysql.MYSQL_TYPE_LONGLONG), uint8(mysql.MYSQL_TYPE_DATETIME)
	cases := []fillCase{
		{types: []uint8{long}, columns: []int{0}, rows: 12, number: 8},
		{types: []uint8{long, str}, columns: []int{0}},
		{types: []uint8{long, str, str}, columns: []int{0}, rows: 12, number: 8},
		{types: []uint8{str, long, str}, columns: []int{1}, rows: 12, number: math.MaxUint64 - 5000},
		{types: []uint8{str, str, long, str, long}, columns: []int{2, -1}, rows: 12, value: mixed, number: 95},
		{types: []uint8{long, 1, 2, 13, 9, 3, 4, 5, 6, date, long, str, 8}, columns: []int{0, 10}, rows: 12, number: 1 << 40, binary: true},
		{types: []uint8{1, 2, 13, 9, 3, 4, 5, 6, date, long, str, 3}, columns: []int{-3}, rows: 12, number: 1, binary: true},
		{types: bytes.Repeat([]byte{str}, 300), columns: []int{0, 299}, rows: 9, number: 1, binary: true},
	}
	for i, base := range cases {
		if base.value == nil {
			base.value = short
		}
		for _, caps := range []Capability{0, DeprecateEOF, DeprecateEOF | Progress, OptionalMetadata, ExtendedMetadata | DeprecateEOF} {
			for _, end := range []string{"eof", "err", "more"} {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(caps)))
				c := base
				c.caps, c.end = caps, end
				a := filledAnswer{numServer: 1, numClient: 1}
				want := c.append(&a, rng)
				if end == "more" {
					// An OK, and results that are not filled, one of them empty.
					a.both([]byte{headerOK, 0, 0, 2 | byte(MoreResults), 0, 0, 0})
					c.columns = nil
					c.append(&a, rng)
					c.rows = 0
					c.append(&a, rng)
					c.end, c.rows = "eof", base.rows
					c.append(&a, rng)
				}
				for _, size := range []int{1, 7, 50, BufferSize} {
					var answer Answer
					given := 0
					f := NewFiller(&answer, caps, FillOptions{Columns: base.columns, Binary: c.binary, Take: func(rows int) ([]uint64, error) {
						k := min(rows*len(base.columns), len(want)-given)
						given += k
						return want[given-k : given], nil
					}})
					got, rest, ev := fill(f, a.server, func() int { return 1 + rng.IntN(size) })
					name := fmt.Sprintf("case %d, capabilities %x, %s, pieces of %d bytes", i, caps, end, size)
					if ev != Done || rest != 0 {
						t.Fatalf("%s: got event %d with %d bytes left", name, ev, rest)
					}
					if !bytes.Equal(got, a.client) {
						t.Fatalf("%s: got\n%x\nwant\n%x", name, got, a.client)
					}
					if given != len(want) {
						t.Fatalf("%s: %d numbers were taken, want %d", name, given, len(want))
					}
				}
			}
		}
	}
}

func TestRowsOfManyPacketsAreFilled(t *testing.T) {
	str, long := uint8(mysql.MYSQL_TYPE_BLOB), uint8(mysql.MYSQL_TYPE_LONGLONG)
	// Lengths of the row with a placeholder: one packet, two that become one, two of which one is
	// empty. The placeholder in the last column crosses the border of packets.
	for _, row := range []int{MaxFragment - 1, MaxFragment + 4, MaxFragment + 18} {
		for _, columns := range [][]int{{2}, {0}}[:min(max(row-MaxFragment, 1), 2)] {
			for _, bin := range []bool{false, true} {
				const first = 70_000
				second := row - len(textPlaceholder) - 4 - first - 4
				if bin {
					second = row - 2 - 8 - 4 - first - 4
				}
				length := second
				types := []uint8{str, str, str}
				types[columns[0]] = long
				c := fillCase{
					caps: DeprecateEOF, types: types, columns: columns, rows: 1, number: 99, binary: bin, end: "eof",
					noNulls: true, value: func(*rand.Rand) int { length = first + second - length; return length },
				}
				a := filledAnswer{numServer: 250, numClient: 250}
				rng := rand.New(rand.NewPCG(1, 1))
				want := c.append(&a, rng)
				var answer Answer
				f := NewFiller(&answer, c.caps, FillOptions{Columns: columns, Binary: bin, Take: func(rows int) ([]uint64, error) {
					k := min(rows, len(want))
					defer func() { want = want[k:] }()
					return want[:k], nil
				}})
				got, rest, ev := fill(f, a.server, func() int { return BufferSize })
				if ev != Done || rest != 0 || !bytes.Equal(got, a.client) {
					t.Errorf("a row of %d bytes, column %d, binary %v: got event %d, %d bytes left, %d bytes, want %d, or others",
						row, columns[0], bin, ev, rest, len(got), len(a.client))
				}
				if f.hold != nil {
					t.Errorf("a row of %d bytes: got %d bytes of memory at the end, want none", row, cap(f.hold))
				}
			}
		}
	}
}

func TestARowWithoutANumberIsRefused(t *testing.T) {
	long := uint8(mysql.MYSQL_TYPE_LONGLONG)
	c := fillCase{caps: DeprecateEOF, types: []uint8{long, long}, columns: []int{0}, rows: 9, number: 5, end: "eof", value: func(*rand.Rand) int { return 3 }}
	a := filledAnswer{numServer: 1, numClient: 1}
	want := c.append(&a, rand.New(rand.NewPCG(1, 1)))
	var answer Answer
	ranOut := errors.New("ran out")
	f := NewFiller(&answer, c.caps, FillOptions{Columns: c.columns, Take: func(rows int) ([]uint64, error) {
		if len(want) == 6 {
			return nil, ranOut
		}
		defer func() { want = want[1:] }()
		return want[:1], nil
	}})
	got, rest, ev := fill(f, a.server, func() int { return 40 })
	if ev != Refused || !errors.Is(f.Err(), ranOut) {
		t.Fatalf("got event %d, %v", ev, f.Err())
	}
	if !bytes.HasPrefix(a.client, got) {
		t.Errorf("got %x, want the beginning of %x", got, a.client)
	}
	if f.PacketNum() != 1+3+3 {
		t.Errorf("the next packet's number: got %d, want 7", f.PacketNum())
	}
	if n, ev := answer.Walk(a.server[len(a.server)-rest:]); ev != Done || n != rest {
		t.Errorf("the rest: got event %d, %d of %d bytes", ev, n, rest)
	}
}

func TestAnAnswerWithoutItsPlaceholdersIsMalformed(t *testing.T) {
	head := func() *filledAnswer {
		a := &filledAnswer{}
		a.both([]byte{2})
		a.both(definition(mysql.MYSQL_TYPE_LONGLONG, false))
		a.both(definition(mysql.MYSQL_TYPE_LONGLONG, false))
		return a
	}
	for _, c := range []struct {
		row    string
		binary bool
	}{
		{"\x011\x012", false},
		{"\xfb\x012", false},
		{"\x015", false},
		{"\x011\x1418446744073709551614", false},
		{"\x011\x1418446744073709551", false},
		{"\x0500000", false},
		{"", false},
		{"\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", true},
		{"\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff", true},
		{"\x00", true},
	} {
		a := head()
		a.both([]byte(c.row))
		var answer Answer
		f := NewFiller(&answer, DeprecateEOF, FillOptions{Columns: []int{1}, Binary: c.binary, Take: func(rows int) ([]uint64, error) {
			return make([]uint64, rows), nil
		}})
		if _, _, ev := fill(f, a.server, func() int { return 100 }); ev != Malformed {
			t.Errorf("row %q: got event %d, want %d", c.row, ev, Malformed)
		}
	}
	for _, columns := range [][]int{{2}, {-3}, {1, 0}, {1, -1}} {
		var answer Answer
		f := NewFiller(&answer, DeprecateEOF, FillOptions{Columns: columns})
		if _, _, ev := fill(f, head().server, func() int { return 100 }); ev != Malformed {
			t.Errorf("columns %v of 2: got event %d, want %d", columns, ev, Malformed)
		}
	}
}

// A server's bytes are not trusted. For any bytes, the Filler reads and writes only inside them,
// and its output is never longer.
func FuzzFiller(f *testing.F) {
	long := uint8(mysql.MYSQL_TYPE_LONGLONG)
	for _, bin := range []bool{false, true} {
		c := fillCase{caps: DeprecateEOF, types: []uint8{long, 253, long}, columns: []int{0, 2}, rows: 3, number: 5, binary: bin, end: "more", value: func(*rand.Rand) int { return 3 }}
		a := filledAnswer{}
		c.append(&a, rand.New(rand.NewPCG(1, 1)))
		f.Add(a.server, bin, true, uint8(7))
		f.Add(a.server, bin, false, uint8(255))
	}
	f.Fuzz(func(t *testing.T, b []byte, bin, deprecate bool, piece uint8) {
		caps := Capability(0)
		if deprecate {
			caps = DeprecateEOF
		}
		var answer Answer
		filler := NewFiller(&answer, caps, FillOptions{Columns: []int{0, 2}, Binary: bin, Take: func(rows int) ([]uint64, error) {
			return make([]uint64, 2*rows), nil
		}})
		if out, _, _ := fill(filler, b, func() int { return int(piece) + 1 }); len(out) > len(b) {
			t.Errorf("%d bytes became %d", len(b), len(out))
		}
	})
}
