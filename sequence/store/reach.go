package store

import (
	"math"
	"math/bits"
)

// Highest returns the last number that a sequence may give, by the latest rule read.
func (st *Store) Highest(name string) uint64 {
	highest := st.Seen.Load().Max
	if r := st.Rules.Of(name); r.Max != 0 {
		highest = min(highest, r.Max)
	}
	return highest
}

// CoverOf returns how many ticks last for the cover of the sequence of a worker, by the name of the
// worker's row; 0 if this process does not use the sequence.
func (st *Store) CoverOf(name string) uint64 {
	return st.Config.Cover(name)
}

// Width returns the distance from position to the last of the next n numbers; false if they exceed
// 64 bits.
func (st *Store) Width(name string, position, n uint64) (uint64, bool) {
	rule := st.Rules.Of(name)
	h, floor := st.ShareOf(name, rule), st.Marks.Of(name)
	if h.InBlocks() {
		last, ok := h.End(position, floor, n)
		return last - position, ok && last >= position
	}
	if h.InSteps() {
		rule = h.Rule(rule, floor)
	}
	first, ok := rule.Next(position, math.MaxUint64)
	hi, rest := bits.Mul64(n-1, rule.Step)
	width := first - position + rest
	return width, ok && hi == 0 && width >= rest && width <= math.MaxUint64-position
}

// Remaining returns how many numbers up to highest this server has of a sequence.
func (st *Store) Remaining(name string, stored *Row, highest uint64) uint64 {
	switch h := st.ShareOf(name, stored.Rule()); {
	case h.InBlocks():
		return h.Remaining(max(stored.ID, st.Marks.Of(name)), highest)
	case h.InSteps():
		return h.Rule(stored.Rule(), st.Marks.Of(name)).Remaining(max(stored.ID, st.Marks.Of(name)), highest)
	}
	return stored.Rule().Remaining(stored.ID, highest)
}
