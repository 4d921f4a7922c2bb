package define

import (
	"errors"
	"fmt"

	"seqproxy/sequence/kind"
)

// Errors of a definition.
var (
	// ErrBadOption: an argument is out of its range; the text names it and what is allowed.
	ErrBadOption = errors.New("bad sequence option")
	// ErrConflict: options contradict each other or the id column. It is an ErrBadOption. MariaDB's
	// words: 4085 / HY000.
	ErrConflict = fmt.Errorf("%w: conflicting values", ErrBadOption)
)

// KindError: a sequence has a kind of keys, for which something is not done.
type KindError struct {
	Sequence string
	Kind     kind.Kind
	KindLost bool   // it had a kind, which only a table knew that is lost
	Refused  string // what is not done
	WayOut   string
}

func (e *KindError) Error() string {
	of := "a plain sequence"
	switch {
	case e.KindLost:
		of = "a sequence whose kind of keys is not known any more"
	case !e.Kind.IsPlain():
		of = "a sequence of kind " + e.Kind.String()
	}
	return fmt.Sprintf("%s is not supported for %q, %s: %s", e.Refused, e.Sequence, of, e.WayOut)
}

// BadOption builds an error that wraps ErrBadOption.
func BadOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadOption, fmt.Sprintf(format, args...))
}
