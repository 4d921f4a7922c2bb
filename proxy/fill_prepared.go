package proxy

import (
	"encoding/binary"
	"math"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// A prepared INSERT into a table with a bound column has parameters of the proxy's for
// the numbers. Where a parameter of the client's is the value of the key, it stays and
// tells at each execution whether it is one: IFNULL(?, LAST_INSERT_ID(?)), and in the
// rows behind the first IFNULL(?, IFNULL(?, LAST_INSERT_ID(?))). The second of these is
// the number, or NULL in the row whose number is the first, which LAST_INSERT_ID() is to
// be: there, the third is. A 0 that means a number goes to the server as NULL.

// preparedKey is the bound column of a prepared INSERT.
type preparedKey struct {
	binding  *plan.Binding
	rows     []preparedRow
	explicit []uint64 // numbers that the text gives itself
	plain    bool     // the number is made LAST_INSERT_ID() here
}

// preparedRow is a row that is given a number, perhaps.
type preparedRow struct {
	param int // the client's parameter that tells; -1: it is, always
	// number and first are the hidden parameters for a number as it is, and for the one
	// that LAST_INSERT_ID() is to be; -1: there is none such.
	number, first int
}

// hiddenKey is a hidden parameter before it has its place.
type hiddenKey struct {
	offset int // in the text
	params int // markers of the client's in front of it, in the text that is sent
	count  int // parameters
}

// hideKey writes the numbers of the INSERT's key as parameters into f.Splices, and
// returns what these parameters are for, with the places of hidden parameters in the
// order of keys.
func hideKey(f *plan.Filling, k *plan.FilledKey) (*preparedKey, []hiddenKey) {
	p := &preparedKey{binding: k.Binding, explicit: k.Explicit, plain: k.Plain}
	var keys []hiddenKey
	in, key := k.Insertion, &k.Key
	if k.Listed {
		f.Splices = in.AppendList(f.Splices, key)
	}
	pairs := k.Params || k.Bulk
	hidden := 0
	for j, r := range k.Filled {
		row := &in.Rows[r.Row]
		h := hiddenKey{offset: row.End, params: row.Params, count: 1}
		if row.Value.Kind != statement.ValueMissing {
			h.offset, h.params = row.Value.Start, row.Value.Params
		}
		pr := preparedRow{param: -1, number: -1, first: -1}
		var text string
		switch {
		case k.Plain:
			pr.number, text = hidden, "?"
			if r.Filling == statement.FillParam {
				text = ", ?)"
			}
		case pairs && j == 0 && r.Filling == statement.FillParam && !k.Bulk:
			pr.first, text = hidden, ", LAST_INSERT_ID(?))"
		case pairs:
			pr.number, pr.first, h.count, text = hidden, hidden+1, 2, "IFNULL(?, LAST_INSERT_ID(?))"
			if r.Filling == statement.FillParam {
				text = ", " + text + ")"
			}
		case j == k.Leader:
			pr.first, text = hidden, "LAST_INSERT_ID(?)"
		default:
			pr.number, text = hidden, "?"
		}
		switch r.Filling {
		case statement.FillParam:
			pr.param = row.Value.Params
			h.params++ // the client's own
			f.Splices = append(f.Splices, statement.Splice{Start: row.Value.Start, End: row.Value.Start, Text: []byte("IFNULL(")},
				statement.Splice{Start: row.Value.End, End: row.Value.End, Text: []byte(text)})
		case statement.FillIfEmpty:
			h.offset, h.params = row.Value.End, row.Value.Params+markersIn(k, r.Row)
			f.Splices = in.AppendIfEmpty(f.Splices, r.Row, key, []byte(plan.KeyTextOpen+text+plan.KeyTextEnd))
		default:
			f.Splices = in.AppendNumber(f.Splices, r.Row, key, []byte(text))
		}
		hidden += h.count
		p.rows, keys = append(p.rows, pr), append(keys, h)
	}
	if k.Added {
		f.Splices = in.AppendAlias(f.Splices)
	}
	return p, keys
}

// markersIn counts the markers in the value of a row.
func markersIn(k *plan.FilledKey, row int) int {
	v := &k.Insertion.Rows[row].Value
	return v.EndParams - v.Params
}

// key reads what an integer column makes of a parameter's value.
func (v *argumentValue) key() (statement.ValueKind, uint64) {
	if v.null {
		return statement.ValueNull, 0
	}
	signed := func(n int64) (statement.ValueKind, uint64) {
		switch {
		case n == 0:
			return statement.ValueZero, 0
		case n < 0:
			return statement.ValueExplicit, 0
		}
		return statement.ValueNumber, uint64(n)
	}
	unsigned := v.kind.Type&unsignedBit != 0
	switch d := v.data; uint8(v.kind.Type) {
	case mysql.MYSQL_TYPE_NULL:
		return statement.ValueNull, 0
	case mysql.MYSQL_TYPE_TINY:
		if unsigned {
			return signed(int64(d[0]))
		}
		return signed(int64(int8(d[0])))
	case mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_YEAR:
		n := binary.LittleEndian.Uint16(d)
		if unsigned {
			return signed(int64(n))
		}
		return signed(int64(int16(n)))
	case mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_INT24:
		n := binary.LittleEndian.Uint32(d)
		if unsigned {
			return signed(int64(n))
		}
		return signed(int64(int32(n)))
	case mysql.MYSQL_TYPE_LONGLONG:
		n := binary.LittleEndian.Uint64(d)
		if unsigned && n > 0 {
			return statement.ValueNumber, n
		}
		return signed(int64(n))
	case mysql.MYSQL_TYPE_FLOAT:
		return floatKey(float64(math.Float32frombits(binary.LittleEndian.Uint32(d))))
	case mysql.MYSQL_TYPE_DOUBLE:
		return floatKey(math.Float64frombits(binary.LittleEndian.Uint64(d)))
	case mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIME:
		return statement.ValueExplicit, 0
	}
	if v.long {
		return statement.ValueOpaque, 0
	}
	text, _, _ := protocol.ReadLenEncBytes(v.data)
	return statement.TextValue(text)
}

func floatKey(f float64) (statement.ValueKind, uint64) {
	switch r := math.RoundToEven(f); {
	case r == 0:
		return statement.ValueZero, 0
	case r > 0 && r < 1<<53:
		return statement.ValueNumber, uint64(r)
	}
	return statement.ValueExplicit, 0
}

// keysOf says for each row of an execution whether it is given a number, and appends
// the numbers that it gives itself to explicit.
func (s *session) keysOf(c *backend.Conn, p *prepared, argument func(at int) argumentValue, needed []bool, explicit []uint64) ([]bool, []uint64, error) {
	k := p.key
	for i := range k.rows {
		r := &k.rows[i]
		if r.param < 0 {
			needed = append(needed, true)
			continue
		}
		v := argument(r.param)
		kind, n := v.key()
		empty := kind == statement.ValueNull
		switch kind {
		case statement.ValueNumber:
			explicit = append(explicit, n)
		case statement.ValueZero, statement.ValueText:
			modes, err := s.insertModes(c, p.shape.Words)
			if err != nil {
				return nil, nil, err
			}
			empty = !modes.ZeroStays && (kind == statement.ValueZero || !modes.Strict)
		case statement.ValueOpaque:
			return nil, nil, notSupported("a value for %s.%s, which is filled from sequence %s, that was sent in pieces: send it with the execution",
				k.binding.Table, k.binding.Column, k.binding.Sequence)
		}
		needed = append(needed, empty)
	}
	return needed, explicit, nil
}

// executeFilled sends the execution in s.own, a second time with new numbers if somebody
// has used the one that it was given.
func (s *session) executeFilled(c *backend.Conn, p *prepared, e *execution, attributes bool) error {
	s.tally.Sends(c, stats.KindRewrite) // it has parameters of ours in any case
	r, err := s.sendFilled(c, p.filling)
	if err == nil && r != noRemedy {
		if err = s.fillHidden(c, p, e, attributes); err == nil {
			p.filling.Repeated = true
			_, err = s.sendFilled(c, p.filling)
		}
	}
	p.forgetLong()
	return err
}

// fills takes note of what an execution of one row of parameters is given.
func (p *prepared) fills(first uint64, needed []bool) {
	if p.filling == nil {
		p.filling = &plan.Filling{Words: p.shape.Words, Keys: make([]plan.FilledKey, 1)}
	}
	p.filling.Repeated = p.longSent // the data would have to be sent again
	k := &p.filling.Keys[0]
	k.Binding, k.First, k.Rows, k.Plain = p.key.binding, first, len(p.key.rows), p.key.plain
	k.Filled = k.Filled[:0]
	for i, n := range needed {
		if n {
			k.Filled = append(k.Filled, plan.FilledRow{Row: i})
		}
	}
}

// fillKeys takes the numbers of an execution's rows, and writes them to values, which
// are those of the hidden parameters of all rows of a bulk execution, or of the only
// one. needed is for all of them, too. It returns the first number; 0 if there is none.
func (s *session) fillKeys(c *backend.Conn, p *prepared, needed []bool, explicit []uint64, values []keys.Number) (first uint64, err error) {
	k := p.key
	p.emptied = append(p.emptied[:0], make([]bool, len(needed)/len(k.rows)*p.params)...)
	count := 0
	for _, n := range needed {
		if n {
			count++
		}
	}
	step := uint64(1)
	if count > 1 {
		modes, err := s.insertModes(c, p.shape.Words)
		if err != nil {
			return 0, err
		}
		step = modes.Increment
	}
	first, err = s.takeKey(k.binding, append(explicit, k.explicit...), count, step)
	if err != nil {
		return 0, err
	}
	next, led := first, false
	for i, need := range needed {
		r, at := &k.rows[i%len(k.rows)], i/len(k.rows)*len(p.hidden)
		if r.number >= 0 {
			values[at+r.number] = keys.Number{Null: true}
		}
		if r.first >= 0 {
			values[at+r.first] = keys.Number{Null: true}
		}
		if !need {
			continue
		}
		if r.param >= 0 {
			p.emptied[i/len(k.rows)*p.params+r.param] = true
		}
		if r.number >= 0 && (led || r.first < 0) {
			values[at+r.number] = keys.Number{Value: next}
		} else {
			values[at+r.first] = keys.Number{Value: next}
			led = true
		}
		next += step
	}
	return first, nil
}

// hideKeys adds the parameters of the key that f fills to hidden, those of calls, whose
// places move.
func (s *session) hideKeys(st *statement.Statement, subs []statement.Substitution, hidden []hiddenParam, f *plan.Filling) (*preparedKey, []hiddenParam) {
	key, keys := hideKey(f, &f.Keys[0])
	calls := hidden
	hidden = make([]hiddenParam, 0, len(calls)+2*len(keys))
	moved := 0 // hidden parameters so far, less the client's that calls have taken
	place := make([]int, 0, 2*len(keys))
	call := 0
	nextCalls := func(limit int) {
		for ; call < len(st.Calls) && st.Calls[call].Start < limit; call++ {
			if subs[call].Replacement == statement.Keep {
				continue
			}
			if subs[call].Param {
				h := calls[0]
				calls = calls[1:]
				h.at = st.Calls[call].ParamsBefore + moved
				hidden = append(hidden, h)
				moved++
			}
			moved -= st.Calls[call].Markers()
		}
	}
	for _, k := range keys {
		nextCalls(k.offset)
		for range k.count {
			place = append(place, len(hidden))
			hidden = append(hidden, hiddenParam{at: k.params + moved})
			moved++
		}
	}
	nextCalls(math.MaxInt)
	for i := range key.rows {
		r := &key.rows[i]
		if r.number >= 0 {
			r.number = place[r.number]
		}
		if r.first >= 0 {
			r.first = place[r.first]
		}
	}
	return key, hidden
}
