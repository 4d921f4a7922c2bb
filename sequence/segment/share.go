package segment

import (
	"math"
	"math/bits"
	"strconv"
)

// Ways for the members of a plan to divide the numbers.
const (
	// member k of N has the blocks congruent to k mod N; number x lies in block (x-1)/size
	InBlocks = "block"
	InSteps  = "step" // member k of N has the numbers congruent to k+1 mod N
)

// Share says which numbers belong to one member of a plan, and how a reservation finds the next of
// them. It is pure. A single member has all numbers, and needs none of this. The row's id is the
// last number that the member gave, or one up to which it may give none.
type Share struct {
	Plan       uint64
	ID         string // of this member
	Count      uint64 // members
	Position   uint64 // of this member, from 0
	Interleave string
	Block      uint64 // numbers in a block, with InBlocks
	counts     Rule   // the rule of the sequence, with InBlocks; see By
}

// Alone is the share of a server without a plan.
var Alone = Share{Count: 1}

// Shared reports whether other members have numbers, too.
func (h Share) Shared() bool { return h.Count > 1 }

// InBlocks reports whether the numbers are divided in blocks.
func (h Share) InBlocks() bool { return h.Shared() && h.Interleave == InBlocks }

// InSteps reports whether the numbers are divided in steps.
func (h Share) InSteps() bool { return h.Shared() && h.Interleave == InSteps }

// Residue is the residue of this member's numbers modulo Count, with InSteps: 1 for the first
// member, 0 for the last.
func (h Share) Residue() uint64 { return (h.Position + 1) % h.Count }

// By returns the share for a sequence with a rule: all counts are of its numbers. In blocks, a
// reservation of n numbers moves the row by n*step within a block, which must be a multiple of the
// step. Whatever the rule, these are n numbers, and no two reservations share one.
func (h Share) By(r Rule) Share {
	if h.InBlocks() {
		h.counts = r
	}
	return h
}

// wholeBlock is a block that no sequence of ticks leaves. MaxMembers of them fit in 64 bits.
const wholeBlock = 1 << MostTickBits

// MostTickBits bounds the bits of the numbers of a sequence that one member alone gives.
const MostTickBits = 57

// Home returns the share of a sequence that one member alone gives, the one at position modulo
// Count. Its one block has all numbers, and the blocks of the others have none.
func (h Share) Home(position uint64) Share {
	if h.Shared() {
		h.Interleave, h.Block = InBlocks, wholeBlock
		h.Position = (h.Position + h.Count - position%h.Count) % h.Count
	}
	return h
}

// Width returns how far n numbers move the row in a block, at most to the end of 64 bits.
func (h Share) Width(n uint64) uint64 {
	hi, width := bits.Mul64(n, max(h.counts.Step, 1))
	if hi != 0 {
		return math.MaxUint64
	}
	return width
}

// Divides reports whether numbers at this distance can be divided.
func (h Share) Divides(step uint64) bool {
	return step <= 1 || h.InBlocks() && h.Block%step == 0
}

// Has reports whether n is one of this member's numbers.
func (h Share) Has(n uint64) bool {
	switch {
	case !h.Shared():
		return n > 0
	case h.InSteps():
		return n%h.Count == h.Residue()
	}
	return n > 0 && (n-1)/h.Block%h.Count == h.Position
}

// Rule returns the rule of this member above a floor, with InSteps, for a sequence with the given
// rule.
func (h Share) Rule(of Rule, floor uint64) Rule {
	anchor, ok := h.Rest(floor + min(1, math.MaxUint64-floor))
	if !ok {
		anchor = math.MaxUint64 // there is no room
	}
	return Rule{Step: h.Count, Anchor: anchor, Max: of.Max}
}

// Common returns the rule of a sequence as caches have it: the distances between its numbers,
// whichever members they come from.
func (h Share) Common(of Rule) Rule {
	if h.InSteps() {
		return Rule{Step: h.Count, Anchor: h.Count, Max: of.Max}
	}
	return of
}

// Rest returns the lowest id from n on that a row of this member may be set to; false if there is
// none.
func (h Share) Rest(n uint64) (uint64, bool) {
	if !h.InSteps() {
		return n, true
	}
	if n <= h.Position+1 {
		// as people set up such servers: 1 on the first, 2 on the second ...
		return h.Position + 1, true
	}
	way := (h.Count + h.Residue() - n%h.Count) % h.Count
	return n + way, n <= math.MaxUint64-way
}

// End returns the last of n numbers that are reserved above the row's id and above floor; false if
// they would exceed 64 bits. Numbers that fit in a block lie in one; more are whole blocks. End
// does not fall as id or floor rise. It is for blocks only.
func (h Share) End(id, floor, n uint64) (last uint64, ok bool) {
	id = max(id, floor)
	width := h.Width(n)
	if width <= h.Block && id/h.Block%h.Count == h.Position && id%h.Block+width <= h.Block {
		return id + width, id <= math.MaxUint64-width
	}
	begun := id / h.Block // blocks with a number that must not be given
	if id%h.Block > 0 {
		begun++
	}
	first := begun + (h.Position+h.Count-begun%h.Count)%h.Count
	if first < begun {
		return 0, false
	}
	rest := width
	if width > h.Block {
		blocks := h.blocks(n)
		hi, far := bits.Mul64(blocks-1, h.Count)
		if hi != 0 || first+far < first {
			return 0, false
		}
		first, rest = first+far, h.Block
	}
	hi, before := bits.Mul64(first, h.Block)
	return before + rest, hi == 0 && before <= math.MaxUint64-rest
}

// Run returns how many numbers a block has; 1 if none fits, which Divides refuses.
func (h Share) Run() uint64 { return max(h.Block/max(h.counts.Step, 1), 1) }

// blocks returns how many whole blocks a reservation of n numbers takes, if they do not fit in one.
func (h Share) blocks(n uint64) uint64 { return (n-1)/h.Run() + 1 }

// Whole returns how many numbers a reservation of n brings.
func (h Share) Whole(n uint64) uint64 {
	if h.InBlocks() && n > h.Run() {
		return h.blocks(n) * h.Run()
	}
	return n
}

// Span returns how far a reservation of n numbers moves the row, from before the first to the last.
func (h Share) Span(n uint64) uint64 {
	if n > h.Run() {
		return h.Block * ((h.blocks(n)-1)*h.Count + 1)
	}
	return h.Width(n)
}

// Sized returns the size of an adaptive reservation of n. More than half a block becomes whole
// blocks, so that less than half of one is ever skipped at its end.
func (h Share) Sized(n uint64) uint64 {
	if !h.InBlocks() || n <= h.Run()/2 || h.Width(n) > math.MaxUint64/4 {
		return n
	}
	return h.blocks(n) * h.Run()
}

// Room returns the highest id at which n numbers can be reserved that end at highest or below;
// false if there is none, or if it is below floor.
func (h Share) Room(floor, n, highest uint64) (uint64, bool) {
	fits := func(id uint64) bool {
		last, ok := h.End(id, floor, n)
		return ok && last <= highest
	}
	if !fits(floor) {
		return 0, false
	}
	low, high := floor, uint64(math.MaxUint64) // fits(low) holds, and fits is false above high
	for low < high {
		middle := low + (high-low)/2 + 1
		if fits(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, true
}

// Segment returns the numbers of a reservation of n that moves the row to last.
func (h Share) Segment(last, n uint64) Segment {
	step := max(h.counts.Step, 1)
	s := Segment{remaining: h.Whole(n), Step: step, Run: h.Run(), jump: (h.Count-1)*h.Block + step, Plan: h.Plan}
	s.next = last - h.Span(n) + 1
	if step > 1 {
		s.next, _ = h.counts.Next(s.next-1, math.MaxUint64)
	}
	return s
}

// Remaining returns how many numbers this member has above id, up to highest.
func (h Share) Remaining(id, highest uint64) uint64 {
	if id >= highest {
		return 0
	}
	upTo := func(x uint64) uint64 { // numbers of this member
		period := h.Count * h.Block
		before := h.Position * h.Block
		whole, part := x/period, x%period
		return whole*h.Block + min(part-min(part, before), h.Block)
	}
	return (upTo(highest) - upTo(id)) / max(h.counts.Step, 1)
}

// ReserveBlocks is the id that a reservation in blocks gives a row whose id is g, calculated as in
// End. All is unsigned, so that the server refuses (1690) what exceeds 64 bits.
func (h Share) ReserveBlocks(g string, n uint64) string {
	number := func(x uint64) string { return "CAST(" + strconv.FormatUint(x, 10) + " AS UNSIGNED)" }
	b, count := number(h.Block), number(h.Count)
	begun := "(" + g + " DIV " + b + " + IF(MOD(" + g + ", " + b + ") > 0, " + number(1) + ", " + number(0) + "))"
	first := "(" + begun + " + MOD(" + number(h.Position+h.Count) + " - MOD(" + begun + ", " + count + "), " + count + "))"
	width := number(h.Width(n))
	if n > h.Run() {
		return "(" + first + " + " + number((h.blocks(n)-1)*h.Count+1) + ") * " + b
	}
	inside := "MOD(" + g + " DIV " + b + ", " + count + ") = " + number(h.Position) + " AND MOD(" + g + ", " + b + ") + " + width + " <= " + b
	return "IF(" + inside + ", " + g + " + " + width + ", " + first + " * " + b + " + " + width + ")"
}

// StartSQL is the id that a row starts with, from the column `floor` of f: at or above the floor,
// as Rest has it. A row gets end, the highest number of its column, if nothing remains.
func (h Share) StartSQL(end uint64) string {
	const floor = "f.`floor`"
	number := func(n uint64) string { return "CAST(" + strconv.FormatUint(n, 10) + " AS UNSIGNED)" }
	if !h.InSteps() {
		return "LEAST(" + floor + ", " + number(end) + ")"
	}
	from := "GREATEST(" + floor + ", " + number(1) + ")"
	at := from + " + MOD(" + number(h.Residue()+h.Count) + " - MOD(" + from + ", " + number(h.Count) + "), " + number(h.Count) + ")"
	return "IF(" + floor + " > " + number(end-min(end, h.Count)) + ", " + number(end) + ", " + at + ")"
}
