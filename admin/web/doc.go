// Package web answers programs that watch the proxy over HTTP: /metrics for Prometheus, /healthz
// for whether the proxy lives, and /readyz for whether clients should come. There is no login, and
// no request can change anything.
//
// A scrape of /metrics asks no server. /readyz may ask servers, each at most every two seconds. It
// also looks a sequence up that it is asked about, and that the proxy does not know.
//
// Start at Server, which answers with Health, Readiness and Build.
package web
