package proxy

import (
	"errors"
	"math"

	"seqproxy/proxy/plan"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// maxLastNumbers bounds the sequences of which a session remembers its last number. It
// then forgets the one whose last number is the oldest: LASTVAL() of that is NULL.
const maxLastNumbers = 256

// lastNumbers are the last numbers that a session got, by sequence. The last of the
// list is the one that was taken from last.
type lastNumbers []lastNumber

type lastNumber struct {
	of    sequence.Identity
	value uint64
}

// took takes note of a number.
func (l *lastNumbers) took(of sequence.Identity, value uint64) {
	list := *l
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].of == of {
			copy(list[i:], list[i+1:])
			list[len(list)-1] = lastNumber{of, value}
			return
		}
	}
	if len(list) == maxLastNumbers {
		copy(list, list[1:])
		list = list[:maxLastNumbers-1]
	}
	*l = append(list, lastNumber{of, value})
}

// get is the last number of a sequence, or NULL.
func (l lastNumbers) get(of sequence.Identity) number {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].of == of {
			return number{value: l[i].value}
		}
	}
	return number{null: true}
}

// forget makes the last number of a sequence NULL.
func (l *lastNumbers) forget(of sequence.Identity) {
	list := *l
	for i := range list {
		if list[i].of == of {
			*l = append(list[:i], list[i+1:]...)
			return
		}
	}
}

// takeNumbers takes numbers of a sequence for somebody who needs the n from the first one on, whatever the sequence's INCREMENT.
func (s *session) takeNumbers(name []byte, n uint64) (first uint64, err error) {
	first, _, err = s.takeRun(name, n)
	return first, err
}

// takeRun takes n numbers of a sequence, in its steps, and makes the last of
// them the one that LASTVAL() gives. As MariaDB has it, that is NULL after the sequence ran out.
func (s *session) takeRun(name []byte, n uint64) (first, step uint64, err error) {
	t, err := s.set.Sequences.TakeRun(&s.patience, name, n)
	if err = s.patience.over(err); err != nil {
		if errors.Is(err, sequence.ErrExhausted) {
			s.noteEnd(t.Notice)
			s.got.forget(t.Of)
		}
		return t.First, t.Step, err
	}
	s.noteEnd(t.Notice)
	s.got.took(t.Of, t.First+(n-1)*t.Step)
	return t.First, t.Step, nil
}

// lastOf is LASTVAL() of a sequence.
func (s *session) lastOf(name []byte) (number, error) {
	of, err := s.set.Sequences.Identify(&s.patience, name)
	if err = s.patience.over(err); err != nil {
		return number{}, err
	}
	return s.got.get(of), nil
}

// lastBefore returns what the LASTVALs would give before the text.
func (s *session) lastBefore(asks []plan.Slot) ([]number, error) {
	before := make([]number, len(asks))
	for i := range asks {
		if !asks[i].Takes() || asks[i].Func != statement.Lastval {
			continue
		}
		var err error
		if before[i], err = s.lastOf(asks[i].Sequence); err != nil {
			return nil, err
		}
	}
	return before, nil
}

// fillLast fills in the values of LASTVALs, each of which sees the numbers in front of it.
func (s *session) fillLast(asks []plan.Slot, values, before []number) error {
	seen := make(map[sequence.Identity]uint64)
	for i := range asks {
		if !asks[i].Takes() {
			continue
		}
		of, err := s.set.Sequences.Identify(&s.patience, asks[i].Sequence)
		if err = s.patience.over(err); err != nil {
			return err
		}
		if asks[i].Func == statement.Nextval {
			seen[of] = values[i].last
			continue
		}
		if values[i] = before[i]; seen[of] != 0 {
			values[i] = number{value: seen[of]}
		}
	}
	return nil
}

// lastInParameter refuses what a prepared statement cannot be given as BIGINT.
func lastInParameter(v number) error {
	if v.value > math.MaxInt64 {
		return notSupported("LASTVAL of %d, which is above the signed BIGINT, in a prepared statement is not supported: send it as text", v.value)
	}
	return nil
}
