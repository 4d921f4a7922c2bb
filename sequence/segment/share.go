package segment

import (
	"math"
	"math/bits"
	"strconv"
)

// How the members of a plan divide the numbers.
const (
	// member k of N has the blocks congruent to k mod N; number x lies in block (x-1)/size
	InBlocks = "block"
	InSteps  = "step" // member k of N has the numbers congruent to k+1 mod N
)

// Share says which numbers are those of one member of a plan, and how a reservation finds the next
// of them. It is pure. With one member all numbers are its own, and what is here is not used. The
// row's id is the last number that this member gave, or any that it may not give nor any below.
type Share struct {
	Plan       uint64
	ID         string // of this member
	Count      uint64 // members
	Position   uint64 // of this one, from 0
	Interleave string
	Block      uint64 // numbers in a block, with InterleaveBlock
	counts     Rule   // of the sequence, with InterleaveBlock; see by
}

// Alone is the share of a server without a plan.
var Alone = Share{Count: 1}

// Shared reports whether other members have numbers too.
func (h Share) Shared() bool { return h.Count > 1 }

// InBlocks reports whether the numbers are divided in blocks.
func (h Share) InBlocks() bool { return h.Shared() && h.Interleave == InBlocks }

// InSteps reports whether every count-th number is this member's.
func (h Share) InSteps() bool { return h.Shared() && h.Interleave == InSteps }

// Residue is what all numbers of this member are modulo count, with InSteps: 1 for the first
// member, 0 for the last one.
func (h Share) Residue() uint64 { return (h.Position + 1) % h.Count }

// By is the share of a sequence that goes by a rule, for which all counts are of its numbers. In
// blocks a reservation of n numbers moves the row by n*step, within a block: whatever the rule,
// that holds n numbers, and no two reservations have one in common. The step divides the block.
func (h Share) By(r Rule) Share {
	if h.InBlocks() {
		h.counts = r
	}
	return h
}

// wholeBlock is a block that no sequence of ticks leaves. MaxMembers of them fit in 64 bits.
const wholeBlock = 1 << MostTickBits

// MostTickBits is how many bits the numbers of a sequence have at most that one member alone gives.
const MostTickBits = 57

// Home is the share of a sequence all of whose numbers are of one member, that at a position modulo
// the count: it has one block, and the others have theirs where no number is.
func (h Share) Home(position uint64) Share {
	if h.Shared() {
		h.Interleave, h.Block = InBlocks, wholeBlock
		h.Position = (h.Position + h.Count - position%h.Count) % h.Count
	}
	return h
}

// Width is how far n numbers move the row in a block, at most to the end of 64 bits.
func (h Share) Width(n uint64) uint64 {
	hi, width := bits.Mul64(n, max(h.counts.Step, 1))
	if hi != 0 {
		return math.MaxUint64
	}
	return width
}

// Divides reports whether numbers so far apart can be divided.
func (h Share) Divides(step uint64) bool {
	return step <= 1 || h.InBlocks() && h.Block%step == 0
}

// Owns reports whether n is one of this member's numbers.
func (h Share) Owns(n uint64) bool {
	switch {
	case !h.Shared():
		return n > 0
	case h.InSteps():
		return n%h.Count == h.Residue()
	}
	return n > 0 && (n-1)/h.Block%h.Count == h.Position
}

// Rule is how this member counts with InSteps, above a floor, where the sequence itself has the
// given rule.
func (h Share) Rule(of Rule, floor uint64) Rule {
	anchor, ok := h.Rest(floor + min(1, math.MaxUint64-floor))
	if !ok {
		anchor = math.MaxUint64 // there is no room
	}
	return Rule{Step: h.Count, Anchor: anchor, Max: of.Max}
}

// Common is the rule of a sequence as caches know it: that of the distances between its numbers,
// whichever member they come from.
func (h Share) Common(of Rule) Rule {
	if h.InSteps() {
		return Rule{Step: h.Count, Anchor: h.Count, Max: of.Max}
	}
	return of
}

// Rest is the lowest id, n or above, that a row of this member may be set to; false if there is
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

// End is the last of the n numbers that are reserved where the row's id is id, and no number up to
// floor may be given; false if they would go beyond 64 bits. Those that fit in a block lie in one;
// more than that are whole blocks. It does not fall as id or floor rise. It is for blocks only.
func (h Share) End(id, floor, n uint64) (last uint64, ok bool) {
	id = max(id, floor)
	width := h.Width(n)
	if width <= h.Block && id/h.Block%h.Count == h.Position && id%h.Block+width <= h.Block {
		return id + width, id <= math.MaxUint64-width
	}
	begun := id / h.Block // blocks of which some number is not to be given
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

// Run is how many numbers a block has; 1 where they do not fit, which Divides refuses.
func (h Share) Run() uint64 { return max(h.Block/max(h.counts.Step, 1), 1) }

// blocks is how many whole ones a reservation of n numbers takes, more than fit in one.
func (h Share) blocks(n uint64) uint64 { return (n-1)/h.Run() + 1 }

// Whole is how many numbers a reservation of n brings.
func (h Share) Whole(n uint64) uint64 {
	if h.InBlocks() && n > h.Run() {
		return h.blocks(n) * h.Run()
	}
	return n
}

// Far is how far a reservation of n numbers moves the row, from before the first to the last.
func (h Share) Far(n uint64) uint64 {
	if n > h.Run() {
		return h.Block * ((h.blocks(n)-1)*h.Count + 1)
	}
	return h.Width(n)
}

// Sized is the size that an adaptive reservation of n is given: more than half a block is whole
// blocks, so that less than half of one is ever skipped at its end.
func (h Share) Sized(n uint64) uint64 {
	if !h.InBlocks() || n <= h.Run()/2 || h.Width(n) > math.MaxUint64/4 {
		return n
	}
	return h.blocks(n) * h.Run()
}

// Room is the highest id at which n numbers can be reserved that end at highest or below; false if
// there is none, or floor is above it.
func (h Share) Room(floor, n, highest uint64) (uint64, bool) {
	fits := func(id uint64) bool {
		last, ok := h.End(id, floor, n)
		return ok && last <= highest
	}
	if !fits(floor) {
		return 0, false
	}
	low, high := floor, uint64(math.MaxUint64) // fits(low), and not of what is above high
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

// Segment is the numbers of a reservation of n that moves the row to last.
func (h Share) Segment(last, n uint64) Segment {
	step := max(h.counts.Step, 1)
	s := Segment{remaining: h.Whole(n), Step: step, Run: h.Run(), jump: (h.Count-1)*h.Block + step, Plan: h.Plan}
	s.next = last - h.Far(n) + 1
	if step > 1 {
		s.next, _ = h.counts.Next(s.next-1, math.MaxUint64)
	}
	return s
}

// Remaining is how many numbers this member has above id, up to highest.
func (h Share) Remaining(id, highest uint64) uint64 {
	if id >= highest {
		return 0
	}
	upTo := func(x uint64) uint64 { // of this member's numbers
		period := h.Count * h.Block
		before := h.Position * h.Block
		whole, part := x/period, x%period
		return whole*h.Block + min(part-min(part, before), h.Block)
	}
	return (upTo(highest) - upTo(id)) / max(h.counts.Step, 1)
}

// ReserveBlocks is the id that a reservation in blocks gives a row whose id is g, as end counts.
// All is unsigned, so that the server refuses (with 1690) what goes beyond 64 bits.
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

// StartSQL is the id that a row starts with, by the column `floor` of f: at or above the floor, and
// where rest has it. end is the highest number that the column holds, and what a row gets where
// nothing is left.
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
