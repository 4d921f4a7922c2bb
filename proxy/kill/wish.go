package kill

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement"
)

// Wish is the content of a KILL, as a text or as a command.
type Wish struct {
	Query bool   // ends the statement, not the connection
	words string // before the id; "" for COM_PROCESS_KILL
}

// WishOf returns the content of a KILL's text.
func WishOf(t *statement.KillTarget) Wish {
	words := "KILL "
	switch {
	case t.Hard:
		words += "HARD "
	case t.Soft:
		words += "SOFT "
	}
	if t.Query {
		words += "QUERY "
	}
	return Wish{Query: t.Query, words: words}
}

// Command returns the wish as a command to a server whose connection has the id.
func (k Wish) Command(id uint32) (cmd protocol.Command, argument string) {
	if k.words == "" {
		return protocol.ComProcessKill, string(binary.LittleEndian.AppendUint32(nil, id))
	}
	return protocol.ComQuery, k.Text(id)
}

// Text returns the wish as a statement.
func (k Wish) Text(id uint32) string {
	words := k.words
	if words == "" {
		words = "KILL "
	}
	return words + strconv.FormatUint(uint64(id), 10)
}

// ConnectionID parses a connection id. It returns 0 if text is none.
func ConnectionID(text string) uint64 {
	whole, fraction, _ := strings.Cut(text, ".")
	id, err := strconv.ParseUint(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0") != "" {
		return 0
	}
	return id
}

// ParameterID returns the connection id in the value of a parameter, or 0.
func ParameterID(typ uint16, b []byte) uint64 {
	size, ok := protocol.BinaryValueSize(uint8(typ), b)
	if !ok {
		return 0
	}
	b = b[:size]
	switch uint8(typ) {
	case mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_LONG:
		if id, negative, _ := (protocol.Parameter{Type: typ}).Integer(b); !negative {
			return id
		}
	case mysql.MYSQL_TYPE_DOUBLE:
		if f := math.Float64frombits(binary.LittleEndian.Uint64(b)); f == math.Trunc(f) && f > 0 && f <= math.MaxUint32 {
			return uint64(f)
		}
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_DECIMAL, mysql.MYSQL_TYPE_NEWDECIMAL,
		mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_TINY_BLOB, mysql.MYSQL_TYPE_MEDIUM_BLOB, mysql.MYSQL_TYPE_LONG_BLOB:
		if text, _, ok := protocol.ReadLenEncBytes(b); ok {
			return ConnectionID(string(text))
		}
	}
	return 0
}
