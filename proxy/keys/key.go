package keys

import (
	"errors"
	"fmt"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/sequence"
)

// Avoid takes numbers that a statement gives itself out of what is handed out for a column. Before
// the counter moves, the server says whether the user may insert rows into the table: else anybody
// could end a sequence. Without a table the server has said so at PREPARE. A user with limited
// rights needs the right to the sequence, too: the table may be a temporary one of his own.
func (t *Taker) Avoid(k *plan.FilledKey) error {
	if len(k.Explicit) == 0 {
		return nil
	}
	t.name = append(t.name[:0], k.Binding.Sequence...)
	if len(k.Table) > 0 || t.rights != nil {
		enough, err := t.sequences.AvoidHere(&t.Patience, t.name, k.Explicit)
		if err = t.Patience.Over(err); err != nil || enough {
			return err
		}
		if len(k.Table) > 0 {
			if err := t.session.MayInsert(k); err != nil {
				return err
			}
		}
		if err := t.MayUse(t.name); err != nil {
			return err
		}
	}
	return t.Patience.Over(t.sequences.Avoid(&t.Patience, t.name, k.Explicit))
}

// key takes the numbers of a column: k.First and those behind it, k.Step apart, or k.Further if
// that cannot be and need not. Those that the statement gives itself are taken out of what is
// handed out.
func (t *Taker) key(k *plan.FilledKey) error {
	b := k.Binding
	if err := t.Avoid(k); err != nil || len(k.Filled) == 0 {
		return err
	}
	if t.rights != nil {
		if err := t.MayUse([]byte(b.Sequence)); err != nil {
			return err
		}
	}
	t.name = append(t.name[:0], b.Sequence...)
	k.Further = k.Further[:0] // a statement that is sent again has those of before
	// No driver counts on from a text.
	if len(k.Filled) == 1 || b.Texts {
		return t.eachAlone(k)
	}
	err := t.apart(k)
	if err == nil {
		return nil // what looks for a kind of error takes memory
	}
	if t.firstAlone && (errors.As(err, new(*sequence.KindError)) || errors.As(err, new(*apartError)) || errors.As(err, new(fits))) {
		return t.eachAlone(k)
	}
	return forDrivers(b, err)
}

// apart takes the numbers of several rows, k.Step apart.
func (t *Taker) apart(k *plan.FilledKey) error {
	b, name := k.Binding, t.name
	apart, err := t.sequences.Step(&t.Patience, name)
	if err = t.Patience.Over(err); err != nil {
		return err
	}
	for again := true; ; again = false {
		if k.Step%apart != 0 {
			return &apartError{b, apart, k.Step}
		}
		first, got, err := t.Run(name, 1+uint64(len(k.Filled)-1)*(k.Step/apart))
		switch {
		case err != nil || got == apart:
			k.First = first
			return err
		case !again:
			return protocol.NotSupported("an INSERT into %s while the INCREMENT of sequence %s changes, from which its column %s is filled, is not supported: repeat it",
				b.Table, b.Sequence, b.Column)
		}
		apart = got // it was changed meanwhile, perhaps by another proxy; those numbers are a gap
	}
}

// eachAlone takes a key for each row.
func (t *Taker) eachAlone(k *plan.FilledKey) (err error) {
	if k.Binding.Texts {
		return t.texts(k)
	}
	if k.First, err = t.first(t.name, 1); err != nil {
		return err
	}
	for range k.Filled[1:] {
		n, err := t.first(t.name, 1)
		if err != nil {
			return err
		}
		k.Further = append(k.Further, n)
	}
	return nil
}

// texts is eachAlone for texts.
func (t *Taker) texts(k *plan.FilledKey) error {
	k.Texts = k.Texts[:0]
	for range k.Filled {
		n, err := t.next(t.name)
		switch {
		case err != nil:
			return err
		case n.Text == "":
			return protocol.NotSupported("sequence %s gave texts a moment ago and gives numbers now: repeat the statement", k.Binding.Sequence)
		}
		k.Texts = append(k.Texts, n.Text)
	}
	return nil
}

// apartError: the numbers of rows cannot be step apart.
type apartError struct {
	b           *plan.Binding
	apart, step uint64
}

func (e *apartError) Error() string {
	return fmt.Sprintf("several rows into %s, whose column %s is filled from sequence %s with INCREMENT BY %d, are not supported "+
		"with auto_increment_increment = %d, by which drivers tell the keys of the other rows: set that to a multiple of the INCREMENT",
		e.b.Table, e.b.Column, e.b.Sequence, e.apart, e.step)
}

// forDrivers adds to an error the option with which drivers know the first key alone.
func forDrivers(b *plan.Binding, err error) error {
	const option = `multi_row = "first" (the insert id is the first row's key, and tells nothing of the others)`
	var apart *apartError
	var kind *sequence.KindError
	switch {
	case errors.As(err, &apart):
		return protocol.NotSupported("%v, or %s", apart, option)
	case errors.As(err, &kind):
		return protocol.NotSupported("several rows into %s, whose column %s is filled from sequence %s of kind %v, are not supported, as drivers tell the keys "+
			"of the other rows by adding to the first: write NEXTVAL in each row, or set %s", b.Table, b.Column, b.Sequence, kind.Kind, option)
	}
	return err
}
