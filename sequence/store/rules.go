package store

import (
	"sync"

	"seqproxy/sequence/segment"
)

// Rules remembers the rules of sequences. A rule may be out of date: each reservation reads the
// rule back with its result, and is not used if it is another.
type Rules struct {
	mu sync.Mutex
	by map[string]segment.Rule // guarded by mu; by the table's spelling
}

func (r *Rules) Of(name string) segment.Rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rule, ok := r.by[name]; ok {
		return rule
	}
	return segment.Simple
}

func (r *Rules) Set(name string, to segment.Rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to.Same(segment.Simple) {
		delete(r.by, name)
		return
	}
	if r.by == nil {
		r.by = make(map[string]segment.Rule)
	}
	r.by[name] = to
}
