package keys

import (
	"bytes"

	"seqproxy/proxy/plan"
)

// Numbers are the numbers of one statement while it runs. All takes those that it needs before it
// is sent, and the encoder of its command writes the values into it.
type Numbers struct {
	Slots []plan.Slot   // each gets a value
	Fill  *plan.Filling // each of its keys gets numbers; nil: none do
	Rows  *Rows         // get numbers as they come; nil: none do
	Block *Block        // the server counts within it; nil: it counts nothing
	// InsertID is the number taken that surely becomes the insert id; 0: none does.
	InsertID uint64
}

// Once reports whether the statement is sent as it is and never again, whatever its answer.
func (n *Numbers) Once() bool { return n.Fill == nil && n.Rows == nil && n.Block == nil }

// Of makes the Numbers to carry out a plan.
func Of(n *plan.Numbers) Numbers {
	of := Numbers{Slots: n.Slots, Fill: n.Fill}
	if n.Rows != nil {
		of.Rows = &Rows{Rows: *n.Rows}
	}
	if n.Counts != nil {
		of.Block = &Block{Counts: *n.Counts}
	}
	return of
}

// Kept is Of for a prepared text. It copies the names, which outlive the plan. Each execution adds
// what it needs before it is sent.
func Kept(n *plan.Numbers) Numbers {
	of := Of(n)
	of.Slots, of.Fill = nil, nil
	if of.Rows != nil {
		for i := range of.Rows.Slots {
			of.Rows.Slots[i].Sequence = bytes.Clone(of.Rows.Slots[i].Sequence)
		}
	}
	if b := of.Block; b != nil {
		b.Sequence, b.Table.Name = bytes.Clone(b.Sequence), bytes.Clone(b.Table.Name)
	}
	return of
}
