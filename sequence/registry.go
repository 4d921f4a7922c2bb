package sequence

import (
	"context"
	"errors"
	"slices"

	"seqproxy/sequence/member"
	"seqproxy/sequence/store"
)

// leave removes this process's entries, also those on members that it has not heard of yet: a plan
// that was started meanwhile has taken them over.
func (a *servers) leave(ctx context.Context) (err error) {
	if !a.registered.Load() {
		return nil
	}
	for range maxPlanChanges {
		w := a.view.Load()
		err = errors.Join(member.Each(ctx, w.Members, func(ctx context.Context, _ int, v *server) error { return v.Leave(ctx) })...)
		if !a.isOutdated(ctx, w) || a.reread(ctx, w) != nil || a.view.Load() == w {
			break
		}
	}
	return err
}

// isOutdated reports whether a member obeys another plan.
func (a *servers) isOutdated(ctx context.Context, w *view) bool {
	other := make([]bool, len(w.Members))
	member.Each(ctx, w.Members, func(ctx context.Context, i int, v *server) error {
		m, _, err := v.Plans.Membership(ctx, v.Pool())
		other[i] = err == nil && m.Plan != w.Plan.Number
		return err
	})
	return slices.Contains(other, true)
}

// Proxies lists the proxies that are registered with the sequence server, in the order in which
// they came. Errors are those of List.
func (s *Sequences) Proxies(ctx context.Context) ([]Proxy, error) {
	if !s.begin() {
		return nil, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	all, err := s.servers.now().Proxies(r.ctx)
	if err != nil {
		return nil, r.failed("", err)
	}
	return all, nil
}

// What is said of the proxies of a sequence server; see package store.
type (
	// Proxy is one that may hold numbers in memory.
	Proxy = store.Proxy
	// RegisteredError: a sequence is not restarted, as other proxies may hold numbers of it.
	RegisteredError = store.RegisteredError
)
