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
	// Said has the options that the statement names. It counts only where somebody deleted the row
	// of the sequence. Options that neither Said nor a field above has stay as they were.
	Said Alteration
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
	return d.created()
}

// InPlaceOf is what is asked for in place of a sequence whose row somebody deleted: what o does not
// say is as it was before.
func (o *CreateOptions) InPlaceOf(before *Definition) Definition {
	d, said := *before, o.said()
	d.Name, d.Kind = o.Name, o.Kind
	said.Apply(&d)
	return d.created()
}

// said is what o says of a definition.
func (o *CreateOptions) said() Alteration {
	a := o.Said
	say(&a.Increment, &o.Increment)
	say(&a.Min, &o.Min)
	say(&a.Max, &o.Max)
	say(&a.Start, &o.Start)
	say(&a.Cache, &o.Cache)
	say(&a.Cycle, &o.Cycle)
	say(&a.Comment, &o.Comment)
	say(&a.OwnedBy, &o.OwnedBy)
	say(&a.JSONSafe, &o.JSONSafe)
	say(&a.Cover, &o.Cover)
	say(&a.Order, &o.Order)
	if a.OwnedBy != nil {
		a.OwnerMax = &o.OwnerMax
	}
	if a.Start == nil {
		a.Start = a.Min // as it is by default
	}
	return a
}

func say[T comparable](to **T, is *T) {
	if *is != *new(T) {
		*to = is
	}
}

// created is d with the defaults of a new sequence filled in.
func (d Definition) created() Definition {
	if d.Kind.Resets() && d.Cache == 0 && d.Cover == 0 {
		d.Cache = 1 // people count these keys, and ask where one is that is missing
	}
	return d.Filled()
}
