package keys

import (
	"errors"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// Rows are the columns of one statement's result that are numbers of sequences.
type Rows struct {
	plan.Rows
	Types []uint8  // types of all columns of a prepared statement, as last defined
	first []uint64 // numbers of the first row, if they are already taken
}

// Define records the definition of a prepared statement's next column.
func (r *Rows) Define(definition []byte, caps protocol.Capability) error {
	if r == nil {
		return nil
	}
	typ, ok := protocol.DefinedType(definition, caps)
	if !ok {
		return protocol.ErrMalformed
	}
	r.Types = append(r.Types, typ)
	return nil
}

// ahead takes the numbers of the first row early, and returns the first of them.
func (t *Taker) ahead(r *Rows) (first uint64, err error) {
	values, err := t.Take(r.Slots)
	if err != nil {
		return 0, err
	}
	numbers := make([]uint64, len(values))
	for i, v := range values {
		if v.Text != "" {
			return 0, errNotCounted(r.Slots[i].Sequence)
		}
		numbers[i] = v.Value
	}
	r.first = numbers
	return numbers[0], nil
}

// RowTaker takes the numbers of one result, as its rows come.
type RowTaker struct {
	taker   *Taker
	rows    *Rows
	asks    []plan.Slot // slots of the rows that get numbers at a time
	allowed bool        // the user's rights are checked
	numbers []uint64
	few     bool // there were too few numbers once
	given   bool
	last    uint64 // first number of the last row
}

// For makes the taker of a result. planned says that the plan has just checked the user's rights.
func (r *Rows) For(t *Taker, planned bool) *RowTaker {
	return &RowTaker{taker: t, rows: r, allowed: planned}
}

// Last returns the first number of the last row. ok is false if no row has got any.
func (x *RowTaker) Last() (last uint64, ok bool) { return x.last, x.given }

// Take takes the numbers of at least one of the next rows, and of at most rows.
func (x *RowTaker) Take(rows int) ([]uint64, error) {
	if first := x.rows.first; first != nil {
		x.rows.first = nil
		return first, nil
	}
	count := uint64(0) // numbers per row
	for i := range x.rows.Slots {
		count += x.rows.Slots[i].Count
	}
	rows = max(1, min(rows, int(statement.MaxCount/count)))
	if x.few {
		rows = 1
	}
	numbers, err := x.take(rows)
	if err != nil && rows > 1 && !errors.Is(err, ErrInterrupted) {
		// The first row may still get some.
		x.few = true // the next rows do not wait again
		numbers, err = x.take(1)
	}
	if err == nil {
		x.given, x.last = true, numbers[len(numbers)-len(x.rows.Slots)]
	}
	return numbers, err
}

func (x *RowTaker) take(rows int) ([]uint64, error) {
	if !x.allowed {
		if err := x.taker.MayTake(x.rows.Slots); err != nil {
			return nil, err
		}
		x.allowed = true
	}
	n := rows * len(x.rows.Slots)
	for len(x.asks) < n {
		x.asks = append(x.asks, x.rows.Slots...)
	}
	patience := &x.taker.Patience
	spent := patience.Spent
	values, err := x.taker.Take(x.asks[:n])
	if err != nil {
		return nil, err
	}
	patience.Spent = spent // the next rows have the whole time again
	x.numbers = x.numbers[:0]
	for i, v := range values {
		if v.Text != "" {
			return nil, errNotCounted(x.asks[i].Sequence)
		}
		x.numbers = append(x.numbers, v.Value)
	}
	return x.numbers, nil
}
