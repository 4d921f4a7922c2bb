package proxy

import (
	"bytes"

	"seqproxy/statement"
)

// asked is what a call asks of its sequence.
type asked struct {
	fn    statement.Func
	name  []byte // nil: nothing is asked
	count uint64 // of numbers
	set   *statement.SetvalArgs
}

func askedBy(call *statement.FuncCall) asked {
	return asked{fn: call.Func, name: call.Name, count: call.Count, set: call.Set}
}

// takeFor takes what the calls of a text ask for: values[i] is for call i where served[i].
func (s *session) takeFor(calls []statement.FuncCall, served []bool) (values []number, err error) {
	if len(calls) == 1 && served[0] && calls[0].Func == statement.Nextval && calls[0].Place == statement.PlaceOnce { // nearly always
		return s.takeOne(askedBy(&calls[0]))
	}
	asks := make([]asked, len(calls))
	for i := range calls {
		if served[i] && calls[i].Place != statement.PlaceNever {
			asks[i] = askedBy(&calls[i])
		}
	}
	return s.take(asks)
}

// takeOne is take for one NEXTVAL.
func (s *session) takeOne(a asked) ([]number, error) {
	if err := s.mayUse(a.name); err != nil {
		return nil, err
	}
	first, step, err := s.takeRun(a.name, a.count)
	if err != nil {
		return nil, err
	}
	return []number{{value: first, last: first + (a.count-1)*step}}, nil
}

// number is the value of a call.
type number struct {
	value uint64
	last  uint64 // of the numbers that a NEXTVAL takes
	null  bool
}

// take takes what is asked for: the values of asks, in order. The numbers of one
// sequence are consecutive, however it is spelled.
func (s *session) take(asks []asked) (values []number, err error) {
	if len(asks) == 1 && asks[0].fn == statement.Nextval && asks[0].name != nil {
		return s.takeOne(asks[0])
	}
	last, set := false, false
	for i := range asks {
		if asks[i].name == nil {
			continue
		}
		if err := s.mayUse(asks[i].name); err != nil {
			return nil, err
		}
		last = last || asks[i].fn == statement.Lastval
		set = set || asks[i].fn == statement.Setval
	}
	if set {
		for i := range asks {
			if err := s.maySet(asks[i]); err != nil { // a second time, where a parameter names it
				return nil, err
			}
		}
		return s.takeInTurn(asks)
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
func (s *session) takeNext(asks []asked) (values []number, err error) {
	values = make([]number, len(asks))
	taken := make([]bool, len(asks))
	for i := range asks {
		name := asks[i].name
		if name == nil || taken[i] || asks[i].fn != statement.Nextval {
			continue
		}
		var places []int // of the names that mean this sequence
		total := uint64(0)
		for j := i; j < len(asks); j++ {
			other := asks[j].name
			if other == nil || taken[j] || asks[j].fn != statement.Nextval {
				continue
			}
			same := bytes.Equal(other, name)
			if !same {
				var err error
				if same, err = s.set.Sequences.Same(&s.patience, name, other); err != nil {
					return nil, s.patience.over(err)
				}
			}
			if same {
				places = append(places, j)
				total += asks[j].count
			}
		}
		next, step, err := s.takeRun(name, total)
		if err != nil {
			return nil, err
		}
		for _, j := range places {
			values[j].value, values[j].last, taken[j] = next, next+(asks[j].count-1)*step, true
			next += asks[j].count * step
		}
	}
	return values, nil
}
