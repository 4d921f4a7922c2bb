package protocol

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// DefinedType returns the type in a column definition. ok is false if the definition is malformed.
func DefinedType(definition []byte, caps Capability) (typ uint8, ok bool) {
	return definedType(definition, caps.Has(ExtendedMetadata))
}

func definedType(definition []byte, extended bool) (typ uint8, ok bool) {
	_, typ, _, ok = readDefinition(definition, extended)
	return typ, ok
}

// DefinesAutoIncrement returns the column's name in a column definition, and whether the column has
// AUTO_INCREMENT. ok is false if the definition is malformed.
func DefinesAutoIncrement(definition []byte, caps Capability) (name []byte, auto, ok bool) {
	name, _, flags, ok := readDefinition(definition, caps.Has(ExtendedMetadata))
	return name, flags&mysql.AUTO_INCREMENT_FLAG != 0, ok
}

func readDefinition(b []byte, extended bool) (name []byte, typ uint8, flags uint16, ok bool) {
	for range 6 { // catalog, schema, table and its alias, column and its alias
		s, n, ok := ReadLenEncBytes(b)
		if !ok {
			return nil, 0, 0, false
		}
		name, b = s, b[n:]
	}
	if extended {
		_, n, ok := ReadLenEncBytes(b)
		if !ok {
			return nil, 0, 0, false
		}
		b = b[n:]
	}
	const at = 1 + 2 + 4 // length of the fixed fields, character set, column length
	if len(b) < at+3 {
		return nil, 0, 0, false
	}
	return name, b[at], binary.LittleEndian.Uint16(b[at+1:]), true
}

// lengthEncoded is the width of values that start with their length.
const lengthEncoded = -1

// binaryWidth returns the number of bytes of a value in a binary row
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html). Dates
// and times start with a length byte, like a short string.
func binaryWidth(typ uint8) int {
	switch typ {
	case mysql.MYSQL_TYPE_NULL:
		return 0
	case mysql.MYSQL_TYPE_TINY:
		return 1
	case mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_YEAR:
		return 2
	case mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_FLOAT:
		return 4
	case mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_DOUBLE:
		return 8
	}
	return lengthEncoded
}
