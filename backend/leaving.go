package backend

import (
	"slices"
	"sync"
	"weak"
)

// leaving lists the shards that reloads have removed from the routes, while a session may use them.
type leaving struct {
	mu     sync.Mutex
	shards []weak.Pointer[Shard] // guarded by mu
}

// list returns the leaving shards in the order of their removal.
func (l *leaving) list() (shards []*Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shards = slices.DeleteFunc(l.shards, func(p weak.Pointer[Shard]) bool {
		shard := p.Value()
		if shard != nil {
			shards = append(shards, shard)
		}
		return shard == nil
	})
	return shards
}

// change records that now replaces before.
func (l *leaving) change(before, now *Routes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shards = slices.DeleteFunc(l.shards, func(p weak.Pointer[Shard]) bool {
		shard := p.Value()
		return shard == nil || now.Has(shard)
	})
	for _, shard := range before.shards {
		if !now.Has(shard) {
			l.shards = append(l.shards, weak.Make(shard))
		}
	}
}

// addTo adds the statistics of nodes that still have connections. It adds the connections to an
// entry of all if that has the same shard name and node.
func (l *leaving) addTo(all []NodeStats) []NodeStats {
	for _, shard := range l.list() {
		for _, n := range shard.nodes {
			st := shard.stats(n)
			if st.Open+st.Connecting == 0 {
				continue
			}
			if i := slices.IndexFunc(all, func(other NodeStats) bool { return other.Shard == st.Shard && other.Node == st.Node }); i >= 0 {
				all[i].Open += st.Open
				all[i].Connecting += st.Connecting
				continue
			}
			st.Primary, st.Leaving = false, true
			all = append(all, st)
		}
	}
	return all
}
