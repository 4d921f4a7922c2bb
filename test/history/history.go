// Package history checks that numbers were given in the order of time: tests record what their
// callers got of an ORDER sequence, and when they asked and were answered, and porcupine
// (https://github.com/anishathalye/porcupine) says whether that is linearizable.
package history

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience bounds a check. The model leaves one choice at each step, so that a check of 100,000
// calls takes a second.
const patience = time.Minute

// History is what the callers of one sequence got. It is safe for concurrent use. The zero value is
// empty.
type History struct {
	mu     sync.Mutex
	begin  time.Time // guarded by mu; of the first call
	calls  []call    // guarded by mu
	failed int       // guarded by mu
}

// call is one that brought the numbers first to last.
type call struct {
	by              string
	first, last     uint64
	asked, answered time.Duration // since begin
}

func (c *call) String() string {
	return fmt.Sprintf("%d to %d by %s, asked at %v, answered at %v", c.first, c.last, c.by, c.asked, c.answered)
}

// Record runs a call that brings a run of numbers, and returns its error. What a call that fails
// may have taken nobody has, now or later: so it is as if it had not been made, whatever became of
// it at the server.
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

// Count says how many calls brought numbers, and how many failed.
func (h *History) Count() (given, failed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls), h.failed
}

// model is a sequence that gives the runs of numbers that were given, from the lowest to the
// highest. The state is how many it has given; the input of a call is the place of its run among
// them. Since every order of the calls in which the numbers rise is that one, it says the same as a
// model whose state is the last number given, and leaves nothing to search for.
var model = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		given := state.(int)
		return input.(int) == given, given + 1
	},
}

// Check returns an error if a number was given twice, or if there are two calls of which the later
// one got the lower number.
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

// inversion names two calls of which the later one got the lower number. The calls are sorted by
// their numbers.
func inversion(calls []call) string {
	var late *call // of those with lower numbers the one that asked last
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
