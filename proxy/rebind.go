package proxy

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// hiddenParam is a parameter of a prepared statement that the client does not know
// of: the proxy put it where a call stood, and gives it a value at each execution.
type hiddenParam struct {
	at        int  // the server's index of the parameter
	plan.Slot      // of a sequence
	previous  bool // the value is the previous LAST_INSERT_ID()
	block     keys.Part
	leads     bool // it is the first number of the first row that is returned
	from      argument
}

// paramType is the type that the parameter is bound with. A LASTVAL is bound in digits:
// where a number is, MariaDB makes the column one longer than LASTVAL's own.
func (h *hiddenParam) paramType() uint16 {
	if h.Sequence != nil && h.Func != statement.Nextval {
		return uint16(mysql.MYSQL_TYPE_VAR_STRING)
	}
	return typeUnsignedBigint
}

// appendValue appends the value of a hidden parameter of a type.
func appendValue(b []byte, n keys.Number, typ uint16) []byte {
	if typ == typeUnsignedBigint {
		return binary.LittleEndian.AppendUint64(b, n.Value)
	}
	var digits [20]byte
	return protocol.AppendLenEncBytes(b, strconv.AppendUint(digits[:0], n.Value, 10))
}

// placeParams computes where each of the client's parameters is on the server.
func (p *prepared) placeParams(total int) {
	if len(p.hidden) == 0 {
		return
	}
	p.place = make([]uint16, 0, p.params)
	for w := (walk{p: p}); w.at < total; {
		at := w.at
		h, _ := w.next()
		if h == nil {
			p.place = append(p.place, uint16(at))
			continue
		}
		for range h.markers() {
			p.place = append(p.place, noPlace)
		}
	}
}

// walk goes through the parameters of the server's statement in their order: those of the client,
// and the hidden ones, in the place of which some of the client's may stand.
type walk struct {
	p      *prepared
	at     int // the next one
	own    int // the client's next one
	hidden int // the next one in p.hidden
}

// next returns the hidden parameter that is next, or nil, and the client's first one in its place.
func (w *walk) next() (h *hiddenParam, own int) {
	own = w.own
	if hidden := w.p.hidden; w.hidden < len(hidden) && hidden[w.hidden].at == w.at {
		h = &hidden[w.hidden]
		w.hidden++
		w.own += h.markers()
	} else {
		w.own++
	}
	w.at++
	return h, own
}

// longData takes note that a parameter comes by COM_STMT_SEND_LONG_DATA, and turns
// the index in the command into the server's. It is false if the server has no such
// parameter, and data was kept here.
func (p *prepared) longData(index, data []byte) bool {
	p.longSent = true
	if p.place == nil && p.ticket == nil && p.own == nil {
		return true
	}
	i := int(binary.LittleEndian.Uint16(index))
	if i >= p.params {
		return true // the server says what is wrong at the execution
	}
	if p.long == nil {
		p.long = make([]bool, p.params)
	}
	p.long[i] = true
	if p.own == nil && p.place == nil {
		return true
	}
	if p.own != nil || p.isArgument(i) {
		p.keepArgument(i, data)
		return false
	}
	binary.LittleEndian.PutUint16(index, p.place[i])
	return true
}

// A client's COM_STMT_EXECUTE
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html).
const (
	executeHead = 10 // command, statement id, flags, iteration count

	typeUnsignedBigint = uint16(mysql.MYSQL_TYPE_LONGLONG) | 0x8000
)

// execution is a client's COM_STMT_EXECUTE of a statement with hidden parameters, taken
// apart. It shares the command's memory.
type execution struct {
	head   []byte // up to the count of parameters
	count  int    // parameters, with the attributes behind those of the statement
	params protocol.Parameters
	values []byte
}

// cut takes an execution apart, and takes note of the types that it binds. attributes
// says whether the session has agreed on QueryAttributes.
func (p *prepared) cut(payload []byte, attributes bool) (e execution, err error) {
	e = execution{head: payload[:executeHead], count: p.params, values: payload[executeHead:]}
	if attributes && (p.params > 0 || payload[5]&protocol.ParameterCountAvailable != 0) {
		count, size, ok := protocol.ReadLenEncInt(e.values)
		switch {
		case !ok || count > 1<<16:
			return e, errMalformed
		case count < uint64(p.params):
			return e, sqlError(mysql.ER_WRONG_ARGUMENTS, "HY000", "Incorrect arguments to COM_STMT_EXECUTE")
		}
		e.count, e.values = int(count), e.values[size:]
	}
	if e.count == 0 {
		return e, nil
	}
	var ok bool
	if e.params, e.values, ok = protocol.CutParameters(e.values, e.count, attributes); !ok {
		return e, errMalformed
	}
	switch {
	case e.params.Rebound:
		p.types, p.before = p.before[:0], p.types
		types := e.params.Types
		for range p.params {
			var param protocol.Parameter
			param, types, _ = protocol.CutParameter(types, attributes)
			param.Name = bytes.Clone(param.Name)
			p.types = append(p.types, param)
		}
		e.params.Types = types // the attributes'
	case len(p.types) != p.params:
		return e, errExecuteArguments
	case e.count > p.params: // attributes have no last execution
		return e, errMalformed
	}
	return e, nil
}

// errExecuteArguments is what servers say of an execution without types where none
// were ever bound.
var errExecuteArguments = sqlError(mysql.ER_WRONG_ARGUMENTS, "HY000", "Incorrect arguments to mysqld_stmt_execute")

// unbind takes the types back that cut has taken note of. MySQL does not keep those of an
// execution that it refuses as malformed, MariaDB does.
func (p *prepared) unbind(e *execution) {
	if e.params.Rebound {
		p.types, p.before = p.before, p.types
	}
}

// complete says whether the values of all the client's parameters are there.
func (p *prepared) complete(e *execution) bool {
	rest := e.values
	for i := range p.params {
		if e.params.IsNull(i) || p.long != nil && p.long[i] {
			continue
		}
		size, ok := protocol.BinaryValueSize(uint8(p.types[i].Type), rest)
		if !ok {
			return false
		}
		rest = rest[size:]
	}
	return true
}

// executionSize is the size of the payload that appendExecute appends, or a little more.
func (p *prepared) executionSize(e *execution, attributes bool) int {
	const count, typ, name, number = 9, 2, 1, 21
	size := executeHead + count + (e.count+len(p.hidden)+7)/8 + 1 + len(e.params.Types) + len(e.values) + typ*p.params + (typ+number)*len(p.hidden)
	if !attributes {
		return size
	}
	size += name * len(p.hidden)
	for i := range p.types {
		if size += name + len(p.types[i].Name); len(p.types[i].Name) > 250 {
			size += count - name
		}
	}
	return size
}

// appendExecute appends the payload of an execution with the hidden parameters'
// values in their places. values belong to p.hidden, in order. The types are always
// bound anew, also where the client relied on those of its last execution. cut must
// have made e.
func (p *prepared) appendExecute(b []byte, e *execution, attributes bool, values []keys.Number) ([]byte, error) {
	b = append(b, e.head...)
	binary.LittleEndian.PutUint32(b[len(b)-executeHead+1:], p.backendID)
	arguments := p.argumentCount()
	count := e.count + len(p.hidden) - arguments
	if attributes {
		b = protocol.AppendLenEncInt(b, uint64(count))
	}
	nullsAt := len(b)
	b = append(b, make([]byte, (count+7)/8)...)
	b = append(b, 1)
	for w := (walk{p: p}); w.at < count; {
		i := w.at
		h, own := w.next()
		null := false
		if h != nil {
			v := values[w.hidden-1]
			b = protocol.Parameter{Type: h.paramType()}.Append(b, attributes)
			if null = v.Null; !null && h.paramType() != typeUnsignedBigint {
				if err := lastInParameter(v); err != nil {
					return nil, err
				}
			}
		} else {
			if own < p.params {
				b = p.types[own].Append(b, attributes)
			}
			null = e.params.IsNull(own) || p.isEmptied(0, own)
		}
		if null {
			b[nullsAt+i/8] |= 1 << (i % 8)
		}
	}
	b = append(b, e.params.Types...)
	rest := e.values
	for w := (walk{p: p}); w.at < p.params+len(p.hidden)-arguments; {
		h, own := w.next()
		for i := own; i < w.own; i++ {
			if e.params.IsNull(i) || p.long != nil && p.long[i] {
				continue
			}
			size, ok := protocol.BinaryValueSize(uint8(p.types[i].Type), rest)
			if !ok {
				return nil, errMalformed
			}
			if h == nil && !p.isEmptied(0, i) {
				b = append(b, rest[:size]...)
			}
			rest = rest[size:]
		}
		if h != nil && !values[w.hidden-1].Null {
			b = appendValue(b, values[w.hidden-1], h.paramType())
		}
	}
	if e.count > p.params {
		b = append(b, rest...)
	}
	return b, nil
}

// lastInParameter refuses what a prepared statement cannot be given as BIGINT.
func lastInParameter(v keys.Number) error {
	if v.Value > math.MaxInt64 {
		return notSupported("LASTVAL of %d, which is above the signed BIGINT, in a prepared statement is not supported: send it as text", v.Value)
	}
	return nil
}
