package kill

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// The session goes on with other statements, which nobody wants to end.
func TestAnOrderIsTakenBackWhenItsCallerGivesUp(t *testing.T) {
	k := New(nil, zap.NewNop())
	other := &order{arg: "KILL 8", done: make(chan error, 1)}
	k.queues = []*serverQueue{{urgent: []*order{other}, working: true}} // the worker waits for the server
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := k.Run(ctx, backend.Place{}, backend.Credentials{}, protocol.ComQuery, "KILL QUERY 7"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	taken := &order{arg: "KILL QUERY 9", done: make(chan error, 1)}
	k.withdraw(taken) // the worker has it, and logs in
	if err := k.kill(nil, taken); err != nil {
		t.Errorf("an order whose caller gave up meanwhile: got %v", err)
	}
	if left := k.queues[0].urgent; !slices.Equal(left, []*order{other}) {
		t.Errorf("%d orders are left, want that of the other caller", len(left))
	}
}
