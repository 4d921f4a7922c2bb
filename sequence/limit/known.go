package limit

import "sync"

// Known is the known ceilings, by the table's spelling. They belong to one number, of a plan or of
// a choice of a node, and only rise while that stays. It is safe for concurrent use.
type Known struct {
	mu      sync.Mutex
	under   uint64            // guarded by mu
	by      map[string]uint64 // guarded by mu
	raising map[string]bool   // guarded by mu; those that are being raised ahead of need
}

// at returns those under a number, and forgets what belongs to another one. k.mu is locked.
func (k *Known) at(number uint64) map[string]uint64 {
	if k.under != number || k.by == nil {
		k.under, k.by = number, make(map[string]uint64)
	}
	return k.by
}

// Get returns the ceiling of a sequence.
func (k *Known) Get(number uint64, name string) (ceiling uint64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ceiling, ok = k.at(number)[name]
	return ceiling, ok
}

// Learn records the ceiling of a sequence.
func (k *Known) Learn(number uint64, name string, ceiling uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	by := k.at(number)
	by[name] = max(by[name], ceiling)
}

// Drop forgets the ceiling of a sequence, which turned out to be another one.
func (k *Known) Drop(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.by, name)
}

// Forget forgets all, for another holder.
func (k *Known) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.by = nil
}

// Once calls f, which raises the ceiling of a sequence, unless another caller is about to.
func (k *Known) Once(name string, f func()) {
	k.mu.Lock()
	if k.raising == nil {
		k.raising = make(map[string]bool)
	}
	begun := k.raising[name]
	k.raising[name] = true
	k.mu.Unlock()
	if begun {
		return
	}
	f()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.raising, name)
}
