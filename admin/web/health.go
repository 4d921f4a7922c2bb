package web

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seqproxy/backend"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// Health says whether clients should come. Its fields must be set. It is safe for concurrent use.
type Health struct {
	Server    *proxy.Server
	Shards    *backend.Shards
	Sequences *sequence.Sequences
}

// Readiness is what /readyz tells.
type Readiness struct {
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons"`  // why not; never nil
	Warnings []string `json:"warnings"` // what is wrong, but no reason to stay away; never nil
}

func newReadiness() *Readiness { return &Readiness{Reasons: []string{}, Warnings: []string{}} }

func (r *Readiness) because(reason string) { r.Reasons = append(r.Reasons, reason) }

func (r *Readiness) warn(warning string) { r.Warnings = append(r.Warnings, warning) }

// errKeysOnly: there is no shard that could be used.
var errKeysOnly = errors.New("no shard is configured")

// Ready says whether clients should come. It may ask servers, until ctx is done.
func (h *Health) Ready(ctx context.Context) *Readiness {
	return h.ready(func() (shard, keys error) {
		// Both at the same time: who asks has little patience.
		done := make(chan error, 1)
		go func() { done <- h.Sequences.Usable(ctx) }()
		shard = errKeysOnly
		if def := h.Shards.Routes().Default(); def != nil {
			shard = h.Shards.Usable(ctx, def)
		}
		return shard, <-done
	})
}

// LastReady is Ready by what is known already: it asks nobody.
func (h *Health) LastReady() *Readiness {
	return h.ready(func() (shard, keys error) {
		shard = errKeysOnly
		if def := h.Shards.Routes().Default(); def != nil {
			shard = h.Shards.LastUsable(def)
		}
		return shard, h.Sequences.LastUsable()
	})
}

func (h *Health) ready(usable func() (shard, keys error)) *Readiness {
	r := newReadiness()
	switch {
	case h.Server.Draining():
		r.because("the proxy is stopping")
	case !h.Server.Accepting():
		r.because("the proxy does not accept clients")
	default:
		shard, keys := usable()
		tell := r.warn
		if shard != nil && keys != nil {
			tell = r.because
		}
		if shard != nil && !errors.Is(shard, errKeysOnly) {
			tell(shard.Error())
		}
		if keys != nil {
			tell(keys.Error())
		}
		h.warnOfOthers(r)
	}
	r.Ready = len(r.Reasons) == 0
	return r
}

// warnOfOthers names the shards, apart from the default one, that cannot be used. The proxy keeps
// asking them, whether anybody looks or not.
func (h *Health) warnOfOthers(r *Readiness) {
	routes := h.Shards.Routes()
	for _, shard := range routes.Named("") {
		if shard == routes.Default() {
			continue
		}
		if err := h.Shards.LastUsable(shard); err != nil {
			r.warn(err.Error())
		}
	}
}

// ReadyFor is Ready, and adds whether a sequence gives numbers now. known is false if there is none
// of that name.
func (h *Health) ReadyFor(ctx context.Context, name string) (r *Readiness, known bool) {
	r = h.Ready(ctx)
	err := h.Sequences.UsableFor(ctx, []byte(name))
	switch {
	case errors.Is(err, sequence.ErrUnknown):
		r = newReadiness()
		r.because(fmt.Sprintf("there is no sequence %q", name))
		return r, false
	case errors.Is(err, context.DeadlineExceeded):
		r.because(fmt.Sprintf("sequence %q: no answer in time", name))
	case err != nil:
		r.because(err.Error())
	}
	r.Ready = len(r.Reasons) == 0
	return r, true
}

// readyPatience bounds what /readyz waits for. Those who ask have about as much: a second, with
// Kubernetes.
const readyPatience = 800 * time.Millisecond
