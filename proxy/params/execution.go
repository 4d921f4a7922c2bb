package params

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// Hidden is a parameter of a prepared statement that the client does not see. The proxy puts it in
// place of a call or a key, and sets its value at each execution.
type Hidden struct {
	At        int  // the server's index of the parameter
	plan.Slot      // the sequence's values
	Previous  bool // the value is the previous LAST_INSERT_ID()
	part      part // of a block, if the server counts
	Leads     bool // it is the first number of the first row in the result
	From      Argument
}

// Lead returns the index of the hidden parameter for the first number of the first row, or -1.
func Lead(hidden []Hidden) int {
	return slices.IndexFunc(hidden, func(h Hidden) bool { return h.Leads })
}

// part is a parameter's part of a block: see statement.AsCounted.
type part uint8

const (
	partBefore part = iota // the number before the first, which is the value
	partBound
	partStep
)

// paramType returns the type to bind the parameter with. A LASTVAL is bound as digits: for a number
// MariaDB makes the column one longer than LASTVAL's own.
func (h *Hidden) paramType() uint16 {
	if h.Bytes { // as a text the server would convert them
		return uint16(mysql.MYSQL_TYPE_BLOB)
	}
	if h.Texts || h.Sequence != nil && h.Func != statement.Nextval {
		return uint16(mysql.MYSQL_TYPE_VAR_STRING)
	}
	return typeUnsignedBigint
}

// size bounds the size of the parameter's value.
func (h *Hidden) size() int {
	const number, digits, text = 8, 21, 65
	switch {
	case h.Texts:
		return text
	case h.paramType() == typeUnsignedBigint:
		return number
	}
	return digits
}

// appendValue appends the value of a hidden parameter of a type.
func appendValue(b []byte, n keys.Number, typ uint16) []byte {
	if typ == typeUnsignedBigint {
		return binary.LittleEndian.AppendUint64(b, n.Value)
	}
	if n.Text != "" {
		return protocol.AppendLenEncBytes(b, []byte(n.Text))
	}
	var digits [20]byte
	return protocol.AppendLenEncBytes(b, strconv.AppendUint(digits[:0], n.Value, 10))
}

// Place computes the server's index of each of the client's parameters.
func (p *List) Place(total int) {
	if len(p.Hidden) == 0 {
		return
	}
	p.place = make([]uint16, 0, p.Params)
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

// walk visits the parameters of the server's statement in order: the client's, and the hidden ones,
// each of which may replace some of the client's.
type walk struct {
	p      *List
	at     int // the next parameter
	client int // the client's next parameter
	hidden int // the next one in p.Hidden
}

// next returns the next hidden parameter, or nil, and the first client's parameter that it stands
// for.
func (w *walk) next() (h *Hidden, first int) {
	first = w.client
	if hidden := w.p.Hidden; w.hidden < len(hidden) && hidden[w.hidden].At == w.at {
		h = &hidden[w.hidden]
		w.hidden++
		w.client += h.markers()
	} else {
		w.client++
	}
	w.at++
	return h, first
}

// LongData records that a parameter comes by COM_STMT_SEND_LONG_DATA, and replaces its index in the
// command by the server's. The result is false if the server has no such parameter and LongData has
// kept the data. local says that no server has the statement. kept says that the proxy may answer
// the statement, and so must know which parameters came like that.
func (p *List) LongData(index, data []byte, local, kept bool) bool {
	p.LongSent = true
	if p.place == nil && !kept && !local {
		return true
	}
	i := int(binary.LittleEndian.Uint16(index))
	if i >= p.Params {
		return true // the server reports the fault at the execution
	}
	if p.long == nil {
		p.long = make([]bool, p.Params)
	}
	p.long[i] = true
	if !local && p.place == nil {
		return true
	}
	if local || p.isArgument(i) {
		p.keepArgument(i, data)
		return false
	}
	binary.LittleEndian.PutUint16(index, p.place[i])
	return true
}

// The start of a client's COM_STMT_EXECUTE
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html).
const (
	ExecuteHead = 10 // command, statement id, flags, iteration count

	typeUnsignedBigint = uint16(mysql.MYSQL_TYPE_LONGLONG) | 0x8000
)

// ForgetLong drops the data of COM_STMT_SEND_LONG_DATA.
func (p *List) ForgetLong() {
	p.LongSent = false
	clear(p.long)
	p.longArgs = nil
}

// Execution is a parsed COM_STMT_EXECUTE of a statement with hidden parameters, or a parsed
// COM_STMT_BULK_EXECUTE. It shares the command's memory.
type Execution struct {
	head   []byte // bytes before the count of parameters, or before the types
	count  int    // parameters of the statement, and attributes
	Params protocol.Parameters
	Values []byte
	Whole  bool // the values of all the client's parameters are there

	bulk [][]byte // the rows of a bulk execution, which has no Params and Values; else nil
}

// Bulk reports whether the execution may have many rows.
func (e *Execution) Bulk() bool { return e.bulk != nil }

// rows returns the number of the execution's rows.
func (e *Execution) rows() int {
	if e.bulk != nil {
		return len(e.bulk)
	}
	return 1
}

// Cut parses an execution, and records the types that it binds. attributes reports whether the
// session has agreed on QueryAttributes.
func (p *List) Cut(payload []byte, attributes bool) (e Execution, err error) {
	e = Execution{head: payload[:ExecuteHead], count: p.Params, Values: payload[ExecuteHead:]}
	if attributes && (p.Params > 0 || payload[5]&protocol.ParameterCountAvailable != 0) {
		count, size, ok := protocol.ReadLenEncInt(e.Values)
		switch {
		case !ok || count > 1<<16:
			return e, ErrMalformed
		case count < uint64(p.Params):
			return e, protocol.Errorf(mysql.ER_WRONG_ARGUMENTS, "HY000", "Incorrect arguments to COM_STMT_EXECUTE")
		}
		e.count, e.Values = int(count), e.Values[size:]
	}
	if e.count == 0 {
		e.Whole = true
		return e, nil
	}
	var ok bool
	if e.Params, e.Values, ok = protocol.CutParameters(e.Values, e.count, attributes); !ok {
		return e, ErrMalformed
	}
	switch {
	case e.Params.Rebound:
		bound, types, names := p.before.empty(p.Params), e.Params.Types, 0
		for range p.Params {
			var param protocol.Parameter
			param, types, _ = protocol.CutParameter(types, attributes)
			if names += len(param.Name); names > maxNames {
				return e, errNames
			}
			bound.add(param, p.Params)
		}
		p.Types, p.before = bound, p.Types
		e.Params.Types = types // of the attributes
	case len(p.Types.Of) != p.Params:
		return e, ErrArguments
	case e.count > p.Params: // attributes have no types from a last execution
		return e, ErrMalformed
	}
	e.Whole = p.whole(&e)
	return e, nil
}

// maxNames bounds the bytes of the parameters' names, which a List keeps.
const maxNames = 64 << 10

// ErrArguments is the servers' error for an execution without types if none were ever bound.
var ErrArguments = protocol.Errorf(mysql.ER_WRONG_ARGUMENTS, "HY000", "Incorrect arguments to mysqld_stmt_execute")

// Asks appends the slots of the hidden parameters of an execution, row by row. A bulk execution
// with no other than keys has none. inUTF8 converts a name.
func (p *List) Asks(asks []plan.Slot, e *Execution, inUTF8 func(name []byte) ([]byte, error)) ([]plan.Slot, error) {
	if e.Bulk() && p.onlyKeys() {
		return asks, nil
	}
	asks = slices.Grow(asks, e.rows()*len(p.Hidden))
	for row := range e.rows() {
		var argument func(at int) Value
		for i := range p.Hidden {
			h := &p.Hidden[i]
			asks = append(asks, h.Slot)
			if h.From == (Argument{}) {
				continue
			}
			if argument == nil {
				argument = p.Arguments(e, row)
			}
			if err := FillIn(&asks[len(asks)-1], h.From, argument, inUTF8); err != nil {
				return asks, err
			}
		}
	}
	return asks, nil
}

// onlyKeys reports whether no hidden parameter is for a call.
func (p *List) onlyKeys() bool {
	return !slices.ContainsFunc(p.Hidden, func(h Hidden) bool { return h.Served() })
}

// Unbind restores the types from before Cut. MySQL drops the types of an execution that it refuses
// as malformed. MariaDB keeps them.
func (p *List) Unbind(e *Execution) {
	if e.Params.Rebound {
		p.Types, p.before = p.before, p.Types
	}
}

func (p *List) whole(e *Execution) bool {
	rest := e.Values
	for i := range p.Params {
		if e.Params.IsNull(i) || p.long != nil && p.long[i] {
			continue
		}
		size, ok := protocol.BinaryValueSize(uint8(p.Types.Of[i]), rest)
		if !ok {
			return false
		}
		rest = rest[size:]
	}
	return true
}

// TooLong reports whether the payload of Append would be too long, or nearly so. e must not be a
// bulk execution: CutBulk refuses those.
func (p *List) TooLong(e *Execution, attributes bool) bool {
	const count, typ, name = 9, 2, 1
	size := ExecuteHead + count + (e.count+len(p.Hidden)+7)/8 + 1 + len(e.Params.Types) + len(e.Values) + typ*p.Params + typ*len(p.Hidden)
	for i := range p.Hidden {
		size += p.Hidden[i].size()
	}
	if attributes {
		size += name * len(p.Hidden)
		size += name * len(p.Types.Of)
		for _, n := range p.Types.names {
			if size += len(n); len(n) > 250 {
				size += count - name
			}
		}
	}
	return size >= protocol.MaxFragment
}

// Append appends the payload of an execution with the values of the hidden parameters, for a server
// whose statement has the given id. values belong to the slots of Asks. Append completes them:
// previous is the previous LAST_INSERT_ID(). It always binds the types, even if the client relied
// on those of its last execution.
func (p *List) Append(b []byte, id uint32, e *Execution, attributes bool, values []keys.Number, previous uint64) ([]byte, error) {
	if e.Bulk() {
		return p.appendBulk(b, id, e, values)
	}
	p.assign(0, values, previous, new(keysUsed))
	return p.appendExecute(b, id, e, attributes, values)
}

func (p *List) appendExecute(b []byte, id uint32, e *Execution, attributes bool, values []keys.Number) ([]byte, error) {
	b = append(b, e.head...)
	binary.LittleEndian.PutUint32(b[len(b)-ExecuteHead+1:], id)
	arguments := p.argumentCount()
	count := e.count + len(p.Hidden) - arguments
	if attributes {
		b = protocol.AppendLenEncInt(b, uint64(count))
	}
	nullsAt := len(b)
	b = append(b, make([]byte, (count+7)/8)...)
	b = append(b, 1)
	for w := (walk{p: p}); w.at < count; {
		i := w.at
		h, first := w.next()
		null := false
		if h != nil {
			v := values[w.hidden-1]
			b = protocol.Parameter{Type: h.paramType()}.Append(b, attributes)
			if err := h.takes(&v); err != nil {
				return nil, err
			}
			null = v.Null
		} else {
			emptied := p.isEmptied(first)
			if first < p.Params {
				param := p.Types.At(first)
				if emptied && !p.Key.Binding.Texts { // beside a DOUBLE the server would round the number
					param.Type = typeUnsignedBigint
				}
				b = param.Append(b, attributes)
			}
			null = e.Params.IsNull(first) || emptied
		}
		if null {
			b[nullsAt+i/8] |= 1 << (i % 8)
		}
	}
	b = append(b, e.Params.Types...)
	rest := e.Values
	for w := (walk{p: p}); w.at < p.Params+len(p.Hidden)-arguments; {
		h, first := w.next()
		for i := first; i < w.client; i++ {
			if e.Params.IsNull(i) || p.long != nil && p.long[i] {
				continue
			}
			size, ok := protocol.BinaryValueSize(uint8(p.Types.Of[i]), rest)
			if !ok {
				return nil, ErrMalformed
			}
			if h == nil && !p.isEmptied(i) {
				b = append(b, rest[:size]...)
			}
			rest = rest[size:]
		}
		if h != nil && !values[w.hidden-1].Null {
			b = appendValue(b, values[w.hidden-1], h.paramType())
		}
	}
	if e.count > p.Params {
		b = append(b, rest...)
	}
	return b, nil
}

// takes refuses a value that does not fit the parameter: a LASTVAL above BIGINT, and a text in a
// statement prepared for a number, or the other way round.
func (h *Hidden) takes(v *keys.Number) error {
	switch {
	case v.Null:
	case h.Texts != (v.Text != ""):
		return protocol.NotSupported("NEXTVAL of a sequence whose keys are texts in a statement that was prepared without knowing that, as a parameter (?) names it, is not supported: " +
			"write the name into the text, and prepare it again")
	case !h.Texts && h.paramType() != typeUnsignedBigint && v.Value > math.MaxInt64:
		return protocol.NotSupported("LASTVAL of %d, which is above the signed BIGINT, in a prepared statement is not supported: send it as text", v.Value)
	}
	return nil
}

// Shown yields, for each parameter of the server's statement, how many of the client's it stands
// for.
func (p *List) Shown(total int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for w := (walk{p: p}); w.at < total; {
			_, first := w.next()
			if !yield(w.client - first) {
				return
			}
		}
	}
}

// Previous reports whether a parameter is the previous LAST_INSERT_ID().
func (p *List) Previous() bool {
	return slices.ContainsFunc(p.Hidden, func(h Hidden) bool { return h.Previous })
}

// ClientParams returns how many parameters the client's statement has if the server's has total.
func (p *List) ClientParams(total int) int { return total - len(p.Hidden) + p.argumentCount() }

// Errors of an execution, in the servers' words.
var (
	ErrMalformed = protocol.Errorf(mysql.ER_MALFORMED_PACKET, "HY000", "Malformed communication packet")
	ErrTooLong   = protocol.Errorf(mysql.ER_NET_PACKET_TOO_LARGE, "08S01",
		"Got a packet bigger than 'max_allowed_packet' bytes (seqproxy: max_statement)")
	errNames = protocol.Errorf(mysql.ER_NET_PACKET_TOO_LARGE, "08S01",
		"Got a packet bigger than 'max_allowed_packet' bytes (seqproxy: the names of all parameters together may have 64 KiB)")
)
