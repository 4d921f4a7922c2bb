package ticket

import (
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
)

// Bound returns the ticket with the values of its parameters, which have these types; false if the
// server must read them.
func (t *Ticket) Bound(types []uint16, params *protocol.Parameters, values []byte) (*Ticket, bool) {
	if len(types) == 0 {
		return t, true
	}
	bound := *t
	rest := values
	for i := range types {
		if params.IsNull(i) {
			return nil, false
		}
		typ := types[i]
		size, ok := protocol.BinaryValueSize(uint8(typ), rest)
		if !ok {
			return nil, false
		}
		value := rest[:size]
		rest = rest[size:]
		switch i {
		case t.KeyParam:
			bound.Key, ok = textParameter(typ, value)
		case t.StepParam:
			bound.Step, ok = stepParameter(typ, value)
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return &bound, true
}

// textParameter reads the value of a parameter that is a text.
func textParameter(typ uint16, b []byte) ([]byte, bool) {
	switch uint8(typ) {
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR:
		text, _, ok := protocol.ReadLenEncBytes(b)
		return text, ok
	}
	return nil, false // numbers and byte strings compare differently
}

// stepParameter reads what a ticket adds to a counter. Some drivers send numbers as text.
func stepParameter(typ uint16, b []byte) (n uint64, ok bool) {
	negative := false
	switch uint8(typ) {
	case mysql.MYSQL_TYPE_YEAR: // servers read it in several ways
		return 0, false
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR:
		text, _, ok := protocol.ReadLenEncBytes(b)
		if !ok || len(text) == 0 || text[0] < '1' || text[0] > '9' {
			return 0, false
		}
		var err error
		if n, err = strconv.ParseUint(string(text), 10, 64); err != nil {
			return 0, false
		}
	default:
		if n, negative, ok = (protocol.Parameter{Type: typ}).Integer(b); !ok {
			return 0, false
		}
	}
	return n, !negative && n >= 1 && n <= sequence.MaxAdvance
}
