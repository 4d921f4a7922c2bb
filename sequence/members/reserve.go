package members

import (
	"context"
	"math"
	"sync"

	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// Reserve returns a segment of at most want and at least need numbers, which are the caller's
// alone. It is of the member that comes next.
func (a *Members) Reserve(ctx context.Context, name string, want, need uint64) (g store.Grant, err error) {
	err = a.Under(ctx, func(w *View) error {
		var left member.Due
		g, left, err = a.Next.Reserve(ctx, &w.Among, name, want, need)
		if err == nil && left.Server != nil {
			a.NoteDue(Due{Name: name, Due: left})
		}
		return err
	})
	return g, err
}

// GiveBack returns the unused upper end of a reservation, if nobody has reserved since, and reports
// whether it did. Numbers go back where they came from, under the plan under which they came.
func (a *Members) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	for _, v := range a.Now().Members {
		if h := v.ShareOf(name, segment.Simple); h.Plan == seg.Plan && (!h.Shared() || h.Has(seg.Last())) {
			return v.GiveBack(ctx, name, epoch, seg)
		}
	}
	return false, nil
}

// RaiseTo moves the counters ahead to floor, which is n or above: of those members that can be
// reached, and at least of one. at is n or above, and none of them gives a number up to there any
// more, after a fail-over neither.
func (a *Members) RaiseTo(ctx context.Context, name string, n, floor, end uint64) (at uint64, err error) {
	err = a.Under(ctx, func(w *View) error {
		var mu sync.Mutex
		at = math.MaxUint64
		err := w.OnLive(ctx, func(ctx context.Context, v *member.Server) error {
			to, err := v.Ceilings.MoveAhead(ctx, name, n, floor, end)
			if err == nil {
				mu.Lock()
				at = min(at, to)
				mu.Unlock()
			}
			return err
		})
		if err == nil {
			a.Marks.Raise(name, at)
		}
		return err
	})
	return at, err
}

// Due is what a reservation of a sequence leaves to be done beside its caller.
type Due struct {
	Name string
	member.Due
}

// NoteDue takes note of what a reservation leaves to be done.
func (a *Members) NoteDue(what Due) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dues = append(a.dues, what)
}

// TakeDue returns what reservations have left to be done since it was asked last.
func (a *Members) TakeDue() (all []Due) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all, a.dues = a.dues, nil
	return all
}

// GoAhead does what a reservation of a sequence has left. Whoever reaches the limit is told what
// fails here.
func (a *Members) GoAhead(ctx context.Context, d Due) {
	d.Due.GoAhead(ctx, &a.Now().Among, d.Name)
}
