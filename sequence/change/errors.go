package change

import (
	"fmt"
	"time"
)

// Error says why the set of sequence servers was not changed, or was left in the middle of a
// change, and what to do.
type Error struct {
	Finding string
	Remedy  string
	Err     error // the cause, or nil
}

func (e *Error) Error() string {
	text := e.Finding
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrTakenOver is why a coordinator goes no further: it wrote nothing in that step. A [Store]
// returns it where another coordinator's ballot was promised.
var ErrTakenOver error = &Error{
	Finding: "another proxy has taken over the change, or made another one", Remedy: "look at SHOW SEQPROXY SEQUENCE SERVERS; if this change is not made there, say the same again",
}

// InProgress is the error where a server knows another change than the one that it is asked of, or
// obeys a newer plan.
func InProgress(p *Plan) error {
	if p.State == InForce {
		return ErrTakenOver
	}
	return &Error{
		Finding: fmt.Sprintf("change %s from %s in progress, since %s UTC: it is %s", p.UUID, p.Coordinator, p.Begun.Format(time.DateTime), p.State),
		Remedy:  "wait for it; if its proxy died, end it on any other one by " + p.statement(),
	}
}
