package sequence

import (
	"errors"
	"fmt"
	"time"

	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/link"
)

// Errors that callers tell apart with errors.Is. They arrive wrapped in text that names the
// sequence.
var (
	// ErrUnknown, ErrExists and ErrExhausted are those of package define.
	ErrUnknown   = define.ErrUnknown
	ErrExists    = define.ErrExists
	ErrExhausted = define.ErrExhausted
	// ErrClosed: Close was called.
	ErrClosed = link.ErrClosed
	// ErrUnfit: the sequence server or its table could repeat numbers, so nothing is reserved
	// there. The error is an [*UnfitError].
	ErrUnfit = link.ErrUnfit
	// ErrSeveral is that of package define.
	ErrSeveral = define.ErrSeveral
)

// UnfitError is a finding on a sequence server that could make numbers repeat; see package link.
type UnfitError = link.UnfitError

// IsDenied says that the account of a sequence server lacks a right. The error names it in the
// server's words.
func IsDenied(err error) bool { return link.IsDenied(err) }

// NameError says what is wrong with one sequence; see package define.
type NameError = define.NameError

type (
	// UnavailableError: the sequence server could not be asked (in time) and no number was left in
	// memory; see package cache.
	UnavailableError = cache.UnavailableError
	// aboutError is an error of one sequence.
	aboutError = cache.AboutError
)

// Public says of an error that is an ErrUnfit or an [*UnavailableError] what whoever asked for
// numbers may know: the sequence, and what to do. Where its server is, how that is set up, and what
// is in the way, is for those who run the proxy. ok is false for other errors.
func Public(err error) (text string, ok bool) {
	var away *UnavailableError
	var about *aboutError
	switch {
	case errors.As(err, &away):
		text = "the sequence table"
		if away.Sequence != "" {
			text = fmt.Sprintf("sequence %q", away.Sequence)
		}
		switch {
		case errors.Is(away.Err, floor.ErrNotKept):
			text += ": no number is left in memory, and none is reserved while the proxy cannot write its state file"
		case away.Ordered:
			text += ": the home of this ORDER sequence is unavailable"
		default:
			text += ": its sequence server is unavailable"
		}
		if away.Waited > 0 {
			text += fmt.Sprintf(" (waited %v)", away.Waited.Round(time.Millisecond))
		}
		return text + away.ForChosen() + "; try again, the proxy's log says why", true
	case errors.Is(err, ErrUnfit):
		text = "the sequence table"
		if errors.As(err, &about) {
			text = fmt.Sprintf("sequence %q", about.Sequence)
		}
		return text + ": its sequence server, or the table there, is unfit to give numbers; the proxy's log says what mends that", true
	}
	return "", false
}
