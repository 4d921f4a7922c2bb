package sequence

import (
	"context"

	"seqproxy/sequence/store"
)

// Proxies lists the proxies that are registered with the sequence server, in the order in which
// they came. Errors are those of List.
func (s *Sequences) Proxies(ctx context.Context) ([]Proxy, error) {
	if !s.begin() {
		return nil, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	all, err := s.members.Now().Proxies(r.ctx)
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
