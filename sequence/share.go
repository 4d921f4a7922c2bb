package sequence

import (
	"math"
	"math/bits"
	"strconv"
)

// share says which numbers are those of one member of a plan, and how a reservation finds the next of them. It is pure. With one member
// all numbers are its own, and what is here is not used. The row's id is the last number that this member gave, or any that it may not
// give nor any below.
type share struct {
	plan       uint64
	id         string // of this member
	count      uint64 // members
	position   uint64 // of this one, from 0
	interleave string
	block      uint64 // numbers in a block, with InterleaveBlock
	counts     rule   // of the sequence, with InterleaveBlock; see by
}

// alone is the share of a server without a plan.
var alone = share{count: 1}

// shared reports whether other members have numbers too.
func (h share) shared() bool { return h.count > 1 }

// inBlocks reports whether the numbers are divided in blocks.
func (h share) inBlocks() bool { return h.shared() && h.interleave == InterleaveBlock }

// inSteps reports whether every count-th number is this member's.
func (h share) inSteps() bool { return h.shared() && h.interleave == InterleaveStep }

// residue is what all numbers of this member are modulo count, with InterleaveStep: 1 for the first member, 0 for the last one.
func (h share) residue() uint64 { return (h.position + 1) % h.count }

// by is the share of a sequence that goes by a rule, for which all counts are of its numbers. In blocks a
// reservation of n numbers moves the row by n*step, within a block: whatever the rule, that holds n
// numbers, and no two reservations have one in common. The step divides the block.
func (h share) by(r rule) share {
	if h.inBlocks() {
		h.counts = r
	}
	return h
}

// width is how far n numbers move the row in a block, at most to the end of 64 bits.
func (h share) width(n uint64) uint64 {
	hi, width := bits.Mul64(n, max(h.counts.step, 1))
	if hi != 0 {
		return math.MaxUint64
	}
	return width
}

// divides reports whether numbers so far apart can be divided.
func (h share) divides(step uint64) bool {
	return step <= 1 || h.inBlocks() && h.block%step == 0
}

// owns reports whether n is one of this member's numbers.
func (h share) owns(n uint64) bool {
	switch {
	case !h.shared():
		return n > 0
	case h.inSteps():
		return n%h.count == h.residue()
	}
	return n > 0 && (n-1)/h.block%h.count == h.position
}

// rule is how this member counts with InterleaveStep, above a floor, where the sequence itself has the given rule.
func (h share) rule(of rule, floor uint64) rule {
	anchor, ok := h.rest(floor + min(1, math.MaxUint64-floor))
	if !ok {
		anchor = math.MaxUint64 // there is no room
	}
	return rule{step: h.count, anchor: anchor, max: of.max}
}

// common is the rule of a sequence as caches know it: that of the distances between its numbers, whichever member they come from.
func (h share) common(of rule) rule {
	if h.inSteps() {
		return rule{step: h.count, anchor: h.count, max: of.max}
	}
	return of
}

// rest is the lowest id, n or above, that a row of this member may be set to; false if there is none.
func (h share) rest(n uint64) (uint64, bool) {
	if !h.inSteps() {
		return n, true
	}
	if n <= h.position+1 {
		return h.position + 1, true // as people set up such servers: 1 on the first, 2 on the second ...
	}
	way := (h.count + h.residue() - n%h.count) % h.count
	return n + way, n <= math.MaxUint64-way
}

// end is the last of the n numbers that are reserved where the row's id is id, and no number up to floor may be given; false if they
// would go beyond 64 bits. Those that fit in a block lie in one; more than that are whole blocks. It does not fall as id or floor rise.
// It is for blocks only.
func (h share) end(id, floor, n uint64) (last uint64, ok bool) {
	id = max(id, floor)
	width := h.width(n)
	if width <= h.block && id/h.block%h.count == h.position && id%h.block+width <= h.block {
		return id + width, id <= math.MaxUint64-width
	}
	begun := id / h.block // blocks of which some number is not to be given
	if id%h.block > 0 {
		begun++
	}
	first := begun + (h.position+h.count-begun%h.count)%h.count
	if first < begun {
		return 0, false
	}
	rest := width
	if width > h.block {
		blocks := h.blocks(n)
		hi, far := bits.Mul64(blocks-1, h.count)
		if hi != 0 || first+far < first {
			return 0, false
		}
		first, rest = first+far, h.block
	}
	hi, before := bits.Mul64(first, h.block)
	return before + rest, hi == 0 && before <= math.MaxUint64-rest
}

// run is how many numbers a block has.
func (h share) run() uint64 { return h.block / max(h.counts.step, 1) }

// blocks is how many whole ones a reservation of n numbers takes, more than fit in one.
func (h share) blocks(n uint64) uint64 { return (n-1)/h.run() + 1 }

// whole is how many numbers a reservation of n brings.
func (h share) whole(n uint64) uint64 {
	if h.inBlocks() && n > h.run() {
		return h.blocks(n) * h.run()
	}
	return n
}

// far is how far a reservation of n numbers moves the row, from before the first to the last.
func (h share) far(n uint64) uint64 {
	if n > h.run() {
		return h.block * ((h.blocks(n)-1)*h.count + 1)
	}
	return h.width(n)
}

// sized is the size that an adaptive reservation of n is given: more than half a block is whole blocks, so that less than half of one
// is ever skipped at its end.
func (h share) sized(n uint64) uint64 {
	if !h.inBlocks() || n <= h.run()/2 || h.width(n) > math.MaxUint64/4 {
		return n
	}
	return h.blocks(n) * h.run()
}

// room is the highest id at which n numbers can be reserved that end at highest or below; false if there is none, or floor is above it.
func (h share) room(floor, n, highest uint64) (uint64, bool) {
	fits := func(id uint64) bool {
		last, ok := h.end(id, floor, n)
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

// segment is the numbers of a reservation of n that moves the row to last.
func (h share) segment(last, n uint64) Segment {
	step := max(h.counts.step, 1)
	s := Segment{left: h.whole(n), step: step, run: h.run(), jump: (h.count-1)*h.block + step, plan: h.plan}
	s.next = last - h.far(n) + 1
	if step > 1 {
		s.next, _ = h.counts.next(s.next-1, math.MaxUint64)
	}
	return s
}

// left is how many numbers this member has above id, up to highest.
func (h share) left(id, highest uint64) uint64 {
	if id >= highest {
		return 0
	}
	upTo := func(x uint64) uint64 { // of this member's numbers
		period := h.count * h.block
		before := h.position * h.block
		whole, part := x/period, x%period
		return whole*h.block + min(part-min(part, before), h.block)
	}
	return (upTo(highest) - upTo(id)) / max(h.counts.step, 1)
}

// reserveBlocks is the id that a reservation in blocks gives a row whose id is g, as end counts. All is unsigned, so that the server
// refuses (with 1690) what goes beyond 64 bits.
func (h share) reserveBlocks(g string, n uint64) string {
	number := func(x uint64) string { return "CAST(" + strconv.FormatUint(x, 10) + " AS UNSIGNED)" }
	b, count := number(h.block), number(h.count)
	begun := "(" + g + " DIV " + b + " + IF(MOD(" + g + ", " + b + ") > 0, " + number(1) + ", " + number(0) + "))"
	first := "(" + begun + " + MOD(" + number(h.position+h.count) + " - MOD(" + begun + ", " + count + "), " + count + "))"
	width := number(h.width(n))
	if n > h.run() {
		return "(" + first + " + " + number((h.blocks(n)-1)*h.count+1) + ") * " + b
	}
	inside := "MOD(" + g + " DIV " + b + ", " + count + ") = " + number(h.position) + " AND MOD(" + g + ", " + b + ") + " + width + " <= " + b
	return "IF(" + inside + ", " + g + " + " + width + ", " + first + " * " + b + " + " + width + ")"
}
