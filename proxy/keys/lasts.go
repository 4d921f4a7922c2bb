package keys

import "seqproxy/sequence"

// maxLasts bounds the sequences whose last number a session keeps. It drops the oldest, and
// LASTVAL() of that sequence is NULL again.
const maxLasts = 256

// lasts are the last numbers that a session got, by sequence. The latest is at the end.
type lasts []last

type last struct {
	of    sequence.Identity
	value uint64
}

// took records a number.
func (l *lasts) took(of sequence.Identity, value uint64) {
	list := *l
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].of == of {
			copy(list[i:], list[i+1:])
			list[len(list)-1] = last{of, value}
			return
		}
	}
	if len(list) == maxLasts {
		copy(list, list[1:])
		list = list[:maxLasts-1]
	}
	*l = append(list, last{of, value})
}

// get returns the last number of a sequence, or NULL.
func (l lasts) get(of sequence.Identity) Number {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].of == of {
			return Number{Value: l[i].value}
		}
	}
	return Number{Null: true}
}

// forget makes the last number of a sequence NULL.
func (l *lasts) forget(of sequence.Identity) {
	list := *l
	for i := range list {
		if list[i].of == of {
			*l = append(list[:i], list[i+1:]...)
			return
		}
	}
}
