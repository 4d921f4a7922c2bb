package torture

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"

	"seqproxy/test/network"
)

// calmly has fresh proxies give keys for a while, in which servers are killed and cut off, but no
// proxy dies with cached numbers. Then the proxies end in order, and account for all their numbers.
// It returns what the clients saw.
func (w *world) calmly(ctx context.Context, all []*kind, limit time.Duration, before *clients, rng *rand.Rand) (ops []op, wrong []string, err error) {
	for _, p := range w.proxies {
		if err := p.start(ctx); err != nil {
			return nil, nil, err
		}
	}
	clients := startClients(w, all, rng, w.opts.Pause, before)
	n := newNemesis(w)
	n.rage(ctx, []fault{
		{name: "kill -9 of a sequence server", weight: 1, run: killSequenceServer},
		{name: "connections are cut", weight: 2, run: cutLink},
		{name: "answers are swallowed", weight: 2, run: weatherFault(steady(network.Swallow), 500*time.Millisecond)},
		{name: "answers break off", weight: 1, run: weatherFault(cutShort, 500*time.Millisecond)},
	}, limit, 0, rng)
	probes, unhealed := w.healed(ctx, clients)
	wrong = append(n.wrong, unhealed...)
	ops = append(clients.end(), probes...)
	for _, p := range w.proxies {
		if err := p.end(syscall.SIGTERM, endsWithin); err != nil {
			return ops, append(wrong, err.Error()), nil
		}
	}
	return ops, wrong, nil
}
