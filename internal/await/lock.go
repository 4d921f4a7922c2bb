package await

import "context"

// Lock is a lock that is kept while a server is asked, which may not answer. A caller with a
// context gives up with that.
type Lock chan struct{}

// NewLock returns a free lock.
func NewLock() Lock { return make(Lock, 1) }

// Acquire waits for the lock. The error is the cause of the end of ctx.
func (l Lock) Acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// MustAcquire waits for the lock without a bound.
func (l Lock) MustAcquire() { l <- struct{}{} }

// Release frees the lock.
func (l Lock) Release() { <-l }

// Taken reports whether the lock is taken.
func (l Lock) Taken() bool { return len(l) > 0 }
