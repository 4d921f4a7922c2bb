package limit

import "sync"

// Recorded is the ceilings that were found recorded, by the table's spelling. They belong to one
// number, of a plan or of a choice of a node, and only rise while that stays. It is safe for
// concurrent use.
type Recorded struct {
	mu      sync.Mutex
	under   uint64            // guarded by mu
	by      map[string]uint64 // guarded by mu
	raising map[string]bool   // guarded by mu; those that are being raised ahead of need
}

// at returns those under a number, and forgets what belongs to another one. r.mu is locked.
func (r *Recorded) at(number uint64) map[string]uint64 {
	if r.under != number || r.by == nil {
		r.under, r.by = number, make(map[string]uint64)
	}
	return r.by
}

// Get returns the ceiling of a sequence.
func (r *Recorded) Get(number uint64, name string) (ceiling uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ceiling, ok = r.at(number)[name]
	return ceiling, ok
}

// Learn notes the ceiling of a sequence.
func (r *Recorded) Learn(number uint64, name string, ceiling uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := r.at(number)
	by[name] = max(by[name], ceiling)
}

// Drop forgets the ceiling of a sequence, which turned out to be another one.
func (r *Recorded) Drop(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, name)
}

// Forget forgets all, for another holder.
func (r *Recorded) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by = nil
}

// Once calls f, which raises the ceiling of a sequence, unless another caller is about to.
func (r *Recorded) Once(name string, f func()) {
	r.mu.Lock()
	if r.raising == nil {
		r.raising = make(map[string]bool)
	}
	begun := r.raising[name]
	r.raising[name] = true
	r.mu.Unlock()
	if begun {
		return
	}
	f()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.raising, name)
}
