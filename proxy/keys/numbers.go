package keys

import (
	"bytes"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
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

// Substitute sets the values of numbers, and of the previous LAST_INSERT_ID(), in the substitutions
// of a text. A key that is a text cannot be LAST_INSERT_ID(): the statement's next number is it
// instead.
func Substitute(subs []statement.Substitution, calls []statement.FuncCall, values []Number, previous uint64) {
	led := -1 // statement whose first key is a text
	for i := range subs {
		if place := calls[i].Place; place == statement.PlaceNever || place == statement.PlaceRow && subs[i].Replacement != statement.AsLeading {
			continue
		}
		switch calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			v := &values[i]
			switch was := subs[i].Replacement; {
			case v.Text != "":
				if was == statement.AsLastInsertID {
					led = calls[i].Statement
				}
				subs[i] = statement.Substitution{Replacement: statement.AsText, Text: v.Text, Binary: v.Binary}
				continue
			case was == statement.AsCounted:
				subs[i].Bound, subs[i].Step = v.Last, v.Step
			case led == calls[i].Statement && calls[i].Func == statement.Nextval && was != statement.AsLate:
				led = -1
				subs[i].Replacement = statement.AsLastInsertID
			}
			subs[i].Value, subs[i].Null = v.Value, v.Null
		case statement.LastInsertID, statement.LastInsertIDVariable:
			subs[i].Value = previous
		}
	}
}

// Bind gives late substitutions the numbers of their leaders.
func Bind(late []plan.Late, subs []statement.Substitution) error {
	for _, l := range late {
		if subs[l.Leader].Replacement == statement.AsText {
			return protocol.NotSupported("NEXTVAL of a sequence whose keys are texts, and LAST_INSERT_ID(), in one statement that stands behind another is not supported: send it alone")
		}
		subs[l.At].Bound = subs[l.Leader].Value
	}
	return nil
}
