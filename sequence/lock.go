package sequence

import "context"

// lock is held while a server is asked, which may not answer. Who waits for it gives up with his
// context.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

// acquire waits for the lock. The error is the cause of the end of ctx.
func (l lock) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mustAcquire waits for the lock however long that takes.
func (l lock) mustAcquire() { l <- struct{}{} }

func (l lock) release() { <-l }

// taken reports whether somebody has the lock.
func (l lock) taken() bool { return len(l) > 0 }
