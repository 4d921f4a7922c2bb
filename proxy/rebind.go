package proxy

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

// hiddenParam is a parameter of a prepared statement that the client does not know
// of: the proxy put it where a call stood, and gives it a value at each execution.
type hiddenParam struct {
	at       int    // the server's index of the parameter
	name     []byte // of the sequence
	previous bool   // the value is the previous LAST_INSERT_ID(), not a number
}

// placeParams computes where each of the client's parameters is on the server.
func (p *prepared) placeParams(total int) {
	if len(p.hidden) == 0 {
		return
	}
	hidden := p.hidden
	p.place = make([]uint16, 0, p.params)
	for i := range total {
		if len(hidden) > 0 && hidden[0].at == i {
			hidden = hidden[1:]
			continue
		}
		p.place = append(p.place, uint16(i))
	}
}

// longData takes note that a parameter comes by COM_STMT_SEND_LONG_DATA, and turns
// the index in the command into the server's.
func (p *prepared) longData(index []byte) {
	if p.place == nil {
		return
	}
	i := int(binary.LittleEndian.Uint16(index))
	if i >= len(p.place) {
		return // the server says what is wrong at the execution
	}
	if p.long == nil {
		p.long = make([]bool, p.params)
	}
	p.long[i] = true
	binary.LittleEndian.PutUint16(index, p.place[i])
}

// A client's COM_STMT_EXECUTE
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html).
const (
	executeHead = 10 // command, statement id, flags, iteration count

	typeUnsignedBigint = uint16(mysql.MYSQL_TYPE_LONGLONG) | 0x8000
)

// bind takes note of the types that an execution binds, and checks what comes before
// the values.
func (p *prepared) bind(payload []byte) error {
	if p.params == 0 {
		return nil
	}
	rest := payload[executeHead:]
	size := (p.params + 7) / 8
	if len(rest) < size+1 {
		return errMalformed
	}
	rebound, rest := rest[size] == 1, rest[size+1:]
	switch {
	case rebound && len(rest) >= 2*p.params:
		p.types = append(p.types[:0], rest[:2*p.params]...)
	case rebound, len(p.types) != 2*p.params:
		return errMalformed
	}
	return nil
}

// appendExecute appends the payload of an execution with the hidden parameters'
// values in their places. values belong to p.hidden, in order. The types are always
// bound anew, also where the client relied on those of its last execution. bind must
// have accepted the payload.
func (p *prepared) appendExecute(b, payload []byte, values []uint64) ([]byte, error) {
	n := p.params
	rest := payload[executeHead:]
	var nulls []byte
	if n > 0 {
		size := (n + 7) / 8
		nulls = rest[:size]
		rebound := rest[size] == 1
		rest = rest[size+1:]
		if rebound {
			rest = rest[2*n:]
		}
	}

	total := n + len(p.hidden)
	b = append(b, payload[:executeHead]...)
	binary.LittleEndian.PutUint32(b[len(b)-executeHead+1:], p.backendID)
	nullsAt := len(b)
	b = append(b, make([]byte, (total+7)/8)...)
	b = append(b, 1)
	hidden, own := p.hidden, 0
	for i := range total {
		if len(hidden) > 0 && hidden[0].at == i {
			hidden = hidden[1:]
			b = binary.LittleEndian.AppendUint16(b, typeUnsignedBigint)
			continue
		}
		b = append(b, p.types[2*own], p.types[2*own+1])
		if nulls[own/8]&(1<<(own%8)) != 0 {
			b[nullsAt+i/8] |= 1 << (i % 8)
		}
		own++
	}
	hidden, own = p.hidden, 0
	for i := range total {
		if len(hidden) > 0 && hidden[0].at == i {
			hidden = hidden[1:]
			b = binary.LittleEndian.AppendUint64(b, values[0])
			values = values[1:]
			continue
		}
		isNull := nulls[own/8]&(1<<(own%8)) != 0
		isLong := p.long != nil && p.long[own]
		if !isNull && !isLong {
			size, ok := binarySize(p.types[2*own], rest)
			if !ok {
				return nil, errMalformed
			}
			b = append(b, rest[:size]...)
			rest = rest[size:]
		}
		own++
	}
	return b, nil
}

// binarySize returns how many bytes the value of a type takes at the start of b
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html).
func binarySize(typ byte, b []byte) (size int, ok bool) {
	switch typ {
	case mysql.MYSQL_TYPE_NULL:
		return 0, true
	case mysql.MYSQL_TYPE_TINY:
		size = 1
	case mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_YEAR:
		size = 2
	case mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_FLOAT:
		size = 4
	case mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_DOUBLE:
		size = 8
	case mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIME:
		if len(b) == 0 {
			return 0, false
		}
		size = 1 + int(b[0])
	default: // strings, blobs, decimals, JSON, geometry
		if _, size, ok = protocol.ReadLenEncBytes(b); !ok {
			return 0, false
		}
	}
	return size, size <= len(b)
}
