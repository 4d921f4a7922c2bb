package limit

// Bound is how far the numbers of a sequence may go at present.
type Bound struct {
	Grouped bool // false: as far as the sequence goes
	Ceiling uint64
	// Witnessed: other members have recorded a bound for this one.
	Witnessed bool
	Recorded  uint64
}
