package params

import (
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
)

// List is the parameters of one prepared statement: those of the client, and those that the proxy
// has put where calls and keys stood. The zero value has none.
type List struct {
	Hidden []Hidden             // that the proxy fills
	Params int                  // of the client
	Types  []protocol.Parameter // of the client's at the last bind
	Key    *Key                 // the column that is filled in
	// of the last execution, as far as it tells what to do about errors
	Filling *plan.Filling
	// LongSent: data came by COM_STMT_SEND_LONG_DATA since the last execution; long
	// says for which parameters, where there are hidden ones.
	LongSent bool
	long     []bool
	longArgs map[int][]byte // what came so for arguments of calls

	// the server's index of each of the client's parameters; nil without hidden ones
	place  []uint16
	before []protocol.Parameter // what Types were before that; see Unbind
	// emptied says which of the client's parameters go as NULL, for each row of a bulk
	// execution; of the last execution.
	emptied []bool
}

// isEmptied says whether the client's parameter i of a row goes as NULL.
func (p *List) isEmptied(row, i int) bool {
	at := row*p.Params + i
	return i < p.Params && at < len(p.emptied) && p.emptied[at]
}

// ForgetLong forgets what came by COM_STMT_SEND_LONG_DATA.
func (p *List) ForgetLong() {
	p.LongSent = false
	clear(p.long)
	p.longArgs = nil
}

// Assign completes the values of the hidden parameters, for each row of an execution: with
// LAST_INSERT_ID() as it was before, the parts of a block, and the keys that are filled in.
func (p *List) Assign(e *Execution, values []keys.Number, previous uint64) {
	for i := range values {
		h, v := &p.Hidden[i%len(p.Hidden)], &values[i]
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
		p.assignKeys(values, e.rows())
	}
}
