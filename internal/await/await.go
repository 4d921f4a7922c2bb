package await

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Pause waits for d and reports false if ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Jitter spreads d over its upper half, so that proxies which failed together do not come back
// together.
func Jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

// ErrPatience is the cause of a context's end when a wait has reached its bound, and the caller is
// still there.
var ErrPatience = errors.New("no answer in time")

// Half ends when half of the time that is left of ctx is over.
func Half(ctx context.Context) (context.Context, context.CancelFunc) {
	until, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, time.Until(until)/2, ErrPatience)
}
