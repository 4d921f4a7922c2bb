package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seqproxy/admin/web"
	"seqproxy/internal/logfield"
)

// watched is the part that answers programs that watch the proxy.
type watched struct {
	server  *web.Server // nil: no HTTP
	health  *web.Health
	metrics *prometheus.Registry
	reloads *web.Reloads // each reload reports its outcome here
}

// listenHTTP listens on http.listen, unless that is "".
func (r *running) listenHTTP(ctx context.Context, address string) error {
	r.watched = watched{
		health:  &web.Health{Server: r.server, Shards: r.shards, Sequences: r.sequences},
		reloads: web.NewReloads(),
	}
	r.watched.metrics = web.NewRegistry(web.Build{Version: version, Commit: commit}, r.health.Collector(), r.reloads, web.SequenceCollector(r.sequences),
		web.ProxyCollector(r.server), web.BackendCollector(r.shards, r.server))
	if address == "" {
		return nil
	}
	log := r.log.Named("http")
	server := web.NewServer(web.NewPages(version, r.health, r.watched.metrics, log), log)
	if err := server.Listen(ctx, address); err != nil {
		return httpListenError(address, err)
	}
	r.watched.server = server
	return nil
}

// serveHTTP answers in the background until stopHTTP.
func (r *running) serveHTTP() {
	if r.watched.server == nil {
		return
	}
	r.wg.Go(func() {
		if err := r.watched.server.Serve(); err != nil {
			r.log.Error("metrics and health not served any more", logfield.Err(err))
		}
	})
}

// httpAddress returns the address for metrics and health, for the log.
func (w *watched) httpAddress() string {
	if w.server == nil {
		return ""
	}
	return w.server.Addr().String()
}

// httpPatience bounds the time for running answers at the end.
const httpPatience = time.Second

// stopHTTP ends the work of serveHTTP. It comes last, so that a stop can be watched.
func (r *running) stopHTTP(hurry context.Context) {
	if r.watched.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(hurry, httpPatience)
	defer cancel()
	r.watched.server.Shutdown(ctx)
}

// httpListenError says what to do if http.listen cannot be used.
func httpListenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("http.listen: address %s is in use: end what listens there, or choose another, or \"\" for no metrics, by http.listen or -http-listen", address)
	}
	return fmt.Errorf("http.listen: %w; choose another address, or \"\" for no metrics, by http.listen or -http-listen", err)
}

// secondAddress returns another address to listen on if there is no configuration: the usual one,
// or a free port if the clients' port is a free one, too.
func secondAddress(listen, usual string) string {
	if _, port, err := net.SplitHostPort(listen); err != nil || port != "0" {
		return usual
	}
	host, _, err := net.SplitHostPort(usual)
	if err != nil {
		return usual
	}
	return net.JoinHostPort(host, "0")
}
