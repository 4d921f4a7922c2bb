package params

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// A prepared INSERT into a table with a bound column has hidden parameters for the numbers. A
// client's parameter that is the value of the key stays, and each execution decides whether it is
// one: IFNULL(?, LAST_INSERT_ID(?)), and in later rows IFNULL(?, IFNULL(?, LAST_INSERT_ID(?))). The
// second of these is the number, or NULL in the row whose number is the first, which
// LAST_INSERT_ID() must be: there, the third is. A 0 that means a number goes to the server as
// NULL.

// Key is the bound column of a prepared INSERT.
type Key struct {
	Binding  *plan.Binding
	rows     []keyRow
	Explicit []uint64 // numbers in the text itself
	plain    bool     // the number is made LAST_INSERT_ID() here
	ignore   bool     // the statement has IGNORE
	updates  bool     // the statement has ON DUPLICATE KEY UPDATE
	auto     bool     // see plan.FilledKey
	Listed   bool     // the text had no list of columns; it has one of the proxy
}

// keyRow is a row that may get a number.
type keyRow struct {
	param int // the client's parameter that decides; -1: it always gets one
	// The hidden parameters for a plain number, and for the one that LAST_INSERT_ID() must be; -1:
	// none.
	number, first int
	filling       statement.Filling
}

// rounds reports whether a parameter has a type that makes the server round the number beside it.
func (k *Key) rounds(types []uint16) bool {
	return slices.ContainsFunc(k.rows, func(r keyRow) bool {
		return r.param >= 0 && (types[r.param] == uint16(mysql.MYSQL_TYPE_FLOAT) || types[r.param] == uint16(mysql.MYSQL_TYPE_DOUBLE))
	})
}

// hiddenKey is a hidden parameter without its place.
type hiddenKey struct {
	offset int // in the text
	params int // markers of the client before it, in the text that is sent
	count  int // parameters
}

// hideKey writes the numbers of the INSERT's key as parameters into f.Splices. It returns what they
// are for, with the places of hidden parameters in the order of keys.
func hideKey(f *plan.Filling, k *plan.FilledKey) (*Key, []hiddenKey) {
	p := &Key{
		Binding: k.Binding, Explicit: k.Explicit, plain: k.Plain, ignore: k.Insertion.Ignore, updates: k.Updates,
		auto: k.Auto, Listed: len(k.Key.Columns) > 0,
	}
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
		pr := keyRow{param: -1, number: -1, first: -1, filling: r.Filling}
		var text string
		switch {
		case k.Plain && !k.Bulk || k.Binding.Texts:
			pr.number, text = hidden, "?"
			if k.Binding.Texts {
				text = statement.TextMarker(k.Binding.Bytes)
			}
			if r.Filling == statement.FillParam {
				text = ", " + text + ")"
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
			if !k.Binding.Texts {
				text = plan.KeyTextOpen + text + plan.KeyTextEnd
			}
			f.Splices = in.AppendIfEmpty(f.Splices, r.Row, key, []byte(text))
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

// markersIn counts the markers in the key of a row.
func markersIn(k *plan.FilledKey, row int) int {
	v := &k.Insertion.Rows[row].Value
	return v.EndParams - v.Params
}

// key returns what an integer column makes of a parameter's value.
func (v *Value) key() (statement.ValueKind, uint64) {
	if v.null {
		return statement.ValueNull, 0
	}
	if n, negative, ok := v.kind.Integer(v.data); ok {
		switch {
		case negative:
			return statement.ValueExplicit, 0
		case n == 0:
			return statement.ValueZero, 0
		}
		return statement.ValueNumber, n
	}
	switch d := v.data; uint8(v.kind.Type) {
	case mysql.MYSQL_TYPE_NULL:
		return statement.ValueNull, 0
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

// keysUsed are the filled keys that the rows before have.
type keysUsed struct {
	count int
	led   bool // LAST_INSERT_ID() is one of them
}

// assignKeys is assign for filled keys.
func (p *List) assignKeys(row int, values []keys.Number, used *keysUsed) {
	p.emptied = append(p.emptied[:0], make([]bool, p.Params)...)
	for i := range p.Key.rows {
		r := &p.Key.rows[i]
		if r.number >= 0 {
			values[r.number] = keys.Number{Null: true}
		}
		if r.first >= 0 {
			values[r.first] = keys.Number{Null: true}
		}
	}
	k, width := &p.Filling.Keys[0], len(p.Key.rows)
	for ; used.count < len(k.Filled) && k.Filled[used.count].Row/width == row; used.count++ {
		i := used.count
		r := &p.Key.rows[k.Filled[i].Row%width]
		if r.param >= 0 {
			p.emptied[r.param] = true
		}
		switch {
		case k.Binding.Texts:
			values[r.number] = keys.Number{Text: k.Texts[i], Binary: k.Binding.Bytes}
		case r.number >= 0 && (used.led || r.first < 0 || k.Plain):
			values[r.number] = keys.Number{Value: k.Number(i)}
		default:
			values[r.first] = keys.Number{Value: k.Number(i)}
			used.led = true
		}
	}
}

// hideKeys adds the parameters of the key that f fills to those of calls in hidden, whose places
// move.
func hideKeys(st *statement.Statement, subs []statement.Substitution, hidden []Hidden, f *plan.Filling) (*Key, []Hidden) {
	key, keys := hideKey(f, &f.Keys[0])
	calls := hidden
	hidden = make([]Hidden, 0, len(calls)+2*len(keys))
	moved := 0 // hidden parameters so far, minus the client's that calls have replaced
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
				h.At = st.Calls[call].ParamsBefore + moved
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
			hidden = append(hidden, Hidden{At: k.params + moved, Slot: plan.Slot{Texts: key.Binding.Texts, Bytes: key.Binding.Bytes}})
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

// FillKeys returns which rows of an execution get a key, and how far apart the keys are. words are
// those of the statement. modes asks what the server does with keys.
func (p *List) FillKeys(e *Execution, words statement.Words, modes func() (state.InsertModes, error)) (*plan.Filling, error) {
	if p.Filling == nil {
		p.Filling = &plan.Filling{Words: words, Keys: make([]plan.FilledKey, 1)}
	}
	p.Filling.Repeated = p.LongSent // the data would have to be sent again
	k := &p.Filling.Keys[0]
	*k = plan.FilledKey{
		Binding: p.Key.Binding, Rows: len(p.Key.rows), Plain: p.Key.plain && !e.Bulk(), Updates: p.Key.updates, Auto: p.Key.auto,
		Step: 1, Explicit: k.Explicit[:0], Filled: k.Filled[:0], Further: k.Further[:0], Texts: k.Texts[:0],
	}
	for row := range e.rows() {
		if err := p.addRow(row, p.Arguments(e, row), modes); err != nil {
			return nil, err
		}
	}
	if e.Bulk() && len(k.Filled) > 0 && !k.Binding.Texts && p.Key.rounds(p.Types.Of) {
		return nil, protocol.NotSupported("a key for %s.%s, which is filled from sequence %s, of the type FLOAT or DOUBLE in rows that are executed at once: send it as an integer",
			k.Binding.Table, k.Binding.Column, k.Binding.Sequence)
	}
	k.Explicit = append(k.Explicit, p.Key.Explicit...)
	if len(k.Filled) <= 1 || k.Binding.Texts {
		return p.Filling, nil
	}
	m, err := modes()
	k.Step = m.Increment
	return p.Filling, err
}

// addRow adds to the filling what one row of an execution gets, and the numbers in the row itself.
func (p *List) addRow(row int, argument func(at int) Value, modes func() (state.InsertModes, error)) error {
	k := &p.Filling.Keys[0]
	for i := range p.Key.rows {
		r := &p.Key.rows[i]
		empty := r.param < 0
		if !empty {
			v := argument(r.param)
			kind, n := v.key()
			empty = kind == statement.ValueNull
			if k.Binding.Texts { // only NULL means that there is no key
				kind = statement.ValueExplicit
			}
			switch kind {
			case statement.ValueNumber:
				k.Explicit = append(k.Explicit, n)
			case statement.ValueZero, statement.ValueText:
				m, err := modes()
				if err != nil {
					return err
				}
				if m.EmptyIsNull && kind == statement.ValueText {
					return protocol.NotSupported("%s", plan.MayBeNull(k.Binding))
				}
				empty = !m.ZeroStays && (kind == statement.ValueZero || m.TextIsZero(p.Key.ignore))
			case statement.ValueOpaque:
				return protocol.NotSupported("a value for %s.%s, which is filled from sequence %s, that was sent in pieces: send it with the execution",
					k.Binding.Table, k.Binding.Column, k.Binding.Sequence)
			}
		}
		if empty {
			k.Filled = append(k.Filled, plan.FilledRow{Row: row*len(p.Key.rows) + i, Filling: r.filling})
		}
	}
	return nil
}

// Hide writes the text of a prepared statement with hidden parameters in place of the calls that
// subs are for.
func Hide(st *statement.Statement, sql []byte, a *plan.Action, subs []statement.Substitution) (text []byte, hidden []Hidden, key *Key) {
	a.MarkInsertID(st, sql, subs)
	for i := range subs {
		call, slot := &st.Calls[i], a.Slots[i]
		if !plan.Hides(call, &subs[i]) {
			continue
		}
		subs[i].Param = true
		if subs[i].Replacement == statement.AsLeading {
			hidden = append(hidden, Hidden{Leads: true})
			continue
		}
		if subs[i].Replacement == statement.AsCounted {
			for _, of := range []part{partBefore, partBound, partStep} {
				hidden = append(hidden, Hidden{Slot: plan.Slot{When: plan.Counted}, part: of})
			}
			continue
		}
		h := Hidden{Previous: true}
		if slot.Served() {
			slot.Sequence = bytes.Clone(slot.Sequence)
			h = Hidden{Slot: slot, From: ArgumentOf(call)}
		}
		hidden = append(hidden, h)
	}
	at := st.HiddenParams(subs)
	for i := range at {
		hidden[i].At = at[i]
	}
	if a.Fill == nil {
		return st.Rewrite(nil, sql, subs), hidden, nil
	}
	key, hidden = hideKeys(st, subs, hidden, a.Fill)
	return st.Rewrite(nil, sql, subs, a.Fill.Splices...), hidden, key
}
