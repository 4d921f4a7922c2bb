package keys

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
)

// Avoid takes numbers that a statement gives itself out of what is handed out for a column.
func (t *Taker) Avoid(b *plan.Binding, explicit []uint64) error {
	if len(explicit) == 0 {
		return nil
	}
	t.name = append(t.name[:0], b.Sequence...)
	return t.Patience.Over(t.sequences.Avoid(&t.Patience, t.name, explicit))
}

// Key takes count numbers for a column, step apart, and returns the first.
func (t *Taker) Key(b *plan.Binding, count int, step uint64) (first uint64, err error) {
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
			return 0, ErrApart(b, apart, step)
		}
		first, got, err := t.Run(name, 1+uint64(count-1)*(step/apart))
		switch {
		case err != nil || got == apart:
			return first, err
		case !again:
			return 0, notSupported("an INSERT into %s while the INCREMENT of sequence %s changes, from which its column %s is filled, is not supported: repeat it",
				b.Table, b.Sequence, b.Column)
		}
		apart = got // it was changed meanwhile, perhaps by another proxy; those numbers are a gap
	}
}

// ErrApart refuses rows whose numbers cannot be step apart.
func ErrApart(b *plan.Binding, apart, step uint64) error {
	return notSupported("several rows into %s, whose column %s is filled from sequence %s with INCREMENT BY %d, are not supported "+
		"with auto_increment_increment = %d, by which drivers tell the keys of the other rows: set that to a multiple of the INCREMENT",
		b.Table, b.Column, b.Sequence, apart, step)
}

// notSupported is the error for what the proxy knows and will not do.
func notSupported(format string, args ...any) error {
	return &protocol.ServerError{Code: mysql.ER_NOT_SUPPORTED_YET, State: "42000", Message: fmt.Sprintf("seqproxy: "+format, args...)}
}
