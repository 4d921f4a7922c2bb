package limit

import "slices"

// Holder is who gives, or once gave, the numbers of a group: a row that each node has.
type Holder struct {
	ID       string // of a server, or of a configuration of a cluster
	Term     uint64 // since when; 0: there is none
	Complete bool   // its takeover has ended, so its limits count
	Mark     uint64 // rises with each write that other nodes are to show
}

// Over reports whether h counts more than another.
func (h Holder) Over(other Holder) bool {
	return h.Term > other.Term || h.Term == other.Term && h.ID > other.ID
}

// Limit is how far one giver may go with one sequence: a row that each node has.
type Limit struct {
	Name    string // of the sequence, never empty
	Giver   string // a holder, or a member
	Term    uint64 // under which it gives
	Wanted  uint64 // how far it wants to go
	Granted uint64 // how far it may go: other nodes have shown that it wants to
	Floor   uint64 // it gives no number at or below it
}

// Record is what a node has recorded, or what several have together.
type Record struct {
	Holders []Holder
	Limits  []Limit
}

// Holder is the one that counts; its term is 0 if there is none.
func (r Record) Holder() (top Holder) {
	for _, h := range r.Holders {
		if top.Term == 0 || h.Over(top) {
			top = h
		}
	}
	return top
}

// Of is the limit of a giver with the one sequence that was read; false if there is none.
func (r Record) Of(giver string) (Limit, bool) {
	for _, l := range r.Limits {
		if l.Giver == giver {
			return l, true
		}
	}
	return Limit{}, false
}

// Admits looks at the limits of a sequence whose counter stands at position, in a column that holds
// up to end. It returns the one of the giver, without a term if it has to be made yet. ok is false
// unless the giver is the holder.
//
// The counter of a replica that was made the primary may still be set to what a holder before
// wrote, who wrote before that how far it wanted to go. As long as all that others wanted is below
// the floor, such a counter is so, too, and is noticed by that.
func (r Record) Admits(giver string, position, end uint64) (l Limit, ok bool) {
	top := r.Holder()
	if top.Term == 0 || top.ID != giver || !top.Complete {
		return Limit{}, false
	}
	l, known := r.Of(giver)
	if !known {
		return l, true
	}
	late := l.Floor < end && slices.ContainsFunc(r.Limits, func(other Limit) bool {
		return other.Giver != giver && other.Wanted > 0 && other.Wanted >= l.Floor
	})
	return l, l.Term == top.Term && position >= l.Floor && !late
}
