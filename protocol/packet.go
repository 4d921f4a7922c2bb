package protocol

import (
	"encoding/binary"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// HeaderSize is the length of a packet header: three bytes of payload length, one of packet number.
const HeaderSize = 4

// MaxFragment is the payload length of a packet that continues in the next one.
const MaxFragment = 1<<24 - 1

// First bytes of answers. Their meaning depends on the place in the answer: see Answer.
const (
	headerOK          = 0x00
	headerLocalInfile = 0xfb
	headerEOF         = 0xfe
	headerERR         = 0xff
)

// Status is the server status word of OK and EOF packets
// (https://dev.mysql.com/doc/dev/mysql-server/latest/mysql__com_8h.html, SERVER_STATUS_flags_enum).
type Status uint16

// The status bits that the proxy uses.
const (
	InTransaction      = Status(mysql.SERVER_STATUS_IN_TRANS)
	Autocommit         = Status(mysql.SERVER_STATUS_AUTOCOMMIT)
	MoreResults        = Status(mysql.SERVER_MORE_RESULTS_EXISTS)
	CursorExists       = Status(mysql.SERVER_STATUS_CURSOR_EXISTS)
	NoBackslashEscapes = Status(mysql.SERVER_STATUS_NO_BACKSLASH_ESCAPED)
	OutParams          = Status(mysql.SERVER_PS_OUT_PARAMS)
	InReadOnlyTrans    = Status(0x2000)
	ANSIQuotes         = Status(0x8000)
)

// Has reports whether s has all bits of want.
func (s Status) Has(want Status) bool { return s&want == want }

// ErrMalformed is the error for bytes that the protocol does not allow at their place.
var ErrMalformed = errors.New("malformed packet")

// PayloadLen returns the payload length in a packet header. header has at least three bytes.
func PayloadLen(header []byte) int {
	_ = header[2]
	return int(header[0]) | int(header[1])<<8 | int(header[2])<<16
}

// PutHeader writes a packet header into the first four bytes of b.
func PutHeader(b []byte, payloadLen int, packetNum uint8) {
	_ = b[3]
	b[0], b[1], b[2], b[3] = byte(payloadLen), byte(payloadLen>>8), byte(payloadLen>>16), packetNum
}

// AppendPacket appends payload as packets numbered from packetNum, and returns the next number. A
// payload of 16 MB and more becomes several packets. If its length is a multiple of MaxFragment,
// the last one is empty.
func AppendPacket(b, payload []byte, packetNum uint8) ([]byte, uint8) {
	for {
		n := min(len(payload), MaxFragment)
		b = append(b, byte(n), byte(n>>8), byte(n>>16), packetNum)
		b = append(b, payload[:n]...)
		payload = payload[n:]
		packetNum++
		if n < MaxFragment {
			return b, packetNum
		}
	}
}

// AppendLenEncInt appends n as a length-encoded integer.
func AppendLenEncInt(b []byte, n uint64) []byte {
	switch {
	case n < 251:
		return append(b, byte(n))
	case n < 1<<16:
		return append(b, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(b, 0xfe), n)
}

// ReadLenEncInt reads a length-encoded integer at the start of b. size is the number of its bytes.
// ok is false if b is too short or begins with 0xfb (NULL) or 0xff, which begin no integer.
func ReadLenEncInt(b []byte) (n uint64, size int, ok bool) {
	if len(b) == 0 {
		return 0, 0, false
	}
	switch b[0] {
	case 0xfb, 0xff:
		return 0, 0, false
	case 0xfc:
		if len(b) < 3 {
			return 0, 0, false
		}
		return uint64(b[1]) | uint64(b[2])<<8, 3, true
	case 0xfd:
		if len(b) < 4 {
			return 0, 0, false
		}
		return uint64(b[1]) | uint64(b[2])<<8 | uint64(b[3])<<16, 4, true
	case 0xfe:
		if len(b) < 9 {
			return 0, 0, false
		}
		return binary.LittleEndian.Uint64(b[1:]), 9, true
	}
	return uint64(b[0]), 1, true
}

// AppendLenEncBytes appends the length of s and s.
func AppendLenEncBytes[T string | []byte](b []byte, s T) []byte {
	return append(AppendLenEncInt(b, uint64(len(s))), s...)
}

// ReadLenEncBytes reads a length-encoded string at the start of b. val is a part of b, and size is
// the number of bytes with the length. ok is false if b is too short or the string is NULL.
func ReadLenEncBytes(b []byte) (val []byte, size int, ok bool) {
	n, k, ok := ReadLenEncInt(b)
	if !ok || n > uint64(len(b)-k) {
		return nil, 0, false
	}
	end := k + int(n)
	return b[k:end:end], end, true
}
