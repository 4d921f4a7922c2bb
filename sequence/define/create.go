package define

import "seqproxy/sequence/kind"

// CreateOptions describes a new sequence. The fields that Definition has too mean the same; 0 is
// the default of each.
type CreateOptions struct {
	Name        string
	OrReplace   bool   // an existing sequence is dropped
	IfNotExists bool   // an existing sequence is no error and stays as it is
	Increment   uint64 // 1 by default
	Min         uint64 // 1 by default
	Max         uint64 // as far as the column goes by default
	Start       uint64 // Min by default
	Cache       uint64
	Adaptive    bool // CACHE DEFAULT, also for a kind that has NOCACHE if nothing is said
	Cycle       bool
	Comment     string
	OwnedBy     Column
	OwnerMax    uint64
	JSONSafe    bool
	Cover       uint64
	Order       bool
	Kind        kind.Kind
	// Floor: numbers up to this one are in use already, as in the column that owns the sequence.
	Floor uint64
	// Unowned: the statement says OWNED BY NONE. It counts only where somebody deleted the row of a
	// sequence that a column owned.
	Unowned bool
	// DryRun checks what can be known before, and makes nothing: Created is empty unless the sequence
	// exists.
	DryRun bool
}

// Definition is what is asked for, with the defaults filled in.
func (o *CreateOptions) Definition() Definition {
	d := Definition{
		Name: o.Name, Increment: o.Increment, Min: o.Min, Max: o.Max, Start: o.Start, Cache: o.Cache, Cycle: o.Cycle,
		Comment: o.Comment, OwnedBy: o.OwnedBy, OwnerMax: o.OwnerMax, JSONSafe: o.JSONSafe, Cover: o.Cover, Order: o.Order, Kind: o.Kind,
	}
	if d.Kind.Resets() && d.Cache == 0 && d.Cover == 0 && !o.Adaptive {
		d.Cache = 1 // people count these keys, and ask where one is that is missing
	}
	return d.Filled()
}
