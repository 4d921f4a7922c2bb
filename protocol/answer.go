package protocol

import "encoding/binary"

// Event says why Answer.Walk stopped.
type Event uint8

const (
	// NeedMore says that the bytes ended inside the answer.
	NeedMore Event = iota
	// Done says that the answer ended.
	Done
	// WantsFile says that the server asks for a file (LOAD DATA LOCAL). The client sends packets up
	// to an empty one. The caller then calls FileSent, and the walk goes on.
	WantsFile
	// Malformed says that the bytes are no answer. The connection cannot be used any more.
	Malformed
	// Stored says that packets of a long row wait in Filler.Stored. Only Filler.Walk returns it.
	Stored
	// Refused says that there is no number for the next row: see Filler.Err. Only Filler.Walk
	// returns it. Answer.Walk can go on from the first byte that was not accepted.
	Refused
)

// phase says which packet of an answer comes next.
type phase uint8

const (
	phaseFirst   phase = iota // OK, ERR, LOCAL INFILE or a column count
	phaseOne                  // the only packet of the answer
	phaseDefs                 // column definitions
	phaseDefsEnd              // the EOF after the definitions; without DEPRECATE_EOF only
	phaseRows                 // rows or their terminator
	phaseEnded
	phaseNever // no packet is allowed
)

// headBytes is the number of payload bytes that a walk looks at. An OK needs the most: a header
// byte, two integers of up to nine bytes, status and warnings.
const headBytes = 23

// Answer finds the end of a server's answer by walking from packet header to packet header. It
// looks into the first packet, the terminators, and the first byte of each row. It decodes, copies
// and keeps nothing.
//
// Its fields have the contents of the last OK, EOF or ERR. One Answer serves a connection for all
// its life. Begin prepares it for the next answer.
type Answer struct {
	// Status is the status of the last OK or EOF that had one.
	Status Status
	// Warnings is the warning count of the last OK or EOF.
	Warnings uint16
	// ErrCode is the code of the ERR that ended the answer, or 0.
	ErrCode uint16
	// InsertID is the last insert id in an OK of the answer, or 0.
	InsertID uint64
	// Rows reports whether the answer has a result set.
	Rows bool
	// Results counts the results that have ended without an error.
	Results int
	// PacketNum is the number of the last packet that the walk has passed.
	PacketNum uint8

	caps      Capability // that client and backend agreed on
	shape     Shape
	phase     phase
	continued bool   // the next packet continues a payload of 16 MB
	wantsFile bool   // the packet being passed is a LOCAL INFILE request
	outParams bool   // the rows are a procedure's OUT parameters
	skip      int    // bytes still to pass of the current packet's payload
	defs      uint64 // column definitions still to come
}

// Begin prepares for an answer of the given shape. caps are the capabilities that client and
// backend agreed on. Answers of ShapePrepare and ShapeUnknown cannot be walked: any byte is
// Malformed.
func (a *Answer) Begin(shape Shape, caps Capability) {
	*a = Answer{Status: a.Status, caps: caps, shape: shape}
	switch shape {
	case ShapeNone:
		a.phase = phaseEnded
	case ShapeOne:
		a.phase = phaseOne
	case ShapeRows, ShapeFields:
		a.phase = phaseRows
	case ShapeResult, ShapeCursor:
		a.phase = phaseFirst
	default:
		a.phase = phaseNever
	}
}

// FileSent says that the client's file went to the server, with the empty packet at its end. The
// server's answer to the statement follows.
func (a *Answer) FileSent() { a.wantsFile = false }

// Walk goes over b, which starts where the server's last accepted byte ended. It accepts the first
// n bytes, and the caller may pass them on. With NeedMore the rest is part of a packet's head: the
// caller presents it again together with the bytes that follow. Walk never accepts bytes after the
// end of the answer.
func (a *Answer) Walk(b []byte) (n int, ev Event) {
	for {
		if a.skip > 0 {
			k := min(a.skip, len(b)-n)
			n += k
			a.skip -= k
			if a.skip > 0 {
				return n, NeedMore
			}
		}
		if !a.continued {
			if a.wantsFile {
				return n, WantsFile
			}
			if a.phase == phaseEnded {
				return n, Done
			}
		}
		if a.phase == phaseRows && !a.continued {
			n += a.passRows(b[n:])
		}
		rest := b[n:]
		if len(rest) < HeaderSize {
			return n, NeedMore
		}
		size := PayloadLen(rest)
		if !a.continued {
			head := rest[HeaderSize:]
			if need := min(size, headBytes); len(head) < need {
				return n, NeedMore
			} else if !a.packet(head[:need], size) {
				return n, Malformed
			}
		}
		a.PacketNum = rest[3]
		a.continued = size == MaxFragment
		a.skip = size
		n += HeaderSize
	}
}

// passRows passes the complete rows at the start of b. Most bytes of a result pass here.
func (a *Answer) passRows(b []byte) (n int) {
	for len(b)-n > HeaderSize {
		size := PayloadLen(b[n:])
		first := b[n+HeaderSize]
		if size >= MaxFragment || size > len(b)-n-HeaderSize || first >= headerEOF || size == 0 {
			return n
		}
		a.PacketNum = b[n+3]
		n += HeaderSize + size
	}
	return n
}

// packet handles the head of a packet with a payload of size bytes. The head is the whole payload,
// or at least its first headBytes.
func (a *Answer) packet(head []byte, size int) (ok bool) {
	if a.caps.Has(Progress) && IsProgress(head) {
		return true
	}
	switch a.phase {
	case phaseOne:
		a.phase = phaseEnded
		if size == 0 {
			return true // an empty string
		}
		switch {
		case head[0] == headerERR:
			return a.err(head)
		case head[0] == headerEOF && a.caps.Has(DeprecateEOF) && size >= 7:
			return a.ok(head)
		case head[0] == headerEOF && size < 9:
			return a.eof(head)
		case head[0] == headerOK && size >= 7:
			return a.ok(head)
		}
		return true // COM_STATISTICS: a bare string
	case phaseFirst:
		return a.first(head, size)
	case phaseDefs:
		if size > 0 && head[0] == headerERR { // no definition begins with ERR's byte
			a.phase = phaseEnded
			return a.err(head)
		}
		a.defs--
		if a.defs == 0 {
			a.phase = phaseRows
			if !a.caps.Has(DeprecateEOF) {
				a.phase = phaseDefsEnd
			}
		}
		return size > 0
	case phaseDefsEnd:
		if size > 0 && head[0] == headerERR {
			a.phase = phaseEnded
			return a.err(head)
		}
		if size == 0 || head[0] != headerEOF || !a.eof(head) {
			return false
		}
		a.phase = phaseRows
		a.outParams = a.Status.Has(OutParams | MoreResults)
		// The flag also reports cursors that a routine has opened. After such a routine's results
		// there is always more, at least its OK. A cursor opened for the statement itself is the
		// only result.
		if a.shape == ShapeCursor && a.Status.Has(CursorExists) && !a.Status.Has(MoreResults) {
			a.phase = phaseEnded // COM_STMT_FETCH brings the rows
		}
		return true
	case phaseRows:
		return a.row(head, size)
	}
	return false
}

func (a *Answer) first(head []byte, size int) bool {
	if size == 0 {
		return false
	}
	switch head[0] {
	case headerOK:
		a.phase = phaseEnded
		if !a.ok(head) {
			return false
		}
		a.Results++
		if a.Status.Has(MoreResults) {
			a.phase = phaseFirst
		}
		return true
	case headerERR:
		a.phase = phaseEnded
		return a.err(head)
	case headerLocalInfile:
		a.wantsFile = true
		return true
	}
	n, follow, ok := ParseColumnCount(head[:min(size, len(head))], a.caps.HasAny(MetadataFlags))
	if !ok || size > len(head) {
		return false
	}
	a.Rows = true
	switch {
	case follow:
		a.defs, a.phase = n, phaseDefs
	case a.caps.Has(DeprecateEOF):
		a.phase = phaseRows
	default:
		a.phase = phaseDefsEnd
	}
	return true
}

// ParseColumnCount reads the first packet of a result set. follow reports whether column
// definitions come next: a flag decides that if MetadataFlags was agreed on. Without DeprecateEOF
// an EOF ends the definitions in either case. MySQL's documentation has the two fields in the wrong
// order.
func ParseColumnCount(payload []byte, metadataFlag bool) (columns uint64, follow, ok bool) {
	columns, n, ok := ReadLenEncInt(payload)
	rest := payload[n:]
	if metadataFlag {
		if len(rest) == 0 {
			return 0, false, false
		}
		return columns, rest[0] != 0, ok && columns > 0 && len(rest) == 1
	}
	return columns, true, ok && columns > 0 && len(rest) == 0
}

// IsProgress reports whether a packet is a progress report of MariaDB. Such a report may precede
// any packet of an answer. It looks like an ERR of code 65535 without an SQLSTATE. head is at least
// the first four bytes of the payload.
func IsProgress(head []byte) bool {
	return len(head) > 3 && head[0] == headerERR && head[1] == 0xff && head[2] == 0xff && head[3] != '#'
}

func (a *Answer) row(head []byte, size int) bool {
	if size == 0 {
		return true
	}
	switch {
	case head[0] == headerERR:
		a.phase = phaseEnded
		return a.err(head)
	case head[0] == headerEOF && size < 9 && !a.caps.Has(DeprecateEOF):
		a.phase = phaseEnded
		if !a.eof(head) {
			return false
		}
	case head[0] == headerEOF && size < MaxFragment && a.caps.Has(DeprecateEOF):
		a.phase = phaseEnded
		if !a.ok(head) {
			return false
		}
	default:
		return true
	}
	a.Results++
	// MySQL announces more results before a procedure's OUT parameters. The EOF after them no
	// longer does, and yet the procedure's OK follows.
	if (a.Status.Has(MoreResults) || a.outParams) && a.shape != ShapeRows && a.shape != ShapeFields {
		a.phase, a.outParams = phaseFirst, false
	}
	return true
}

// ok reads an OK from its head. The OK may stand for an EOF.
func (a *Answer) ok(head []byte) bool {
	id, status, warnings, ok := parseOKHead(head)
	if ok {
		a.Status, a.Warnings = status, warnings
		if id != 0 {
			a.InsertID = id
		}
	}
	return ok
}

func (a *Answer) eof(head []byte) bool {
	if len(head) < 5 {
		return false
	}
	a.Warnings = binary.LittleEndian.Uint16(head[1:])
	a.Status = Status(binary.LittleEndian.Uint16(head[3:]))
	return true
}

func (a *Answer) err(head []byte) bool {
	if len(head) < 3 {
		return false
	}
	a.ErrCode = binary.LittleEndian.Uint16(head[1:])
	return true
}
