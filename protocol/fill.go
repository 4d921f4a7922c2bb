package protocol

import "strconv"

// Placeholder is the value in a server's result that a Filler replaces by a number. It is the
// largest value, so no number is longer.
const Placeholder = 1<<64 - 1

// The placeholder's bytes: in a text row with its length, and in a binary row.
const (
	textPlaceholder   = "\x1418446744073709551615"
	binaryPlaceholder = "\xff\xff\xff\xff\xff\xff\xff\xff"
)

// FillOptions say how a Filler changes an answer.
type FillOptions struct {
	// Columns are those of the first result that hold the placeholder in every row. Indexes are in
	// ascending order; -1 is the last column and -2 the one before it. Later results pass unchanged.
	Columns []int
	// Binary reports whether the answer is to a prepared statement.
	Binary bool
	// Types are the columns' types, for a binary result whose definitions may be omitted.
	Types []uint8
	// Take returns numbers for at least one and at most rows rows. The numbers are in row order, one
	// for each column to fill. The slice is used until the next call. An error ends the result with
	// Refused.
	Take func(rows int) ([]uint64, error)
}

// Filler passes on an answer and replaces placeholders by numbers. It walks with an Answer. It
// changes rows in place and keeps none, except for a text row of 16 MB and more: that row gets
// shorter, so its packets end elsewhere, and the Filler keeps one packet of 16 MB. One Filler
// serves one answer.
type Filler struct {
	opts         FillOptions
	answer       *Answer
	columns      []int
	count        int      // number of columns in the result
	types        []uint8  // of the columns whose definitions have come
	later        bool     // the first result has ended
	numbers      []uint64 // for rows to come
	num          uint8    // of the next packet
	begun        bool     // num is set
	err          error
	remaining    int  // bytes still to come of the packet's payload
	inRow        bool // the current packet belongs to a row to fill
	row          filledRow
	hold         []byte // of a long row: the current packet, with its header
	holding, due bool   // hold keeps the row; hold has a packet to write
	written      int    // bytes of hold that the caller has
}

// NewFiller prepares for an answer of ShapeResult. a walks over it.
func NewFiller(a *Answer, caps Capability, opts FillOptions) *Filler {
	a.Begin(ShapeResult, caps)
	return &Filler{opts: opts, answer: a}
}

// maxRowsAhead bounds the rows that numbers are taken for at a time.
const maxRowsAhead = 1 << 11

// maxDefinition bounds a column definition, in bytes: names, and the members of a SET.
const maxDefinition = 1 << 16

// Walk goes over b, which starts where the server's last accepted byte ended, and changes it in
// place. It accepts the first n bytes. The caller writes b[:w] to the client instead of them.
// Events are those of Answer.Walk, and Stored and Refused.
func (f *Filler) Walk(b []byte) (n, w int, ev Event) {
	a := f.answer
	f.dropWritten()
	for {
		if f.due {
			return n, w, Stored
		}
		if f.remaining > 0 {
			k := min(f.remaining, len(b)-n)
			var ok bool
			if w, ok = f.payload(b, w, b[n:n+k]); !ok {
				return n, w, Malformed
			}
			n += k
			f.remaining -= k
			if f.remaining > 0 {
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
		f.remaining = size
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

// header writes the header of a packet; rest begins with the server's header.
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

// PacketNum is the number of the next packet to the client. It is not valid before the first.
func (f *Filler) PacketNum() uint8 { return f.num }

// Err is the reason for Refused.
func (f *Filler) Err() error { return f.err }

// Stored returns a packet to write after the bytes that Walk accepted when it returned Stored. The
// packet is valid until the next Walk.
func (f *Filler) Stored() []byte {
	size := min(len(f.hold)-HeaderSize, MaxFragment)
	f.answer.PacketNum = f.num
	PutHeader(f.hold, size, f.num)
	f.num++
	f.written = HeaderSize + size
	// A row whose last packet is full needs an empty packet at its end.
	f.due = !f.holding && size == MaxFragment
	return f.hold[:f.written]
}

// dropWritten drops the packet that Stored has returned. With the last packet of a row it frees the
// memory.
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

// Types returns the column types of the filled result, as far as definitions have come. The
// Filler reads them for a binary result only.
func (f *Filler) Types() []uint8 { return f.types }

// first handles the first packet of a payload. b begins with the packet's header. whole is false if
// more bytes are needed.
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
	case a.caps.Has(Progress) && IsProgress(head):
		return true, true
	case before == phaseRows && f.columns != nil && a.isRow(head, size):
		if len(f.numbers) < len(f.columns) {
			if f.numbers, f.err = f.opts.Take(f.rowsAhead(b)); f.err != nil {
				return true, true
			}
		}
		f.beginRow(size)
		return true, true
	case before == phaseDefs && f.opts.Binary && f.columns != nil && size > 0 && head[0] != headerERR:
		typ, ok := definedType(head, a.caps.Has(ExtendedMetadata))
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
		f.later = true
		f.columns, f.types, f.numbers = nil, nil, nil
	}
	return true, true
}

// isRow reports whether a packet among the rows is a row, given its head.
func (a *Answer) isRow(head []byte, size int) bool {
	switch {
	case size == 0:
		return true
	case head[0] == headerERR:
		return false
	case head[0] == headerEOF && a.caps.Has(DeprecateEOF):
		return size == MaxFragment
	case head[0] == headerEOF:
		return size >= 9
	}
	return true
}

// beginResult prepares for a result set, given its first packet.
func (f *Filler) beginResult(head []byte) bool {
	if f.later || len(f.opts.Columns) == 0 {
		return true
	}
	n, _, _ := ReadLenEncInt(head)
	f.count, f.columns = int(n), make([]int, 0, len(f.opts.Columns))
	for _, c := range f.opts.Columns {
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

// rowsAhead counts the rows that begin in b. b begins with a row.
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
	if f.opts.Binary && len(f.types) == 0 {
		f.types = f.opts.Types
	}
	*r = filledRow{binary: f.opts.Binary, columns: f.columns, types: f.types, texts: r.texts, head: r.head[:0], numbers: f.numbers[:k], col: -1}
	f.numbers = f.numbers[k:]
	f.inRow = true
	if f.opts.Binary {
		r.state, r.need = rowHead, 1+(f.count+2+7)/8
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

// payload passes on part of a packet's payload.
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

// endRow ends the current row, if there is one.
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
