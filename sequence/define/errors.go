package define

import (
	"errors"
	"fmt"

	"seqproxy/sequence/kind"
)

// Errors for errors.Is. They are wrapped in text that names the sequence.
var (
	// ErrUnknown: no sequence has that name. The error is a [*NameError]. MySQL's code: 4091 /
	// 42S02.
	ErrUnknown = errors.New("unknown sequence")
	// ErrExists: a sequence of that name exists. The error is a [*NameError]. MySQL's code: 1050 /
	// 42S01.
	ErrExists = errors.New("sequence exists already")
	// ErrExhausted: fewer numbers remain below the maximum of the id column than were asked for.
	// The error is a [*NameError]. MySQL's code: 4084 / HY000.
	ErrExhausted = errors.New("sequence has run out")
	// ErrSeveral: the request needs a single sequence server, and there are several; or larger
	// blocks of numbers than they have, or more keys than a tick of SNOWFLAKE has.
	ErrSeveral = errors.New("this needs a single sequence server")
	// ErrBadOption: an argument is out of range. The text names it and the range.
	ErrBadOption = errors.New("bad sequence option")
	// ErrConflict: options contradict each other or the id column. It is an ErrBadOption. MariaDB's
	// code: 4085 / HY000.
	ErrConflict = fmt.Errorf("%w: conflicting values", ErrBadOption)
)

// NameError is an error about one sequence. It wraps ErrUnknown, ErrExists or ErrExhausted.
type NameError struct {
	Name string // as the caller or the table spells it
	Err  error
	// Deleted, with ErrUnknown: this proxy reserved numbers up to Deleted, and the row went without
	// DROP SEQUENCE, as by TRUNCATE. Else 0.
	Deleted uint64
}

func (e *NameError) Error() string {
	text := fmt.Sprintf("sequence %q: %v", e.Name, e.Err)
	if e.Deleted > 0 {
		text += "; " + e.Cure()
	}
	return text
}

// Cure says what to do about a row that was Deleted.
func (e *NameError) Cure() string {
	name := Quote(e.Name)
	return fmt.Sprintf("its row was deleted; keys up to %d may be in use, and higher ones that other proxies gave: FLUSH SEQUENCES on every proxy, then "+
		"CREATE SEQUENCE %s START WITH n, where n is above all keys, with the kind and the OWNED BY that it had; where no key is in use: CREATE SEQUENCE %s with that kind, then ALTER SEQUENCE %s RESTART WITH 1 FORCE",
		e.Deleted, name, name, name)
}

// PutBack says for the log how people put a deleted row back.
func PutBack(name string) string {
	return "FLUSH SEQUENCES on every proxy, and then CREATE SEQUENCE " + Quote(name) + " START WITH a number above all its keys, with the kind and the OWNED BY that it had"
}

// Unwrap returns the sentinel.
func (e *NameError) Unwrap() error { return e.Err }

// KindError: the request is not possible for the sequence's kind of keys.
type KindError struct {
	Sequence string
	Kind     kind.Kind
	KindLost bool   // it had a kind, which only a lost table knew
	Refused  string // what is refused
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

// BadOption returns an error that wraps ErrBadOption.
func BadOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadOption, fmt.Sprintf(format, args...))
}
