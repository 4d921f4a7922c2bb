package web

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"seqproxy/backend"
	"seqproxy/proxy"
)

// BackendCollector reads the metrics about nodes from Shards, and from the Server whose sessions use them.
func BackendCollector(shards *backend.Shards, server *proxy.Server) prometheus.Collector {
	return backendCollector{shards, server}
}

type backendCollector struct {
	shards *backend.Shards
	server *proxy.Server
}

var (
	nodeUpDesc      = desc("node", "up", "1 if the last attempt to connect was answered. To refuse one login is an answer, to refuse everybody is none.", "shard", "node")
	nodePrimaryDesc = desc("node", "primary", "1 if statements go to the node. 0 if a reload took it away, until its last session has left.", "shard", "node")
	nodeConnsDesc   = desc("node", "connections",
		"Connections to the node: connecting; active, of a session with a command in hand; idle, of one that waits for its client, or the proxy's own.", "shard", "node", "state")
	nodeConnectDesc = desc("node", "connect_duration_seconds", "How long connecting and logging in took, of the attempts that succeeded.", "shard", "node")
	nodeErrorsDesc  = desc("node", "errors_total",
		"Errors of the node by code: what it has answered with, and 2003 (no connection), 2013 (lost with a statement), 2026 (TLS), 2027 (malformed). "+
			"More than 64 codes are other.", "shard", "node", "code")
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
		active := min(busy[proxy.NodeName{Shard: n.Shard, Node: n.Node}], n.Open) // they were counted one after the other
		if !n.Leaving {                                                           // of which nobody asks it any more
			gauge(nodeUpDesc, told(n.Up), n.Shard, n.Node)
		}
		gauge(nodePrimaryDesc, told(n.Primary), n.Shard, n.Node)
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
