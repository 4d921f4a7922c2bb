package link

import (
	"errors"
	"fmt"
	"strings"
)

// UnfitError is a fault of a sequence server that could make numbers repeat, and its remedy. It
// wraps ErrUnfit.
type UnfitError struct {
	// "10.0.0.5:3306"; empty if the finding is about a table of another server, which the caller
	// names
	Server  string
	Table   string // "`app`.`sequence`", or empty if the finding is about the server
	Finding string
	Remedy  string // a statement or setting that mends it

	// OfSequence: it is about one sequence, and another server cannot replace this one.
	OfSequence bool
	// Momentary: a concurrent change of the row may explain it, so one finding is not enough.
	Momentary bool
}

func (e *UnfitError) Error() string {
	where := "sequence server " + e.Server + " table " + e.Table
	switch "" {
	case e.Table:
		where = "sequence server " + e.Server
	case e.Server:
		where = "table " + e.Table
	}
	return fmt.Sprintf("%s: %s; to mend it: %s", where, e.Finding, e.Remedy)
}

// Statement is the SQL statement that the Remedy begins with; "" if it begins with something else.
func (e *UnfitError) Statement() string {
	verb, _, _ := strings.Cut(e.Remedy, " ")
	switch verb {
	case "ALTER", "CREATE", "DROP", "SET", "STOP":
	default:
		return ""
	}
	statement, _, _ := strings.Cut(e.Remedy, ", or ")
	for _, end := range []string{", and GRANT", " there", " on the one that"} {
		statement, _, _ = strings.Cut(statement, end)
	}
	return statement
}

// Unwrap returns ErrUnfit.
func (e *UnfitError) Unwrap() error { return ErrUnfit }

// Errors for errors.Is.
var (
	// ErrUnfit: the sequence server or its table could repeat numbers, so nothing is reserved
	// there. The error is an [*UnfitError].
	ErrUnfit = errors.New("sequence server is unfit")
	// ErrClosed: after Close.
	ErrClosed = errors.New("sequences are closed")
)
