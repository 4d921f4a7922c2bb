package cache

import (
	"errors"
	"fmt"
	"time"

	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
)

// UnavailableError: the sequence server could not be asked (in time) and the cache was empty, or an
// answer was needed that only the server has. A later attempt may succeed; nothing has to be
// restarted.
type UnavailableError struct {
	Sequence string        // "" for all sequences
	Server   string        // "10.0.0.5:3306"
	Waited   time.Duration // how long the caller waited; 0 if it did not
	// Ordered: the sequence has ORDER, and Server is its home, which alone may give its numbers.
	Ordered bool
	// Chosen: the caller needs no number, but the counter to move above one that a client chose.
	Chosen bool
	Err    error // the cause
}

func (e *UnavailableError) Error() string {
	what := "sequence table"
	if e.Sequence != "" {
		what = fmt.Sprintf("sequence %q", e.Sequence)
	}
	server := fmt.Sprintf("sequence server %s is unavailable", e.Server)
	switch {
	case errors.Is(e.Err, floor.ErrNotKept):
		server = "no number is left in memory"
	case e.Ordered:
		server = fmt.Sprintf("the home of this ORDER sequence, server %s is unavailable", e.Server)
	}
	waited := ""
	if e.Waited > 0 {
		waited = fmt.Sprintf(" (waited %v)", e.Waited.Round(time.Millisecond))
	}
	return fmt.Sprintf("%s: %s%s%s: %v", what, server, waited, e.ForChosen(), e.Err)
}

// ForChosen says why a caller who brings a number needs the server, or is "".
func (e *UnavailableError) ForChosen() string {
	if !e.Chosen {
		return ""
	}
	return ": the statement brings a key above all that this proxy has reserved, so the counter must move"
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// unavailableLocked returns the error of a caller that gets no number.
func (c *Cache) unavailableLocked(waited time.Duration, cause error) error {
	server, _ := c.all.Owner.WhyNot(c.Name)
	return &UnavailableError{Sequence: define.ShownName(c.Name), Server: server, Waited: waited, Ordered: c.order, Err: cause}
}

// AboutError is an error of one sequence.
type AboutError struct {
	Sequence string
	Err      error
}

func (e *AboutError) Error() string { return fmt.Sprintf("sequence %q: %v", e.Sequence, e.Err) }

// Unwrap returns the cause.
func (e *AboutError) Unwrap() error { return e.Err }
