package keys

import (
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
)

// All takes the numbers that a statement needs: it returns the values of the slots, and puts
// the first number of each key into n.Fill. rows are those of which the first has its numbers
// then, if there is a Lead.
func (t *Taker) All(n plan.Numbers, rows *Rows) (values []Number, err error) {
	if values, err = t.Take(n.Slots); err != nil {
		return nil, err
	}
	if n.Lead >= 0 {
		if values[n.Lead].Value, err = t.ahead(rows); err != nil {
			return nil, err
		}
	}
	if n.Fill == nil {
		return values, nil
	}
	for i := range n.Fill.Keys {
		k := &n.Fill.Keys[i]
		if k.First, err = t.Key(k.Binding, k.Explicit, len(k.Filled), k.Step); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// avoid takes numbers that a statement gives itself out of what is handed out for a column.
func (t *Taker) avoid(b *plan.Binding, explicit []uint64) error {
	if len(explicit) == 0 {
		return nil
	}
	t.name = append(t.name[:0], b.Sequence...)
	return t.Patience.Over(t.sequences.Avoid(&t.Patience, t.name, explicit))
}

// Key takes count numbers for a column, step apart, and returns the first; 0 of none. Those that
// the statement gives itself are taken out of what is handed out.
func (t *Taker) Key(b *plan.Binding, explicit []uint64, count int, step uint64) (first uint64, err error) {
	if err := t.avoid(b, explicit); err != nil || count == 0 {
		return 0, err
	}
	if t.rights != nil {
		if err := t.MayUse([]byte(b.Sequence)); err != nil {
			return 0, err
		}
	}
	t.name = append(t.name[:0], b.Sequence...)
	name := t.name
	if count == 1 {
		return t.first(name, 1)
	}
	apart, err := t.sequences.Step(&t.Patience, name)
	if err = t.Patience.Over(err); err != nil {
		return 0, err
	}
	for again := true; ; again = false {
		if step%apart != 0 {
			return 0, errApart(b, apart, step)
		}
		first, got, err := t.Run(name, 1+uint64(count-1)*(step/apart))
		switch {
		case err != nil || got == apart:
			return first, err
		case !again:
			return 0, protocol.NotSupported("an INSERT into %s while the INCREMENT of sequence %s changes, from which its column %s is filled, is not supported: repeat it",
				b.Table, b.Sequence, b.Column)
		}
		apart = got // it was changed meanwhile, perhaps by another proxy; those numbers are a gap
	}
}

// errApart refuses rows whose numbers cannot be step apart.
func errApart(b *plan.Binding, apart, step uint64) error {
	return protocol.NotSupported("several rows into %s, whose column %s is filled from sequence %s with INCREMENT BY %d, are not supported "+
		"with auto_increment_increment = %d, by which drivers tell the keys of the other rows: set that to a multiple of the INCREMENT",
		b.Table, b.Column, b.Sequence, apart, step)
}
