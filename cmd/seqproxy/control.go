package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"seqproxy/admin"
	"seqproxy/backend"
	"seqproxy/proxy"
)

// The methods below make running an [admin.Control]. FlushLogs is in logger.go.
var (
	_ admin.Control  = (*running)(nil)
	_ admin.Overview = (*running)(nil)
)

// Pause stops new statements for a shard, or for all.
func (r *running) Pause(ctx context.Context, shard string, by uint32) (paused, resumed []string, busy int) {
	p := r.server.Pause(ctx, shard, by)
	return names(p.Shards), names(p.Resumed), p.Busy
}

// Resume ends the pause of a shard, or of all.
func (r *running) Resume(shard string) (resumed []string, exists bool) {
	shards, exists := r.server.Resume(shard)
	return names(shards), exists
}

func names(shards []*backend.Shard) (all []string) {
	for _, s := range shards {
		all = append(all, s.Name())
	}
	return all
}

// Shutdown makes wait return.
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

// Configuration returns the configuration in force, as statements show it.
func (r *running) Configuration() admin.Configuration { return shown{&r.reloading, r.Config()} }

// Program returns the program's version and commit.
func (r *running) Program() (string, string) { return version, commit }

// Server returns the part that clients connect to.
func (r *running) Server() *proxy.Server { return r.server }

// Shards returns the servers behind it.
func (r *running) Shards() *backend.Shards { return r.shards }

// Metrics returns the metrics, whether they are served over HTTP or not.
func (r *running) Metrics() prometheus.Gatherer { return r.watched.metrics }
