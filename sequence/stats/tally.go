package stats

// Tally is what each cache counts itself.
type Tally struct {
	Reserved, Cached, Given, Waits uint64
	Unused                         UnusedCounts
}

// Add adds the counts of o.
func (t *Tally) Add(o *Tally) {
	t.Reserved += o.Reserved
	t.Cached += o.Cached
	t.Given += o.Given
	t.Unused.Add(&o.Unused)
	t.Waits += o.Waits
}
