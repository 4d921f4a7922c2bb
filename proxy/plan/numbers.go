package plan

// Numbers is what is taken for a statement before it is sent: how many, of what, and into which
// slots. How they get into it is the encoder's affair: a text has them spliced in, an execution has
// parameters for them, a bulk execution as many for each row.
type Numbers struct {
	Slots []Slot // each gets a value
	// the slot that gets the first number of the first row that is returned; -1: none
	Lead int
	Fill *Filling // each of its keys gets consecutive numbers; nil: there are none
}

// Numbers are those that a text needs.
func (a *Action) Numbers() Numbers {
	n := Numbers{Slots: a.Slots, Lead: -1, Fill: a.Fill}
	if a.Do != PerRow || !a.Rows.Leads {
		return n
	}
	for i := range a.Slots { // the first with a number for each row
		if a.Slots[i].When == EachRow {
			n.Lead = i
			break
		}
	}
	return n
}
