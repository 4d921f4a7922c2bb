package protocol

import "strconv"

// Placeholder is the value that stands in a result where a Filler writes a number: the
// largest there is, so that no number is longer.
const Placeholder = 1<<64 - 1

// The placeholder as it comes, with its length in a text row, and as eight bytes in a
// binary one.
const (
	textPlaceholder   = "\x1418446744073709551615"
	binaryPlaceholder = "\xff\xff\xff\xff\xff\xff\xff\xff"
)

// FillOptions say what a Filler does to an answer.
type FillOptions struct {
	// Columns are, for each result of the answer in order, the columns that hold the
	// placeholder in every row: indexes in ascending order, or -1 for the last column, -2
	// for the one before it. Results without, and those behind, are passed on as they are.
	Columns [][]int
	// Binary: the rows are those of a prepared statement.
	Binary bool
	// Types are the columns' types where definitions may be left out of a binary result.
	Types []uint8
	// Take gives numbers for at least one and at most rows rows of a result: one for each
	// of its columns, row by row. The slice is used until the next call. An error ends the
	// result with Refused.
	Take func(result, rows int) ([]uint64, error)
}

// Filler passes on an answer, as Answer finds it, with numbers in the place of
// placeholders. It changes rows where they lie and holds none of them, with one
// exception: of a text row of 16 MB and more, which gets shorter, 16 MB are held, since
// its packets end elsewhere then. One Filler serves one answer.
type Filler struct {
	opts         FillOptions
	answer       *Answer
	extended     bool // definitions have a field more
	columns      []int
	count        int      // columns of the result
	types        []uint8  // of the result's columns, as far as they were defined
	result       int      // index of the result
	numbers      []uint64 // for rows to come
	num          uint8    // of the next packet
	begun        bool     // num is set
	err          error
	left         int  // bytes of a packet's payload still to come
	inRow        bool // they are of a row that is filled
	row          filledRow
	hold         []byte // of a long row: a packet under way, with its header
	holding, due bool   // the row is held; hold has a packet to be written
	written      int    // bytes of hold that Held has returned
}

// NewFiller begins an answer of ShapeResult that a walks over.
func NewFiller(a *Answer, caps Capability, opts FillOptions) *Filler {
	a.Begin(ShapeResult, caps)
	return &Filler{opts: opts, answer: a, extended: caps.Has(ExtendedMetadata)}
}

// maxRowsAhead bounds the numbers that are taken at a time.
const maxRowsAhead = 1 << 11

// maxDefinition bounds a column definition: names, and the characters of a set.
const maxDefinition = 1 << 16

// Walk goes over b, the bytes of the server that follow those it accepted before, and
// changes them in place. The first n are accepted; what they have become is b[:w], to be
// written to the client. Events are those of Answer.Walk, and Held and Refused.
func (f *Filler) Walk(b []byte) (n, w int, ev Event) {
	a := f.answer
	f.dropWritten()
	for {
		if f.due {
			return n, w, Held
		}
		if f.left > 0 {
			k := min(f.left, len(b)-n)
			var ok bool
			if w, ok = f.payload(b, w, b[n:n+k]); !ok {
				return n, w, Malformed
			}
			n += k
			f.left -= k
			if f.left > 0 {
				return n, w, NeedMore
			}
			if !a.continued && !f.endRow() {
				return n, w, Malformed
			}
			continue
		}
		if !a.continued {
			if a.wantsFile {
				return n, w, WantsFile
			}
			if a.phase == phaseEnded {
				return n, w, Done
			}
		}
		rest := b[n:]
		if len(rest) < HeaderSize {
			return n, w, NeedMore
		}
		size := PayloadLen(rest)
		if !a.continued {
			ok, whole := f.first(rest, size)
			switch {
			case f.err != nil:
				return n, w, Refused
			case !ok:
				return n, w, Malformed
			case !whole:
				return n, w, NeedMore
			}
		}
		a.continued = size == MaxFragment
		f.left = size
		if !f.holding {
			f.header(b[w:], rest, size)
			w += HeaderSize
		}
		n += HeaderSize
		if size == 0 && !f.endRow() {
			return n, w, Malformed
		}
	}
}

// header writes the header of the packet that begins with rest.
func (f *Filler) header(to, rest []byte, size int) {
	if !f.begun {
		f.num, f.begun = rest[3], true
	}
	if f.inRow && size < MaxFragment {
		size -= f.row.saved
	}
	f.answer.PacketNum = f.num
	PutHeader(to, size, f.num)
	f.num++
}

// PacketNum is the number of the next packet to the client, behind the first.
func (f *Filler) PacketNum() uint8 { return f.num }

// Err is why Walk said Refused.
func (f *Filler) Err() error { return f.err }

// Held returns a packet that is to be written behind what Walk accepted before it said
// Held. It is valid until the next Walk.
func (f *Filler) Held() []byte {
	size := min(len(f.hold)-HeaderSize, MaxFragment)
	f.answer.PacketNum = f.num
	PutHeader(f.hold, size, f.num)
	f.num++
	f.written = HeaderSize + size
	// A row whose last packet is full ends with an empty one.
	f.due = !f.holding && size == MaxFragment
	return f.hold[:f.written]
}

// dropWritten drops what Held has returned, and the memory with a row's last packet.
func (f *Filler) dropWritten() {
	switch {
	case f.written == 0:
		return
	case !f.holding && !f.due:
		f.hold = nil
	default:
		n := copy(f.hold[HeaderSize:], f.hold[f.written:])
		f.hold = f.hold[:HeaderSize+n]
	}
	f.written = 0
}

// Types returns the types of the columns of the last result that was filled, as far as
// they were defined. Only those of binary rows are looked at.
func (f *Filler) Types() []uint8 { return f.types }

// first looks at the first packet of what stands in its place: b begins with its header.
// whole is false if more bytes are needed for that.
func (f *Filler) first(b []byte, size int) (ok, whole bool) {
	a := f.answer
	head := b[HeaderSize:]
	need := min(size, headBytes)
	if a.phase == phaseDefs && f.opts.Binary {
		if need = size; need > maxDefinition {
			return false, false
		}
	}
	if len(head) < need {
		return true, false
	}
	head = head[:min(need, len(head))]
	before := a.phase
	switch {
	case a.progress && IsProgress(head):
		return true, true
	case before == phaseRows && f.columns != nil && a.isRow(head, size):
		if len(f.numbers) < len(f.columns) {
			if f.numbers, f.err = f.opts.Take(f.result, f.rowsAhead(b)); f.err != nil {
				return true, true
			}
		}
		f.beginRow(size)
		return true, true
	case before == phaseDefs && f.opts.Binary && f.columns != nil && size > 0 && head[0] != headerERR:
		typ, ok := definedType(head, f.extended)
		if !ok {
			return false, false
		}
		f.types = append(f.types, typ)
	}
	if !a.packet(head[:min(len(head), headBytes)], size) {
		return false, false
	}
	switch {
	case before == phaseFirst && a.phase != phaseFirst && a.phase != phaseEnded && !a.wantsFile:
		return f.beginResult(head), true
	case before == phaseFirst && a.phase == phaseFirst && !a.wantsFile,
		before == phaseRows && a.phase == phaseFirst:
		f.result++
		f.columns, f.types, f.numbers = nil, nil, nil
	}
	return true, true
}

// isRow says whether a packet where rows stand is one, given its head.
func (a *Answer) isRow(head []byte, size int) bool {
	switch {
	case size == 0:
		return true
	case head[0] == headerERR:
		return false
	case head[0] == headerEOF && a.deprecateEOF:
		return size == MaxFragment
	case head[0] == headerEOF:
		return size >= 9
	}
	return true
}

// beginResult takes note of a result set, given the packet that it begins with.
func (f *Filler) beginResult(head []byte) bool {
	if f.result >= len(f.opts.Columns) || len(f.opts.Columns[f.result]) == 0 {
		f.columns = nil
		return true
	}
	n, _, _ := ReadLenEncInt(head)
	f.count, f.columns = int(n), make([]int, 0, len(f.opts.Columns[f.result]))
	for _, c := range f.opts.Columns[f.result] {
		if c < 0 {
			c += f.count
		}
		if c < 0 || c >= f.count || len(f.columns) > 0 && c <= f.columns[len(f.columns)-1] {
			return false
		}
		f.columns = append(f.columns, c)
	}
	f.row.texts = make([]numberText, len(f.columns))
	return true
}

// rowsAhead counts the rows that begin in b, which begins with one.
func (f *Filler) rowsAhead(b []byte) (rows int) {
	for len(b) >= HeaderSize && rows < maxRowsAhead {
		size := PayloadLen(b)
		head := b[HeaderSize:]
		if need := min(size, headBytes); len(head) < need || !f.answer.isRow(head[:need], size) {
			break
		}
		rows++
		if size == MaxFragment || size > len(head) {
			break
		}
		b = head[size:]
	}
	return max(rows, 1)
}

// beginRow begins a row whose first packet has a payload of size bytes.
func (f *Filler) beginRow(size int) {
	k := len(f.columns)
	r := &f.row
	*r = filledRow{f: f, texts: r.texts, head: r.head[:0], numbers: f.numbers[:k], col: -1}
	f.numbers = f.numbers[k:]
	f.inRow = true
	if f.opts.Binary {
		r.state, r.need = rowHead, 1+(f.count+2+7)/8
		if len(f.types) == 0 {
			f.types = f.opts.Types
		}
		return
	}
	for i, n := range r.numbers {
		t := &r.texts[i]
		t.n = 1 + len(strconv.AppendUint(t.b[1:1], n, 10))
		t.b[0] = byte(t.n - 1)
		r.saved += len(textPlaceholder) - t.n
	}
	r.next()
	if size == MaxFragment && r.saved > 0 {
		f.holding = true
		f.hold = append(make([]byte, 0, HeaderSize+MaxFragment+2*BufferSize), 0, 0, 0, 0)
	}
}

// payload passes on a part of a packet's payload.
func (f *Filler) payload(b []byte, w int, part []byte) (int, bool) {
	if !f.inRow {
		return w + copy(b[w:], part), true
	}
	if !f.holding {
		out, ok := f.row.pass(b[:w], part)
		return len(out), ok
	}
	var ok bool
	f.hold, ok = f.row.pass(f.hold, part)
	f.due = len(f.hold)-HeaderSize >= MaxFragment
	return w, ok
}

// endRow ends the row that is being passed, if one is.
func (f *Filler) endRow() bool {
	if !f.inRow {
		return true
	}
	f.inRow = false
	if f.holding {
		f.holding, f.due = false, true
	}
	return f.row.state == rowRest
}
