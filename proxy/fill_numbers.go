package proxy

import "seqproxy/proxy/plan"

// takeKeys takes the numbers of a text's keys and writes f.Splices.
func (s *session) takeKeys(f *plan.Filling) error {
	if f == nil {
		return nil
	}
	for i := range f.Keys {
		k := &f.Keys[i]
		var err error
		if k.First, err = s.takeKey(k.Binding, k.Explicit, len(k.Filled), k.Step); err != nil {
			return err
		}
	}
	f.Spell()
	return nil
}

// takeKey takes count numbers, step apart, and returns the first; 0 of none. Those that
// the statement gives itself are taken out of what is handed out.
func (s *session) takeKey(b *plan.Binding, explicit []uint64, count int, step uint64) (first uint64, err error) {
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
func errApart(b *plan.Binding, apart, step uint64) error {
	return notSupported("several rows into %s, whose column %s is filled from sequence %s with INCREMENT BY %d, are not supported "+
		"with auto_increment_increment = %d, by which drivers tell the keys of the other rows: set that to a multiple of the INCREMENT",
		b.Table, b.Column, b.Sequence, apart, step)
}
