// Package history checks that numbers were given in the order of time. Tests record the numbers
// that callers got of an ORDER sequence, and when they asked and were answered. porcupine
// (https://github.com/anishathalye/porcupine) says whether that is linearizable.
//
// Start at [History].
package history

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience bounds a check. The model has one choice at each step, so a check of 100,000 calls takes
// a second.
const patience = time.Minute

// History has the calls for one sequence. It is safe for concurrent use. The zero value is empty.
type History struct {
	mu     sync.Mutex
	begin  time.Time // guarded by mu; of the first call
	calls  []call    // guarded by mu
	failed int       // guarded by mu
}

// call is a call that returned the numbers first to last.
type call struct {
	by              string
	first, last     uint64
	asked, answered time.Duration // since begin
}

func (c *call) String() string {
	return fmt.Sprintf("%d to %d by %s, asked at %v, answered at %v", c.first, c.last, c.by, c.asked, c.answered)
}

// Record runs a call that takes a run of numbers, and returns its error. A failed call counts as
// not made: nobody has the numbers that it may have taken, whatever happened on the server.
func (h *History) Record(by string, take func() (first, last uint64, err error)) error {
	asked := time.Now()
	first, last, err := take()
	answered := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begin.IsZero() {
		h.begin = asked
	}
	if err != nil {
		h.failed++
		return err
	}
	h.calls = append(h.calls, call{by, first, last, asked.Sub(h.begin), answered.Sub(h.begin)})
	return nil
}

// Count returns how many calls returned numbers, and how many failed.
func (h *History) Count() (given, failed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls), h.failed
}

// model is a sequence that gives the recorded runs of numbers, from the lowest to the highest. The
// state is the count of given runs. A call's input is the position of its run. Numbers can rise in
// this order of calls only. So the model says the same as one whose state is the last number, and
// leaves nothing to search for.
var model = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		given := state.(int)
		return input.(int) == given, given + 1
	},
}

// Check returns an error if a number was given twice, or if the later of two calls got the lower
// number.
func (h *History) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := slices.Clone(h.calls)
	slices.SortFunc(calls, func(a, b call) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	operations := make([]porcupine.Operation, len(calls))
	for i := range calls {
		c := &calls[i]
		switch {
		case c.first == 0 || c.last < c.first:
			return fmt.Errorf("no numbers were given: %v", c)
		case i > 0 && calls[i-1].last >= c.first:
			return fmt.Errorf("given twice: %v; %v", &calls[i-1], c)
		}
		operations[i] = porcupine.Operation{ClientId: i, Input: i, Call: int64(c.asked), Return: int64(c.answered)}
	}
	switch result := porcupine.CheckOperationsTimeout(model, operations, patience); result {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("not in the order of time: %s", inversion(calls))
	default:
		return fmt.Errorf("the checker said %q within %v of %d calls", result, patience, len(calls))
	}
}

// inversion describes two calls of which the later one got the lower number. calls must be sorted
// by number.
func inversion(calls []call) string {
	var late *call // among those with lower numbers, the one that asked last
	for i := range calls {
		c := &calls[i]
		if late != nil && late.asked > c.answered {
			return fmt.Sprintf("%v; and then %v", c, late)
		}
		if late == nil || c.asked > late.asked {
			late = c
		}
	}
	return "no two calls of it are"
}
