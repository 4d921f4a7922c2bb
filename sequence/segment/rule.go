package segment

import (
	"math"
	"math/bits"
)

// Rule says which numbers follow the row's id, the last number given: anchor + k*step, up to max.
// It is pure.
//
// An application of old that counts in the same row by steps of one moves the id between two of
// these numbers. The next number is the lowest above it.
type Rule struct {
	Step   uint64 // at least 1
	Anchor uint64 // the lowest number
	Max    uint64 // 0: the maximum of the id column
}

// Simple is the rule of a sequence without options.
var Simple = Rule{Step: 1}

// Same reports whether both rules allow the same numbers above any id.
func (r Rule) Same(o Rule) bool {
	if r.Step != o.Step || r.Max != o.Max {
		return false
	}
	return r.Step == 1 || r.Anchor%r.Step == o.Anchor%o.Step
}

// Next returns the first number after id; false if there is none up to highest.
func (r Rule) Next(id, highest uint64) (uint64, bool) {
	if r.Step == 1 {
		return id + 1, id < highest
	}
	if id < r.Anchor {
		return r.Anchor, r.Anchor <= highest
	}
	// The distance from id to the next number is the rest of a step.
	way := r.Step - (id-r.Anchor)%r.Step
	return id + way, id <= highest && way <= highest-id
}

// Remaining returns how many numbers follow id, up to highest.
func (r Rule) Remaining(id, highest uint64) uint64 {
	first, ok := r.Next(id, highest)
	if !ok {
		return 0
	}
	if rest := (highest - first) / r.Step; rest < math.MaxUint64 {
		return rest + 1
	}
	return math.MaxUint64
}

// Arguments returns the arguments of [store.Table.ReserveByRule] for n numbers, with the result of
// Room.
func (r Rule) Arguments(name string, n, below uint64) []any {
	anchor := r.Anchor
	if r.Step == 1 {
		anchor = 1 // every number will do, even if the row was lowered
	}
	return []any{anchor, anchor, anchor, anchor, r.Step, r.Step, (n - 1) * r.Step, name, below}
}

// Room returns the bound below which the id must be for n numbers to end at highest or before. It
// is false if they never can.
func (r Rule) Room(n, highest uint64) (below uint64, ok bool) {
	hi, width := bits.Mul64(n-1, r.Step)
	if hi != 0 || width >= highest {
		return 0, false
	}
	first := highest - width // the highest number that may be the first
	if r.Step == 1 {
		return first, true
	}
	if first < r.Anchor {
		return 0, false
	}
	return first - (first-r.Anchor)%r.Step, true
}
