package web

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"seqproxy/backend"
	"seqproxy/proxy"
)

// BackendCollector collects the metrics about nodes from shards, and from the server whose sessions
// use them.
func BackendCollector(shards *backend.Shards, server *proxy.Server) prometheus.Collector {
	return backendCollector{shards, server}
}

type backendCollector struct {
	shards *backend.Shards
	server *proxy.Server
}

var (
	nodeUpDesc      = desc("node", "up", "1 if the node answered the last attempt to connect. A refused login is an answer, a refusal of everybody is not.", "shard", "node")
	nodePrimaryDesc = desc("node", "primary", "1 if statements go to the node; 0 if a reload has removed it and it still has sessions.", "shard", "node")
	nodeConnsDesc   = desc("node", "connections",
		"Connections to the node: connecting; active, in a command; idle, waiting for their clients, or the proxy's own.", "shard", "node", "state")
	nodeConnectDesc = desc("node", "connect_duration_seconds", "Duration of connecting and logging in, if that succeeded.", "shard", "node")
	nodeErrorsDesc  = desc("node", "errors_total",
		"Errors that the node answered with, and those of the connection (20..), by code. More than 64 codes are other.", "shard", "node", "code")
)

// Describe implements [prometheus.Collector].
func (c backendCollector) Describe(all chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{nodeUpDesc, nodePrimaryDesc, nodeConnsDesc, nodeConnectDesc, nodeErrorsDesc} {
		all <- d
	}
}

// Collect implements [prometheus.Collector].
func (c backendCollector) Collect(all chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		all <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	busy := c.server.BusyNodes()
	for _, n := range c.shards.Stats() {
		// The two were counted at different moments.
		active := min(busy[proxy.NodeName{Shard: n.Shard, Node: n.Node}], n.Open)
		if !n.Leaving {
			// a leaving node is no longer asked whether it is up
			gauge(nodeUpDesc, boolValue(n.Up), n.Shard, n.Node)
		}
		gauge(nodePrimaryDesc, boolValue(n.Primary), n.Shard, n.Node)
		gauge(nodeConnsDesc, float64(n.Connecting), n.Shard, n.Node, "connecting")
		gauge(nodeConnsDesc, float64(active), n.Shard, n.Node, "active")
		gauge(nodeConnsDesc, float64(n.Open-active), n.Shard, n.Node, "idle")
		all <- constHistogram(nodeConnectDesc, &n.Connects, n.Shard, n.Node)
		for _, e := range n.Errors {
			code := strconv.Itoa(int(e.Code))
			if e.Code == backend.OtherCodes {
				code = "other"
			}
			all <- prometheus.MustNewConstMetric(nodeErrorsDesc, prometheus.CounterValue, float64(e.N), n.Shard, n.Node, code)
		}
	}
}
