package sequence

import (
	"time"

	"seqproxy/sequence/cache"
	"seqproxy/sequence/store"
)

// This file is how a sequence is described that is advanced by several numbers at once, too
// (Advance): those of each step are held apart, and the sequence stands as all of them do together.

// describe is info of all caches of the sequence together, as cachesLocked returned them. r is its
// row, nil if that was not read.
func (q *sequence) describe(r *store.Row, caches []*cache.Cache) Info {
	i := q.info(r)
	for _, stepped := range caches[1:] {
		i.fold(infoOfState(q.name, stepped.Look(r)))
	}
	return i
}

// fold adds what the cache of a step holds.
func (i *Info) fold(o Info) {
	if i.Order || o.Order {
		return // it is about to be given up
	}
	i.Cached += o.Cached
	i.Rate += o.Rate
	i.Cache = max(i.Cache, o.Cache)
	i.Used = max(i.Used, o.Used)
	i.ToEnd = min(i.ToEnd, o.ToEnd)
	i.CachedFor = min(i.CachedFor, o.CachedFor) // those that wait first
	i.Skew = greatestUsed(i.Skew, o.Skew)
	if o.Reserved.After(i.Reserved) {
		i.Reserved = o.Reserved
	}
}

// fold is that of Info; o has no counts.
func (st *SequenceStats) fold(o *SequenceStats) {
	if st.Order || o.Order {
		return
	}
	st.Size = max(st.Size, o.Size)
	st.Used = max(st.Used, o.Used)
	st.ToEnd = min(st.ToEnd, o.ToEnd)
	st.CachedFor = min(st.CachedFor, o.CachedFor)
	st.Skew = greatestUsed(st.Skew, o.Skew)
}

// greatestUsed is Never only if both are, as of what is not used.
func greatestUsed(a, b time.Duration) time.Duration {
	if a == Never || b == Never {
		return min(a, b)
	}
	return max(a, b)
}
