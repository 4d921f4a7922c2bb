package stats

import (
	"sync/atomic"

	"seqproxy/internal/histogram"
)

// Result is how one attempt to reserve numbers ended.
type Result uint8

// The results.
const (
	// ReservedOK: the numbers were reserved.
	ReservedOK Result = iota
	// ReservedConflict: a deadlock, or another transaction was first.
	ReservedConflict
	// ReservedChanged: the sequence, or the plan of the servers, was changed meanwhile, or is being
	// changed.
	ReservedChanged
	// ReservedEnd: fewer numbers remain.
	ReservedEnd
	// ReservedNoRow: the server has no such sequence.
	ReservedNoRow
	// ReservedNoCeiling: in a group, the ceiling has to be raised first, or the node is not the
	// holder.
	ReservedNoCeiling
	// ReservedRewind: the row had gone back.
	ReservedRewind
	// ReservedUnknown: whether it was committed is unknown.
	ReservedUnknown
	// ReservedUnfit: the server or its table could repeat numbers, and is not used.
	ReservedUnfit
	// ReservedError: the server could not be reached, the row stayed locked, or the server refused
	// for another reason.
	ReservedError

	// Results is the number of results.
	Results
)

var resultNames = [Results]string{"ok", "conflict", "changed", "end", "no_row", "no_ceiling", "rewind", "unknown", "unfit", "error"}

// String returns the result in a word, as metrics have it.
func (r Result) String() string { return resultNames[r] }

// Trials counts the attempts to reserve on one server.
type Trials struct {
	Durations [Results]histogram.Shared
	rewinds   atomic.Uint64
}

// Read returns how long the attempts with each result took, and how many rows had gone back.
func (t *Trials) Read() (durations [Results]histogram.Histogram, rewinds uint64) {
	for i := range durations {
		durations[i] = t.Durations[i].Read()
	}
	return durations, t.rewinds.Load()
}
