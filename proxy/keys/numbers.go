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

// All takes the numbers that a statement needs before it is sent. It returns the values of the
// slots, and puts those of keys into n.Fill, and the first row's into n.Rows. Or it begins a block,
// which is the value of each slot then.
func (t *Taker) All(n *Numbers) (values []Number, err error) {
	if n.Block != nil {
		return t.counted(n)
	}
	if values, err = t.Take(n.Slots); err != nil {
		return nil, err
	}
	if n.Rows != nil && n.Rows.Lead >= 0 {
		if values[n.Rows.Lead].Value, err = t.ahead(n.Rows); err != nil {
			return nil, err
		}
	}
	if n.Fill == nil {
		return values, nil
	}
	for i := range n.Fill.Keys {
		if err = t.key(&n.Fill.Keys[i]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// counted is All where the server counts off.
func (t *Taker) counted(n *Numbers) ([]Number, error) {
	if err := t.block(n.Block); err != nil {
		return nil, err
	}
	values := make([]Number, len(n.Slots))
	for i := range values {
		if n.Slots[i].When == plan.Counted {
			values[i] = n.Block.number()
		}
	}
	return values, nil
}

// MayTakeAll is what a plan asks of the user's rights, for a statement that was planned before:
// they may be others since, and parameters may name the sequences. Rights to what rows get are
// asked for with the first that gets some.
func (t *Taker) MayTakeAll(n *Numbers) error {
	if err := t.MayTake(n.Slots); err != nil {
		return err
	}
	switch {
	case n.Block != nil:
		return t.MayUse(n.Block.Sequence)
	case n.Rows != nil && n.Rows.Lead >= 0:
		return t.MayTake(n.Rows.Slots)
	}
	return nil
}
