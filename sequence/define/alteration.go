package define

// Alteration says what to change; nil leaves an option as it is.
type Alteration struct {
	Increment *uint64
	Min       *uint64
	Max       *uint64 // 0: NO MAXVALUE
	Start     *uint64
	Cache     *uint64 // 0: adaptive
	Cycle     *bool
	Comment   *string
	OwnedBy   *Column // the zero Column: OWNED BY NONE
	OwnerMax  *uint64
	JSONSafe  *bool
	Cover     *uint64 // 0: as configured
	Order     *bool
	// Floor: numbers up to this one are in use already, as in the column that owns the sequence. A
	// floor above the sequence's maximum changes nothing.
	Floor uint64

	// Restart makes this the next number; 0 is the sequence's START. Without Force it only raises:
	// a number that may have been given is refused.
	Restart *uint64
	// Force lets Restart go down.
	Force bool
}

// Raises reports whether the counter may go up.
func (a *Alteration) Raises() bool { return a.Restart != nil || a.Floor > 0 }

// Apply changes d. Floor and Restart are for whoever has the row.
func (a *Alteration) Apply(d *Definition) {
	set(&d.Increment, a.Increment)
	set(&d.Min, a.Min)
	set(&d.Max, a.Max)
	set(&d.Start, a.Start)
	set(&d.Cache, a.Cache)
	set(&d.Cycle, a.Cycle)
	set(&d.Comment, a.Comment)
	set(&d.OwnedBy, a.OwnedBy)
	set(&d.OwnerMax, a.OwnerMax)
	set(&d.JSONSafe, a.JSONSafe)
	set(&d.Cover, a.Cover)
	set(&d.Order, a.Order)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
