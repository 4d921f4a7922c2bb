package main

import (
	"math/bits"
	"time"
)

// subBuckets is the number of buckets for a power of two: a quantile is exact to 1/64.
const subBuckets = 64

// histogram counts durations without allocating. The zero value is empty.
type histogram struct {
	counts [subBuckets * (65 - 6)]uint32
}

// add counts d; negative durations count as 0.
func (h *histogram) add(d time.Duration) { h.counts[bucket(uint64(max(d, 0)))]++ }

// merge adds the counts of o.
func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
}

// quantile returns the duration below which the share q (0..1) of all durations lies, or 0 without
// any.
func (h *histogram) quantile(q float64) time.Duration {
	var total uint64
	for _, n := range h.counts {
		total += uint64(n)
	}
	rank, seen := uint64(q*float64(total)), uint64(0)
	for i, n := range h.counts {
		seen += uint64(n)
		if n > 0 && seen > rank || seen == total && total > 0 {
			return time.Duration(bucketMiddle(i))
		}
	}
	return 0
}

// bucket is linear below 2*subBuckets; above, each power of two has subBuckets.
func bucket(v uint64) int {
	if v < subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - 7 // v>>shift is in [subBuckets, 2*subBuckets)
	return subBuckets*shift + int(v>>shift)
}

// bucketMiddle returns the middle value of a bucket.
func bucketMiddle(i int) uint64 {
	if i < 2*subBuckets {
		return uint64(i)
	}
	shift := i/subBuckets - 1
	low := uint64(i-subBuckets*shift) << shift
	return low + (uint64(1)<<shift)/2
}
