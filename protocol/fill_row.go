package protocol

import "encoding/binary"

// filledRow is the state of a row that is passed on: the value that the next byte belongs to.
type filledRow struct {
	binary    bool
	columns   []int        // to fill
	types     []uint8      // of all columns of a binary row
	numbers   []uint64     // for the row's columns
	texts     []numberText // the numbers as text
	saved     int          // bytes by which the row gets shorter
	state     rowState
	col       int    // column of the current value
	fill      int    // index of the next column to fill
	at        int    // bytes of the placeholder that were seen
	remaining uint64 // bytes still to come of the value
	need      int    // length of head
	head      []byte // of a binary row: a zero byte and the bitmap of NULLs
	prefix    [9]byte
	prefixN   int
}

// numberText is a number as it stands in a text row, with its length.
type numberText struct {
	b [len(textPlaceholder)]byte
	n int
}

type rowState uint8

const (
	rowHead   rowState = iota // within head
	rowPrefix                 // within the length of a value
	rowValue                  // within a value that passes unchanged
	rowFill                   // within a placeholder
	rowRest                   // after the last placeholder
)

// pass handles part, the next bytes of the row, and appends the result to dst. dst may share part's
// memory if it ends at or before its start: writing never overtakes reading. The result is false if
// the row is malformed.
func (r *filledRow) pass(dst, part []byte) ([]byte, bool) {
	for len(part) > 0 {
		switch r.state {
		case rowRest:
			return append(dst, part...), true
		case rowHead:
			k := min(r.need-len(r.head), len(part))
			r.head = append(r.head, part[:k]...)
			dst = append(dst, part[:k]...)
			part = part[k:]
			if len(r.head) == r.need && !r.next() {
				return dst, false
			}
		case rowPrefix:
			k := 0
			if r.prefixN == 0 {
				n, size, ok := ReadLenEncInt(part)
				if ok {
					r.remaining, k = n, size
				} else if part[0] == 0xfb {
					r.remaining, k = 0, 1
				}
			}
			whole := k > 0
			if !whole { // the length is incomplete
				if r.prefixN == len(r.prefix) {
					return dst, false
				}
				r.prefix[r.prefixN] = part[0]
				r.prefixN++
				k = 1
				r.remaining, _, whole = ReadLenEncInt(r.prefix[:r.prefixN])
			}
			dst = append(dst, part[:k]...)
			part = part[k:]
			if whole {
				r.prefixN, r.state = 0, rowValue
				if r.remaining == 0 && !r.next() {
					return dst, false
				}
			}
		case rowValue:
			k := int(min(r.remaining, uint64(len(part))))
			dst = append(dst, part[:k]...)
			part = part[k:]
			if r.remaining -= uint64(k); r.remaining == 0 && !r.next() {
				return dst, false
			}
		case rowFill:
			var ok bool
			if dst, part, ok = r.write(dst, part); !ok {
				return dst, false
			}
		}
	}
	return dst, true
}

// write replaces the placeholder bytes at the start of part by the same part of a number.
func (r *filledRow) write(dst, part []byte) (out, rest []byte, ok bool) {
	placeholder := textPlaceholder
	if r.binary {
		placeholder = binaryPlaceholder
	}
	k := min(len(placeholder)-r.at, len(part))
	if string(part[:k]) != placeholder[r.at:r.at+k] {
		return dst, part, false
	}
	var eight [8]byte
	var number []byte
	if r.binary {
		binary.LittleEndian.PutUint64(eight[:], r.numbers[r.fill])
		number = eight[:]
	} else {
		t := &r.texts[r.fill]
		number = t.b[:t.n]
	}
	dst = append(dst, number[min(r.at, len(number)):min(r.at+k, len(number))]...)
	if r.at += k; r.at == len(placeholder) {
		r.at = 0
		r.fill++
		if !r.next() {
			return dst, part, false
		}
	}
	return dst, part[k:], true
}

// next moves to the next value that is not NULL.
func (r *filledRow) next() bool {
	if r.fill == len(r.numbers) {
		r.state = rowRest
		return true
	}
	for {
		r.col++
		null := r.binary && r.head[1+(r.col+2)/8]&(1<<((r.col+2)%8)) != 0
		switch {
		case r.col == r.columns[r.fill]:
			r.state = rowFill
			return !null
		case null:
			continue
		case !r.binary:
			r.state = rowPrefix
			return true
		case r.col >= len(r.types):
			return false
		}
		width := binaryWidth(r.types[r.col])
		switch width {
		case 0:
			continue
		case lengthEncoded:
			r.state = rowPrefix
		default:
			r.state, r.remaining = rowValue, uint64(width)
		}
		return true
	}
}
