package proxy

import (
	"bytes"

	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// takeOne is take for one NEXTVAL.
func (s *session) takeOne(a *plan.Slot) ([]number, error) {
	first, step, err := s.takeRun(a.Sequence, a.Count)
	if err != nil {
		return nil, err
	}
	return []number{{value: first, last: first + (a.Count-1)*step}}, nil
}

// number is the value of a call.
type number struct {
	value uint64
	last  uint64 // of the numbers that a NEXTVAL takes
	null  bool
}

// take takes what is asked for: the values of asks, in order. The numbers of one
// sequence are consecutive, however it is spelled. The user may use all of them.
func (s *session) take(asks []plan.Slot) (values []number, err error) {
	if len(asks) == 1 && asks[0].Func == statement.Nextval && asks[0].Takes() { // nearly always
		return s.takeOne(&asks[0])
	}
	last := false
	for i := range asks {
		if !asks[i].Takes() {
			continue
		}
		if asks[i].Func == statement.Setval {
			return s.takeInTurn(asks)
		}
		last = last || asks[i].Func == statement.Lastval
	}
	if !last {
		return s.takeNext(asks)
	}
	before, err := s.lastBefore(asks)
	if err != nil {
		return nil, err
	}
	if values, err = s.takeNext(asks); err != nil {
		return nil, err
	}
	return values, s.fillLast(asks, values, before)
}

// takeNext takes the numbers that NEXTVALs ask for.
func (s *session) takeNext(asks []plan.Slot) (values []number, err error) {
	values = make([]number, len(asks))
	taken := make([]bool, len(asks))
	for i := range asks {
		if !asks[i].Takes() || taken[i] || asks[i].Func != statement.Nextval {
			continue
		}
		name := asks[i].Sequence
		var places []int // of the names that mean this sequence
		total := uint64(0)
		for j := i; j < len(asks); j++ {
			if !asks[j].Takes() || taken[j] || asks[j].Func != statement.Nextval {
				continue
			}
			other := asks[j].Sequence
			same := bytes.Equal(other, name)
			if !same {
				var err error
				if same, err = s.set.Sequences.Same(&s.patience, name, other); err != nil {
					return nil, s.patience.over(err)
				}
			}
			if same {
				places = append(places, j)
				total += asks[j].Count
			}
		}
		next, step, err := s.takeRun(name, total)
		if err != nil {
			return nil, err
		}
		for _, j := range places {
			values[j].value, values[j].last, taken[j] = next, next+(asks[j].Count-1)*step, true
			next += asks[j].Count * step
		}
	}
	return values, nil
}
