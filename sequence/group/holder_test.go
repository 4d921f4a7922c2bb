package group

import (
	"context"
	"errors"
	"testing"

	"seqproxy/sequence/limit"
)

// Whoever makes a node the holder may be asking a server that hangs. The others who want the same
// wait for their own time limits.
func TestNobodyWaitsForATakeoverLongerThanItsOwnTime(t *testing.T) {
	g := New(nil, Patience{})
	g.takingOver.MustAcquire()
	defer g.takingOver.Release()
	errOver := errors.New("the time is over")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errOver)
	if err := g.takeOverChosen(ctx, "photos", limit.Holder{}); !errors.Is(err, errOver) {
		t.Errorf("got %v, want that the time is over", err)
	}
}
