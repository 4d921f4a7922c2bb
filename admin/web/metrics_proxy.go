package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"seqproxy/proxy"
)

// ProxyCollector collects the metrics about clients and their statements from a Server.
func ProxyCollector(s *proxy.Server) prometheus.Collector { return proxyCollector{s} }

type proxyCollector struct{ server *proxy.Server }

var (
	acceptedDesc = desc("client", "connections_accepted_total", "Clients that became sessions.")
	usersDesc    = desc("client", "connections", "Clients that are logged in, by user: the 1000 users with the most, then other.", "user")
	limitDesc    = desc("client", "connections_limit", "max_connections; sessions at the admin address do not count.")
	sessionsDesc = desc("", "sessions", "Sessions by what they do: login, idle (waiting for the client), busy (with a command).", "state")
	pinnedDesc   = desc("", "sessions_pinned", "Sessions that cannot go to another shard, by reason; one may have several. SHOW SEQPROXY SESSIONS says which.", "reason")

	disconnectsDesc  = desc("client", "disconnects_total", "Connections of clients that ended, or were refused, by reason.", "reason")
	authFailuresDesc = desc("client", "auth_failures_total", "Logins and changes of user that were refused, by reason.", "reason")
	clientBytesDesc  = desc("client", "bytes_total", "Bytes from clients (received) and to them (sent), before compression and TLS.", "direction")

	statementsDesc = desc("", "statements_total",
		"Statements, as text or as executions of prepared ones, by what became of them and by shard.", "kind", "shard")
	suspectsDesc = desc("", "suspect_insert_ids_total",
		"Relayed statements whose answer has an insert id that they do not explain, on shards with bound columns.")
	memoryDesc        = desc("statement", "memory_bytes", "Memory that statements above 64 KiB use now, in all sessions.")
	memoryLimitDesc   = desc("statement", "memory_limit_bytes", "The limit of statement_memory_bytes (statement_memory).")
	memoryWaitingDesc = desc("statement", "memory_waiting", "Sessions that wait for such memory before they read more.")
	memoryWaitsDesc   = desc("statement", "memory_waits_total", "Statements that have waited for such memory.")
	durationDesc      = desc("statement", "duration_seconds",
		"How long statements took until they were answered. Those sent in one go count with the time of all.")
	overheadDesc = desc("proxy", "overhead_seconds",
		"A statement's time without waits for the server and the client, of one statement in 31.")
	shardBytesDesc = desc("shard", "bytes_total", "Bytes from the shard's servers (received) and to them (sent), on connections of sessions.", "shard", "direction")
)

// Describe implements [prometheus.Collector].
func (c proxyCollector) Describe(all chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{
		acceptedDesc, usersDesc, limitDesc, sessionsDesc, pinnedDesc, disconnectsDesc, authFailuresDesc, clientBytesDesc,
		statementsDesc, suspectsDesc, memoryDesc, memoryLimitDesc, memoryWaitingDesc, memoryWaitsDesc, durationDesc, overheadDesc, shardBytesDesc,
	} {
		all <- d
	}
}

// Collect implements [prometheus.Collector].
func (c proxyCollector) Collect(all chan<- prometheus.Metric) {
	st := c.server.Stats()
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		all <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, n uint64, labels ...string) {
		all <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	counter(acceptedDesc, st.Connections)
	gauge(limitDesc, uint64(c.server.MaxConnections()))
	size, used, waiting, waits := c.server.StatementMemory()
	gauge(memoryDesc, used)
	gauge(memoryLimitDesc, size)
	gauge(memoryWaitingDesc, waiting)
	counter(memoryWaitsDesc, waits)
	users := make(map[string]uint64) // two names that are no UTF-8 may become equal
	for _, u := range st.Users {
		users[label(u.Name)] += u.N
	}
	for name, n := range users {
		gauge(usersDesc, n, name)
	}
	for state, n := range st.Sessions {
		gauge(sessionsDesc, uint64(n), proxy.SessionState(state).String())
	}
	for _, p := range st.Pinned {
		gauge(pinnedDesc, p.N, p.Name)
	}
	for _, r := range st.Disconnects {
		counter(disconnectsDesc, r.N, r.Name)
	}
	for _, r := range st.AuthFailures {
		counter(authFailuresDesc, r.N, r.Name)
	}
	counter(clientBytesDesc, st.Received, "received")
	counter(clientBytesDesc, st.Sent, "sent")
	for _, s := range st.Statements {
		counter(statementsDesc, s.N, s.Kind.String(), s.Shard)
	}
	counter(suspectsDesc, st.SuspectIDs)
	all <- constHistogram(durationDesc, &st.Durations)
	all <- constHistogram(overheadDesc, &st.Overheads)
	for _, s := range st.Shards {
		counter(shardBytesDesc, s.Received, s.Shard, "received")
		counter(shardBytesDesc, s.Sent, s.Shard, "sent")
	}
}
