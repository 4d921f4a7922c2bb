package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"seqproxy/admin"
	"seqproxy/backend"
	"seqproxy/proxy"
)

// What follows makes running an [admin.Control]: what statements may ask of the whole
// proxy. FlushLogs is beside the log.
var _ admin.Control = (*running)(nil)

// Pause holds the statements for a shard back, or for all.
func (r *running) Pause(ctx context.Context, shard string, by uint32) (paused, resumed []string, busy int) {
	p := r.server.Pause(ctx, shard, by)
	return names(p.Shards), names(p.Resumed), p.Busy
}

// Resume lets the statements for a shard go on, or for all.
func (r *running) Resume(shard string) (resumed []string, known bool) {
	shards, known := r.server.Resume(shard)
	return names(shards), known
}

func names(shards []*backend.Shard) (all []string) {
	for _, s := range shards {
		all = append(all, s.Name())
	}
	return all
}

// Shutdown has wait return in the end.
func (r *running) Shutdown(how admin.Shutdown) {
	switch how {
	case admin.WaitForClients:
		r.ending.ask()
	case admin.Drain:
		r.ending.orderly()
	case admin.Immediate:
		r.ending.hurry()
	}
}

// Configuration is the one in force, as statements show it.
func (r *running) Configuration() admin.Configuration { return shown{&r.reloading, r.Config()} }

// Program is the version and the commit of what runs.
func (r *running) Program() (string, string) { return version, commit }

// Server is the part that clients are connected to.
func (r *running) Server() *proxy.Server { return r.server }

// Shards are the parts behind it.
func (r *running) Shards() *backend.Shards { return r.shards }

// Metrics is what is counted and measured, whether it can be read over HTTP or not.
func (r *running) Metrics() prometheus.Gatherer { return r.watched.metrics }
