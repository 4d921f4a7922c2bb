package web

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reloads counts the reloads of the configuration by outcome. It is a [prometheus.Collector]. It is
// safe for concurrent use.
type Reloads struct {
	mu                sync.Mutex
	succeeded, failed uint64    // guarded by mu
	last              bool      // guarded by mu; the last one succeeded
	at                time.Time // guarded by mu; the last success
}

// NewReloads counts the configuration at the start as a success.
func NewReloads() *Reloads { return &Reloads{last: true, at: time.Now()} }

// Done records a reload that ended with err. Metrics do not show the error's text.
func (r *Reloads) Done(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last = err == nil; !r.last {
		r.failed++
		return
	}
	r.succeeded++
	r.at = time.Now()
}

var (
	reloadsDesc      = desc("config", "reloads_total", "Reloads of the configuration since the start.", "result")
	reloadLastDesc   = desc("config", "last_reload_successful", "1 if the last reload, or the start, succeeded.")
	reloadLastAtDesc = desc("config", "last_reload_success_timestamp_seconds", "When the last reload, or the start, succeeded.")
)

// Describe implements [prometheus.Collector].
func (r *Reloads) Describe(all chan<- *prometheus.Desc) {
	all <- reloadsDesc
	all <- reloadLastDesc
	all <- reloadLastAtDesc
}

// Collect implements [prometheus.Collector].
func (r *Reloads) Collect(all chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all <- prometheus.MustNewConstMetric(reloadsDesc, prometheus.CounterValue, float64(r.succeeded), "ok")
	all <- prometheus.MustNewConstMetric(reloadsDesc, prometheus.CounterValue, float64(r.failed), "error")
	all <- prometheus.MustNewConstMetric(reloadLastDesc, prometheus.GaugeValue, boolValue(r.last))
	all <- prometheus.MustNewConstMetric(reloadLastAtDesc, prometheus.GaugeValue, float64(r.at.UnixNano())/1e9)
}
