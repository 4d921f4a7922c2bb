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

// Health reports whether clients should come. All fields must be set. It is safe for concurrent
// use.
type Health struct {
	Server    *proxy.Server
	Shards    *backend.Shards
	Sequences *sequence.Sequences
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons"`  // why not; never nil
	Warnings []string `json:"warnings"` // problems that are no reason to stay away; never nil
}

func newReadiness() *Readiness { return &Readiness{Reasons: []string{}, Warnings: []string{}} }

func (r *Readiness) because(reason string) { r.Reasons = append(r.Reasons, reason) }

func (r *Readiness) warn(warning string) { r.Warnings = append(r.Warnings, warning) }

// errKeysOnly says that there is no shard to use.
var errKeysOnly = errors.New("no shard is configured")

// Ready reports whether clients should come. It may ask servers until ctx is done.
func (h *Health) Ready(ctx context.Context) *Readiness {
	return h.ready(func() (shard, keys error) {
		// Both at the same time, since the caller has little time.
		done := make(chan error, 1)
		go func() { done <- h.Sequences.Usable(ctx) }()
		shard = errKeysOnly
		if def := h.Shards.Routes().Default; def != nil {
			shard = h.Shards.Usable(ctx, def)
		}
		return shard, <-done
	})
}

// LastReady is Ready from what is in memory. It asks no server.
func (h *Health) LastReady() *Readiness {
	return h.ready(func() (shard, keys error) {
		shard = errKeysOnly
		if def := h.Shards.Routes().Default; def != nil {
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
		report := r.warn
		if shard != nil && keys != nil {
			report = r.because
		}
		if shard != nil && !errors.Is(shard, errKeysOnly) {
			report(shard.Error())
		}
		if keys != nil {
			report(keys.Error())
		}
		h.warnOfOthers(r)
	}
	r.Ready = len(r.Reasons) == 0
	return r
}

// warnOfOthers adds a warning for each unusable shard other than the default one. The proxy asks
// these shards in any case.
func (h *Health) warnOfOthers(r *Readiness) {
	routes := h.Shards.Routes()
	for _, shard := range routes.Named("") {
		if shard == routes.Default {
			continue
		}
		if err := h.Shards.LastUsable(shard); err != nil {
			r.warn(err.Error())
		}
	}
}

// ReadyFor is Ready for one sequence: it also checks whether the sequence gives numbers now. exists
// is false if there is no such sequence.
func (h *Health) ReadyFor(ctx context.Context, name string) (r *Readiness, exists bool) {
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

// readyPatience bounds the wait of /readyz. Callers wait about as long: Kubernetes waits a second.
const readyPatience = 800 * time.Millisecond
