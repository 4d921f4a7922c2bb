package protocol

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// ParameterCountAvailable is a flag of COM_STMT_EXECUTE, used with QueryAttributes. It says that
// the command has a parameter count, for attributes, even if the statement has no parameters.
const ParameterCountAvailable = 0x08

// NoAttributes precedes the text of a COM_QUERY without attributes if QueryAttributes was agreed
// on: no parameters, one set of them.
const NoAttributes = "\x00\x01"

// CutAttributes returns the length of the attributes before the text of a COM_QUERY, where
// QueryAttributes was agreed on
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query.html). b is the
// payload after the command byte. It is strict: ok is also false for some forms that a server
// accepts.
func CutAttributes(b []byte) (n int, ok bool) {
	if len(b) >= len(NoAttributes) && string(b[:len(NoAttributes)]) == NoAttributes {
		return len(NoAttributes), true
	}
	count, n, ok := ReadLenEncInt(b)
	if !ok || n == len(b) || b[n] != 1 || count > uint64(len(b)) {
		return 0, false
	}
	rest := b[n+1:]
	if count == 0 {
		return n + 1, true
	}
	head, rest, ok := CutParameters(rest, int(count), true)
	if !ok || !head.Rebound {
		return 0, false
	}
	types := head.Types
	for i := range int(count) {
		var p Parameter
		p, types, _ = CutParameter(types, true)
		if head.IsNull(i) {
			continue
		}
		switch uint8(p.Type) {
		case mysql.MYSQL_TYPE_NULL, mysql.MYSQL_TYPE_YEAR, mysql.MYSQL_TYPE_INT24, typeBool:
			// No client sends these, and servers do not read them as they write them.
			return 0, false
		}
		size, ok := BinaryValueSize(uint8(p.Type), rest)
		if !ok {
			return 0, false
		}
		rest = rest[size:]
	}
	return len(b) - len(rest), true
}

const typeBool = 0xf4 // MYSQL_TYPE_BOOL

// Parameters is the part before the parameter values in a COM_STMT_EXECUTE
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html), or
// before the values of attributes. It shares the command's memory.
type Parameters struct {
	Nulls   []byte // a bit for each parameter
	Rebound bool   // types follow; otherwise those of the last execution apply
	Types   []byte // for CutParameter
}

// IsNull reports whether parameter i is NULL. It then has no value.
func (p *Parameters) IsNull(i int) bool { return p.Nulls[i/8]&(1<<(i%8)) != 0 }

// CutParameters reads the part before the values of count parameters, at least one. named reports
// whether each type has a name, as with QueryAttributes.
func CutParameters(b []byte, count int, named bool) (p Parameters, rest []byte, ok bool) {
	size := (count + 7) / 8
	if len(b) < size+1 {
		return Parameters{}, nil, false
	}
	p.Nulls, p.Rebound, rest = b[:size], b[size] != 0, b[size+1:]
	if !p.Rebound {
		return p, rest, true
	}
	types := rest
	for range count {
		if _, rest, ok = CutParameter(rest, named); !ok {
			return Parameters{}, nil, false
		}
	}
	p.Types = types[:len(types)-len(rest)]
	return p, rest, true
}

// Parameter is the type of one parameter, and its name.
type Parameter struct {
	Type uint16 // the lower byte is the type, 0x8000 means unsigned
	Name []byte // for attributes; a statement's parameters may have one, too
}

// CutParameter reads one entry of Parameters.Types. The name shares b's memory.
func CutParameter(b []byte, named bool) (p Parameter, rest []byte, ok bool) {
	if len(b) < 2 {
		return Parameter{}, nil, false
	}
	p.Type, rest = binary.LittleEndian.Uint16(b), b[2:]
	if !named {
		return p, rest, true
	}
	name, size, ok := ReadLenEncBytes(rest)
	if !ok {
		return Parameter{}, nil, false
	}
	p.Name = name
	return p, rest[size:], true
}

// Append appends the parameter in the form that CutParameter reads.
func (p Parameter) Append(b []byte, named bool) []byte {
	b = binary.LittleEndian.AppendUint16(b, p.Type)
	if named {
		b = AppendLenEncBytes(b, p.Name)
	}
	return b
}

// Integer returns the number that a value of this type is; ok is false for a type that has other
// values than whole numbers. n is undefined if the number is negative.
func (p Parameter) Integer(b []byte) (n uint64, negative, ok bool) {
	const unsigned = 0x8000
	switch uint8(p.Type) {
	case mysql.MYSQL_TYPE_TINY:
		n, negative = uint64(b[0]), int8(b[0]) < 0
	case mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_YEAR:
		v := binary.LittleEndian.Uint16(b)
		n, negative = uint64(v), int16(v) < 0
	case mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_INT24:
		v := binary.LittleEndian.Uint32(b)
		n, negative = uint64(v), int32(v) < 0
	case mysql.MYSQL_TYPE_LONGLONG:
		n = binary.LittleEndian.Uint64(b)
		negative = int64(n) < 0
	default:
		return 0, false, false
	}
	return n, negative && p.Type&unsigned == 0, true
}

// BinaryValueSize returns the length in bytes of the value at the start of b
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html).
func BinaryValueSize(typ uint8, b []byte) (size int, ok bool) {
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
		if _, size, ok = ReadLenEncBytes(b); !ok {
			return 0, false
		}
	}
	return size, size <= len(b)
}
