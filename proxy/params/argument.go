package params

import (
	"bytes"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// A client's parameter may be the name or the count of a NEXTVAL: NEXTVAL(?), NEXTVAL(?, ?),
// NEXTVAL('s', ?). The server has a parameter for the number instead, and none for these. The proxy
// reads them at each execution.

// maxArgument bounds a name that comes by COM_STMT_SEND_LONG_DATA: no sequence has a name that
// long.
const maxArgument = 4096

// maxLongArguments bounds the names of one statement that come by COM_STMT_SEND_LONG_DATA.
const maxLongArguments = 256

// tooLong stands for longer names, and is no valid name. It is read-only.
var tooLong = make([]byte, maxArgument)

// noPlace is the server's index of a parameter that is an argument of a call.
const noPlace = 1<<16 - 1

// Argument says which of the client's parameters set a hidden parameter, counted from 1. 0 means
// none.
type Argument struct {
	name  int
	count int // or the value of a SETVAL
}

// ArgumentOf returns the numbers of the markers that are arguments of a call.
func ArgumentOf(call *statement.FuncCall) Argument {
	a, next := Argument{}, call.ParamsBefore+1
	if call.Form == statement.FormParam {
		a.name = next
		next++
	}
	if last := call.ParamsBefore + call.Markers(); last >= next {
		a.count = last
	}
	return a
}

// markers returns how many of the client's parameters a hidden one replaces.
func (h *Hidden) markers() int {
	n := 0
	if h.From.name > 0 {
		n++
	}
	if h.From.count > 0 {
		n++
	}
	return n
}

// argumentCount returns how many of the client's parameters the server lacks.
func (p *List) argumentCount() int {
	n := 0
	for i := range p.Hidden {
		n += p.Hidden[i].markers()
	}
	return n
}

// isArgument reports whether the server lacks the client's parameter i.
func (p *List) isArgument(i int) bool { return i < len(p.place) && p.place[i] == noPlace }

// keepArgument keeps the data of COM_STMT_SEND_LONG_DATA for the client's parameter i.
func (p *List) keepArgument(i int, data []byte) {
	if p.longArgs == nil {
		p.longArgs = make(map[int][]byte)
	}
	if p.longArgs[i] == nil && len(p.longArgs) >= maxLongArguments {
		p.longArgs[i] = tooLong
	}
	if room := maxArgument - len(p.longArgs[i]); len(data) > room {
		data = data[:room]
	}
	p.longArgs[i] = append(p.longArgs[i], data...)
}

// Value is a parameter as the client sent it.
type Value struct {
	null bool
	long bool // it came by COM_STMT_SEND_LONG_DATA, so data has no length in front
	kind protocol.Parameter
	data []byte
}

// errArgument is a server's error for bad arguments of a function.
func errArgument(fn statement.Func) error {
	name := map[statement.Func]string{statement.Nextval: "NEXTVAL", statement.Lastval: "LASTVAL", statement.Setval: "SETVAL"}[fn]
	return protocol.Errorf(mysql.ER_WRONG_ARGUMENTS, "HY000", "Incorrect arguments to %s", name)
}

// text returns a string. ok is false for other values, and for an empty string.
func (v *Value) text() ([]byte, bool) {
	switch uint8(v.kind.Type) {
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_ENUM, mysql.MYSQL_TYPE_SET,
		mysql.MYSQL_TYPE_TINY_BLOB, mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_MEDIUM_BLOB, mysql.MYSQL_TYPE_LONG_BLOB:
	default:
		return nil, false
	}
	text := v.data
	if !v.long && !v.null {
		text, _, _ = protocol.ReadLenEncBytes(text)
	}
	return text, len(text) > 0 && len(text) < maxArgument
}

// integer returns a whole number, also from digits. n is undefined if it is negative.
func (v *Value) integer() (n uint64, negative, ok bool) {
	if v.null {
		return 0, false, false
	}
	if n, negative, ok = v.kind.Integer(v.data); ok {
		return n, negative, true
	}
	text, isText := v.text()
	if !isText {
		return 0, false, false
	}
	digits, minus := bytes.CutPrefix(text, []byte("-"))
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return n, minus && n > 0, err == nil
}

// Arguments reads the values of a row of a complete execution. Callers ask for them in order.
func (p *List) Arguments(e *Execution, row int) func(at int) Value {
	if e.Bulk() {
		return p.argumentsInRow(e.bulk[row])
	}
	i, rest := 0, e.Values
	return func(at int) Value {
		for ; ; i++ {
			v := Value{null: e.Params.IsNull(i), kind: p.Types.At(i)}
			if p.long != nil && p.long[i] {
				v = Value{long: true, kind: protocol.Parameter{Type: uint16(mysql.MYSQL_TYPE_BLOB)}, data: p.longArgs[i]}
			} else if !v.null {
				size, _ := protocol.BinaryValueSize(uint8(p.Types.Of[i]), rest)
				v.data, rest = rest[:size], rest[size:]
			}
			if i == at {
				i++
				return v
			}
		}
	}
}

// argumentsInRow is Arguments for a row of a bulk execution.
func (p *List) argumentsInRow(row []byte) func(at int) Value {
	i := 0
	return func(at int) Value {
		for ; ; i++ {
			rest, _ := p.cutBulkValue(i, row)
			v := Value{null: row[0] != bulkValue, kind: p.Types.At(i), data: row[1 : len(row)-len(rest)]}
			row = rest
			if i == at {
				i++
				return v
			}
		}
	}
}

// FillIn completes a slot with the values of parameters.
func FillIn(a *plan.Slot, from Argument, argument func(i int) Value, inUTF8 func(name []byte) ([]byte, error)) error {
	if from.name > 0 {
		v := argument(from.name - 1)
		name, ok := v.text()
		if !ok {
			return errArgument(a.Func)
		}
		var err error
		if a.Sequence, err = inUTF8(name); err != nil {
			return err
		}
	}
	if from.count == 0 {
		return nil
	}
	v := argument(from.count - 1)
	n, negative, ok := v.integer()
	if a.Func == statement.Setval {
		set := *a.Set
		set.Value, set.Negative = n, negative
		a.Set = &set
	} else {
		a.Count = n
		ok = ok && !negative && n > 0 && n <= statement.MaxCount
	}
	if !ok {
		return errArgument(a.Func)
	}
	return nil
}

// Named reports whether a parameter is the name of the sequence.
func (a Argument) Named() bool { return a.name > 0 }

// Any reports whether any parameter is an argument.
func (a Argument) Any() bool { return a != Argument{} }
