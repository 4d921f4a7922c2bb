package params

import (
	"bytes"
	"math"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
)

// List is the parameters of one prepared statement: the client's, and the hidden ones in place of
// calls and keys. The zero value has none.
type List struct {
	Hidden []Hidden // the proxy gives them values
	Params int      // number of the client's parameters
	Types  Types    // of the client's parameters, at the last bind
	Key    *Key     // the column to fill
	// Filling is the last execution's, for a remedy of its error.
	Filling *plan.Filling
	// LongSent reports whether data came by COM_STMT_SEND_LONG_DATA since the last execution. long
	// says for which parameters, if there are hidden ones.
	LongSent bool
	long     []bool
	longArgs map[int][]byte // such data for arguments of calls

	// place has the server's index of each of the client's parameters; nil without hidden ones.
	place  []uint16
	before Types // Types before the last Cut; see Unbind
	// emptied says which of the client's parameters become NULL in the present row.
	emptied []bool
}

// Types are the types of parameters, and their names. A client may keep very many statements with
// very many parameters, so a parameter takes two bytes.
type Types struct {
	Of    []uint16 // as in protocol.Parameter
	names [][]byte // nil: none has a name
}

// At returns that of parameter i.
func (t *Types) At(i int) protocol.Parameter {
	p := protocol.Parameter{Type: t.Of[i]}
	if t.names != nil {
		p.Name = t.names[i]
	}
	return p
}

// add appends one of total. It copies the name.
func (t *Types) add(p protocol.Parameter, total int) {
	if len(p.Name) > 0 && t.names == nil {
		t.names = make([][]byte, len(t.Of), total)
	}
	if t.names != nil {
		t.names = append(t.names, bytes.Clone(p.Name))
	}
	t.Of = append(t.Of, p.Type)
}

// empty returns an empty list with room for total, in the same memory if that is enough.
func (t *Types) empty(total int) Types {
	if cap(t.Of) < total {
		return Types{Of: make([]uint16, 0, total)}
	}
	return Types{Of: t.Of[:0]}
}

// Fits refuses a statement of so many rows that servers take fewer parameters than it has with
// those of the proxy.
func (p *List) Fits(rows int) error {
	const most = math.MaxUint16
	total := p.Params + len(p.Hidden) - p.argumentCount()
	if total <= most || p.Params > most { // there the error is the server's
		return nil
	}
	return protocol.NotSupported("a prepared statement of %d rows that has %d parameters with those of the proxy, one or two for each key, is not supported, as servers take %d: "+
		"send at most %d rows", rows, total, most, most*rows/total)
}

// isEmptied reports whether the client's parameter i of the present row becomes NULL.
func (p *List) isEmptied(i int) bool { return i < len(p.emptied) && p.emptied[i] }

// assign completes the values of the hidden parameters for a row of an execution: the previous
// LAST_INSERT_ID(), the parts of a block, and the filled keys. Rows come in order, each with the
// same keys.
func (p *List) assign(row int, values []keys.Number, previous uint64, k *keysUsed) {
	for i := range values {
		h, v := &p.Hidden[i], &values[i]
		switch {
		case h.Previous:
			v.Value = previous
		case h.part == partBound:
			v.Value = v.Last
		case h.part == partStep:
			v.Value = v.Step
		}
	}
	if p.Key != nil {
		p.assignKeys(row, values, k)
	}
}
