package await

import "context"

// Lock is held while a server is asked, which may not answer. Who waits for it gives up with his
// context.
type Lock chan struct{}

// NewLock returns one that nobody has.
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

// MustAcquire waits for the lock however long that takes.
func (l Lock) MustAcquire() { l <- struct{}{} }

// Release gives the lock up.
func (l Lock) Release() { <-l }

// Taken reports whether somebody has the lock.
func (l Lock) Taken() bool { return len(l) > 0 }
