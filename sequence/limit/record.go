package limit

import "slices"

// Holder is the present or a former giver of a group's numbers: a row on each node.
type Holder struct {
	ID       string // of a server, or of a configuration of a cluster
	Term     uint64 // since when; 0: no holder
	Complete bool   // its take-over has ended, so its limits count
	Mark     uint64 // rises with each write that other nodes must show
}

// Over reports whether h takes precedence over another.
func (h Holder) Over(other Holder) bool {
	return h.Term > other.Term || h.Term == other.Term && h.ID > other.ID
}

// Limit is how far one giver may go with one sequence: a row on each node.
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

// Holder returns the holder that counts; its term is 0 if there is none.
func (r Record) Holder() (top Holder) {
	for _, h := range r.Holders {
		if top.Term == 0 || h.Over(top) {
			top = h
		}
	}
	return top
}

// Of returns the limit of a giver with the one sequence that was read; false if there is none.
func (r Record) Of(giver string) (Limit, bool) {
	for _, l := range r.Limits {
		if l.Giver == giver {
			return l, true
		}
	}
	return Limit{}, false
}

// Admits returns the limit of the giver with a sequence whose counter stands at position, in a
// column that holds up to end. The limit has no term if it must still be made. ok is false unless
// the giver is the holder.
//
// A replica that became the primary may later apply a write of an earlier holder to the counter.
// That holder had first written how far it wanted to go. While all that others wanted is below the
// floor, such a counter is below the floor, too, which reveals it.
func (r Record) Admits(giver string, position, end uint64) (l Limit, ok bool) {
	top := r.Holder()
	if top.Term == 0 || top.ID != giver || !top.Complete {
		return Limit{}, false
	}
	l, made := r.Of(giver)
	if !made {
		return l, true
	}
	late := l.Floor < end && slices.ContainsFunc(r.Limits, func(other Limit) bool {
		return other.Giver != giver && other.Wanted > 0 && other.Wanted >= l.Floor
	})
	return l, l.Term == top.Term && position >= l.Floor && !late
}
