package proxy

import (
	"slices"
	"strconv"

	"seqproxy/statement"
)

// appendSplices appends to f.splices what writes the numbers from k.first on into the INSERT.
func (f *filling) appendSplices(k *filledKey) {
	in, key, first := k.insertion, &k.key, k.first
	dst := slices.Grow(f.splices, len(k.filled)+2)
	if k.listed {
		dst = in.AppendList(dst, key)
	}
	const number, leader = len("18446744073709551615"), len(keyTextOpen + "LAST_INSERT_ID()" + keyTextEnd)
	text := slices.Grow(f.text, len(k.filled)*(number+len("''"))+leader) // of all numbers, in one piece of memory
	for j, r := range k.filled {
		from := len(text)
		switch {
		case r.filling == statement.FillIfEmpty && j == k.leader:
			text = append(text, keyTextOpen...)
			text = f.appendLeader(text, first)
			text = append(text, keyTextEnd...)
		case r.filling == statement.FillIfEmpty:
			text = append(text, '\'')
			text = f.appendNumber(text, first)
			text = append(text, '\'')
		case j == k.leader && !k.plain:
			text = f.appendLeader(text, first)
		default:
			text = f.appendNumber(text, first)
		}
		value := text[from:len(text):len(text)]
		if r.filling == statement.FillIfEmpty {
			dst = in.AppendIfEmpty(dst, r.row, key, value)
		} else {
			dst = in.AppendNumber(dst, r.row, key, value)
		}
		first += k.step
	}
	if k.added {
		dst = in.AppendAlias(dst)
	}
	f.splices, f.text = dst, text
}

// keyTextOpen and keyTextEnd make a string of a number that stands beside an expression of any
// character set: the collation that is named prevails.
const (
	keyTextOpen = "CONVERT("
	keyTextEnd  = " USING utf8mb4) COLLATE utf8mb4_bin"
)

// appendNumber writes a number, and appendLeader that which becomes LAST_INSERT_ID().
func (f *filling) appendNumber(dst []byte, n uint64) []byte {
	if f.placeholders {
		return append(dst, '?')
	}
	return strconv.AppendUint(dst, n, 10)
}

func (f *filling) appendLeader(dst []byte, n uint64) []byte {
	if f.placeholders {
		return append(dst, "LAST_INSERT_ID(?)"...)
	}
	return statement.AppendLastInsertID(dst, n)
}

// takeKeys takes the numbers of a text's keys and writes f.splices.
func (s *session) takeKeys(f *filling) error {
	if f == nil {
		return nil
	}
	f.splices, f.text = f.splices[:0], f.text[:0]
	for i := range f.keys {
		k := &f.keys[i]
		var err error
		if k.first, err = s.takeKey(k.binding, k.explicit, len(k.filled), k.step); err != nil {
			return err
		}
		f.appendSplices(k)
	}
	return nil
}

// spell writes f.splices without taking numbers.
func (f *filling) spell() {
	f.splices, f.text = f.splices[:0], f.text[:0]
	for i := range f.keys {
		f.appendSplices(&f.keys[i])
	}
}

// takeKey takes count numbers, step apart, and returns the first; 0 of none. Those that
// the statement gives itself are taken out of what is handed out.
func (s *session) takeKey(b *Binding, explicit []uint64, count int, step uint64) (first uint64, err error) {
	s.name = append(s.name[:0], b.Sequence...)
	name := s.name
	if len(explicit) > 0 {
		if err := s.patience.over(s.set.Sequences.Avoid(&s.patience, name, explicit)); err != nil {
			return 0, err
		}
	}
	if count == 0 {
		return 0, nil
	}
	if err := s.mayUse(name); err != nil {
		return 0, err
	}
	if count == 1 {
		return s.takeNumbers(name, 1)
	}
	apart, err := s.set.Sequences.Step(&s.patience, name)
	if err = s.patience.over(err); err != nil {
		return 0, err
	}
	for again := true; ; again = false {
		if step%apart != 0 {
			return 0, errApart(b, apart, step)
		}
		first, got, err := s.takeRun(name, 1+uint64(count-1)*(step/apart))
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

// errApart refuses rows whose numbers cannot be step apart.
func errApart(b *Binding, apart, step uint64) error {
	return notSupported("several rows into %s, whose column %s is filled from sequence %s with INCREMENT BY %d, are not supported "+
		"with auto_increment_increment = %d, by which drivers tell the keys of the other rows: set that to a multiple of the INCREMENT",
		b.Table, b.Column, b.Sequence, apart, step)
}
