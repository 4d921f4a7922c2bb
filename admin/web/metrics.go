package web

import (
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"seqproxy/internal/histogram"
	"seqproxy/sequence"
)

// namespace begins the names of the proxy's own metrics.
const namespace = "seqproxy"

// Build identifies the program.
type Build struct{ Version, Commit string }

// NewRegistry returns a registry with the metrics of the program, the Go runtime, the process and
// the given collectors. It panics if two of them have the same metric.
func NewRegistry(build Build, more ...prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "build_info", Help: "Always 1; the labels say which program runs.",
			ConstLabels: prometheus.Labels{"version": build.Version, "commit": build.Commit, "goversion": runtime.Version()},
		}, func() float64 { return 1 }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	r.MustRegister(more...)
	return r
}

// desc describes a metric. namespace, subsystem and name make its full name.
func desc(subsystem, name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, labels, nil)
}

// boolValue is 1 for true.
func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Collector returns the collector of the metrics about health.
func (h *Health) Collector() prometheus.Collector { return healthCollector{h} }

type healthCollector struct{ *Health }

var (
	readyDesc    = desc("", "ready", "1 if clients should come, as /readyz says, without asking servers.")
	drainingDesc = desc("", "draining", "1 since the proxy was asked to stop.")
)

// Describe implements [prometheus.Collector].
func (c healthCollector) Describe(all chan<- *prometheus.Desc) {
	all <- readyDesc
	all <- drainingDesc
}

// Collect implements [prometheus.Collector].
func (c healthCollector) Collect(all chan<- prometheus.Metric) {
	all <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, boolValue(c.LastReady().Ready))
	all <- prometheus.MustNewConstMetric(drainingDesc, prometheus.GaugeValue, boolValue(c.Server.Draining()))
}

// label makes a label value from a text of a server or the configuration. Prometheus wants valid
// UTF-8.
func label(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// seconds returns d, or +Inf for sequence.Never.
func seconds(d time.Duration) float64 {
	if d == sequence.Never {
		return math.Inf(1)
	}
	return d.Seconds()
}

// constHistogram returns a histogram's counts as a metric.
func constHistogram(d *prometheus.Desc, h *histogram.Histogram, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(histogram.Bounds))
	n := uint64(0)
	for i, bound := range histogram.Bounds {
		n += h.Counts[i]
		buckets[bound.Seconds()] = n
	}
	return prometheus.MustNewConstHistogram(d, h.Count(), h.Sum.Seconds(), buckets, labels...)
}
