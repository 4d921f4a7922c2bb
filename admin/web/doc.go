// Package web is what programs that watch the proxy ask over HTTP: /metrics, for Prometheus;
// /healthz, whether it lives; and /readyz, whether clients should come. Nobody has to log in, and
// nothing can be changed.
//
// What /metrics tells is known already: a scrape asks no server. /readyz may ask one, each at most
// every two seconds.
package web
