package limit

// UpTo is how far the numbers of a sequence may go at present.
type UpTo struct {
	Grouped bool // false: as far as the sequence goes
	Ceiling uint64
	// Witnessed: other members have recorded a ceiling for this one.
	Witnessed bool
	Recorded  uint64
}
