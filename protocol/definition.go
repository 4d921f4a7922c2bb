package protocol

import "github.com/go-mysql-org/go-mysql/mysql"

// DefinedType returns the type of a column from its definition. ok is false if that is
// malformed.
func DefinedType(definition []byte, caps Capability) (typ uint8, ok bool) {
	return definedType(definition, caps.Has(ExtendedMetadata))
}

func definedType(b []byte, extended bool) (typ uint8, ok bool) {
	strings := 6 // catalog, schema, table and its own name, column and its own name
	if extended {
		strings++
	}
	for range strings {
		_, n, ok := ReadLenEncBytes(b)
		if !ok {
			return 0, false
		}
		b = b[n:]
	}
	const at = 1 + 2 + 4 // length of what follows, character set, column length
	if len(b) <= at {
		return 0, false
	}
	return b[at], true
}

// lengthEncoded is the width of values that tell their length.
const lengthEncoded = -1

// binaryWidth returns how many bytes a value of a type takes in a binary row
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html).
// Dates and times begin with a byte for their length, as a short string does.
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
