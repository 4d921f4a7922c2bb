package member

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"seqproxy/internal/await"
	"seqproxy/sequence/segment"
)

// Among is the members in use at one time. It never changes.
type Among struct {
	Number  uint64    // of the plan; 0: there is none, and one server
	Members []*Server // by position, at least one
	Ahead   uint64    // see CeilingAhead
}

// Several reports whether numbers are divided among members.
func (a *Among) Several() bool { return a.Number != 0 && len(a.Members) > 1 }

// ShareOf returns the first member's share of a sequence. Those of the others differ only in the
// place.
func (a *Among) ShareOf(name string) segment.Share {
	v := a.Members[0]
	return v.ShareOf(name, v.Rules.Of(name))
}

// AnyLive reports whether any member is not left out.
func (a *Among) AnyLive() bool {
	return slices.ContainsFunc(a.Members, func(v *Server) bool { return !v.Away() })
}

// Live returns the members that are not left out, or all if every one is.
func (a *Among) Live() []*Server {
	live := make([]*Server, 0, len(a.Members))
	for _, v := range a.Members {
		if !v.Away() {
			live = append(live, v)
		}
	}
	if len(live) == 0 {
		return a.Members
	}
	return live
}

// Each calls f for members at the same time, each within TryTime if there are several, and returns
// the errors. i is the position in members.
func Each(ctx context.Context, members []*Server, f func(ctx context.Context, i int, v *Server) error) (failed []error) {
	if len(members) == 1 {
		if err := f(ctx, 0, members[0]); err != nil {
			return []error{err}
		}
		return nil
	}
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, v := range members {
		wg.Go(func() {
			ctx, stop := context.WithTimeoutCause(ctx, v.TryTime(), await.ErrPatience)
			defer stop()
			if errs[i] = f(ctx, i, v); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", v.Name(), errs[i])
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}
