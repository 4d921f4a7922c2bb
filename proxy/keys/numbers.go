package keys

import (
	"bytes"

	"seqproxy/proxy/plan"
)

// Numbers are those of one statement while it is carried out. However it takes them, All takes what
// it needs before it is sent, and the encoder of its command writes the values into it.
type Numbers struct {
	Slots []plan.Slot   // each gets a value
	Fill  *plan.Filling // each of its keys gets numbers; nil: there are none
	Rows  *Rows         // get numbers as they come; nil: they get none
	Block *Block        // that the server counts off; nil: it counts nothing
}

// Of begins to carry out what was planned.
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

// Kept is Of for a text that is prepared, which the names in it outlive. Each execution says itself
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

// Again is n for another execution.
func (n *Numbers) Again() Numbers {
	again := *n
	if n.Block != nil {
		block := *n.Block
		again.Block = &block
	}
	return again
}
