package sequence

import "context"

// lock is a lock that is held while a server is asked, which may not answer: nobody waits for it longer than for the answer.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

// acquire waits for the turn. If it is not nil, the error is the cause of the end of ctx.
func (t lock) acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mustAcquire takes the turn however long that is, for those who must have it.
func (t lock) mustAcquire() { t <- struct{}{} }

func (t lock) release() { <-t }

// taken reports whether somebody has the turn.
func (t lock) taken() bool { return len(t) > 0 }
