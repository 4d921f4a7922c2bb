// Package histogram counts durations in fixed ranges.
//
// Start at [Histogram]. [Shared] is one for several goroutines.
package histogram

import (
	"sync/atomic"
	"time"
)

// Bounds are the upper bounds of the ranges, inclusive. Another range has everything above them.
var Bounds = [...]time.Duration{
	10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
}

// Ranges is the number of ranges.
const Ranges = len(Bounds) + 1

// Histogram holds counts. It is not safe for concurrent use.
type Histogram struct {
	Counts [Ranges]uint64 // by range, not cumulative
	Sum    time.Duration
}

// Count returns the number of durations.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other *Histogram) {
	for i, c := range other.Counts {
		h.Counts[i] += c
	}
	h.Sum += other.Sum
}

// Range returns the index of d's range.
func Range(d time.Duration) int {
	low, high := 0, len(Bounds)
	for low < high {
		if middle := (low + high) / 2; d <= Bounds[middle] {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// Shared is a histogram that several goroutines count in. Its zero value is empty.
type Shared struct {
	counts [Ranges]atomic.Uint64
	sum    atomic.Int64
}

// Add counts d.
func (s *Shared) Add(d time.Duration) {
	s.counts[Range(d)].Add(1)
	s.sum.Add(int64(d))
}

// Read returns the counts so far.
func (s *Shared) Read() (h Histogram) {
	for i := range s.counts {
		h.Counts[i] = s.counts[i].Load()
	}
	h.Sum = time.Duration(s.sum.Load())
	return h
}
