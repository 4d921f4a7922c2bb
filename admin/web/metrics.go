package web

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// namespace begins the name of every metric of the proxy's own.
const namespace = "seqproxy"

// Build is what the program says of itself.
type Build struct{ Version, Commit string }

// NewRegistry returns a registry with what is known of the program, the Go runtime and the process, and the given collectors. It panics
// if two of them tell the same.
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

// desc describes a metric. Its parts are joined to its name.
func desc(subsystem, name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, labels, nil)
}

// told is 1 for true.
func told(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Collector is what the metrics about health are read from.
func (h *Health) Collector() prometheus.Collector { return healthCollector{h} }

type healthCollector struct{ *Health }

var (
	readyDesc    = desc("", "ready", "1 if clients should come, as far as is known without asking servers.")
	drainingDesc = desc("", "draining", "1 since the proxy was asked to stop.")
)

// Describe implements [prometheus.Collector].
func (c healthCollector) Describe(all chan<- *prometheus.Desc) {
	all <- readyDesc
	all <- drainingDesc
}

// Collect implements [prometheus.Collector].
func (c healthCollector) Collect(all chan<- prometheus.Metric) {
	all <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, told(c.LastReady().Ready))
	all <- prometheus.MustNewConstMetric(drainingDesc, prometheus.GaugeValue, told(c.Server.Draining()))
}
