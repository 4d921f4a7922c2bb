package web_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"seqproxy/admin"
	"seqproxy/admin/web"
	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// inFrontOf starts a proxy in front of a server, for its root. It returns the proxy's address and
// its metrics.
func inFrontOf(t *testing.T, server *mysqltest.Server) (address string, gatherer prometheus.Gatherer) {
	t.Helper()
	log := zap.NewNop()
	sequences, err := sequence.New(sequence.Options{
		Servers: []sequence.ServerOptions{{Addr: server.Addr(), User: "root", Database: server.Schema(t)}},
		Tuning:  sequence.Tuning{CreateTable: true}, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	shards, err := backend.New(backend.Options{
		Default: "main", Shards: []backend.ShardOptions{{Name: "main", Nodes: []string{server.Addr()}}},
		Probe: backend.Credentials{User: "root"}, ConnectTimeout: patience, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := proxy.New(proxy.Options{
		Shards:           shards,
		KeyOptions:       proxy.KeyOptions{Sequences: sequences, Admin: admin.NewSequences(sequences, nil)},
		AccountOptions:   proxy.AccountOptions{Users: []proxy.User{{Name: "root", Admin: true}}},
		TransportOptions: proxy.TransportOptions{RSA: protocol.NewRSAKeys()},
		LoginOptions:     proxy.LoginOptions{MaxConnections: 20, LoginTimeout: patience},
		StatementOptions: proxy.StatementOptions{WriteTimeout: patience, MaxStatement: 1 << 20},
		Logger:           log,
	})
	if err := p.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	shards.Open(t.Context())
	served := make(chan error, 1)
	go func() { served <- p.Serve(context.Background()) }()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		if err := p.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-served
		shards.Close()
		_ = sequences.Close(ctx)
	})
	return p.Addr().String(), web.NewRegistry(web.Build{}, web.ProxyCollector(p), web.BackendCollector(shards, p))
}

func TestProxyAndNodeMetrics(t *testing.T) {
	server := mysqltest.Shared(t)
	address, gatherer := inFrontOf(t, server)
	pool, err := sql.Open("mysql", "root@tcp("+address+")/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	pool.SetMaxOpenConns(1)
	for _, text := range []string{"CREATE SEQUENCE photos", "SELECT NEXTVAL('photos')", "DO 1", "SELECT NEXTVAL('nobody')", "DO nonsense", "BEGIN", "SELECT NEXTVAL('photos') + 1", "DO NEXTVAL('photos')"} {
		_, _ = pool.ExecContext(t.Context(), text) // errors count, too
	}
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = "root", "wrong", "tcp", address
	wrong, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Connect(t.Context()); err == nil {
		t.Fatal("a wrong password was let in")
	}

	node := fmt.Sprintf(`node="%s",shard="main"`, server.Addr())
	wants := []string{
		`seqproxy_client_connections_accepted_total 2`,
		`seqproxy_client_connections{user="root"} 1`,
		`seqproxy_sessions{state="idle"} 1`,
		`seqproxy_sessions{state="busy"} 0`,
		`seqproxy_sessions_pinned{reason="transaction"} 1`,
		`seqproxy_sessions_pinned{reason="temporary_table"} 0`,
		`seqproxy_client_disconnects_total{reason="auth"} 1`,
		`seqproxy_client_disconnects_total{reason="quit"} 0`,
		`seqproxy_client_auth_failures_total{reason="password"} 1`,
		`seqproxy_client_auth_failures_total{reason="unknown_user"} 0`,
		`seqproxy_statements_total{kind="admin",shard=""} 1`,
		`seqproxy_statements_total{kind="nextval",shard=""} 1`,
		`seqproxy_statements_total{kind="refused",shard=""} 1`,
		`seqproxy_statements_total{kind="relay",shard="main"} 3`,
		`seqproxy_statements_total{kind="rewrite",shard="main"} 2`,
		`seqproxy_statement_duration_seconds_count 8`,
		`seqproxy_statement_duration_seconds_bucket{le="+Inf"} 8`,
		`seqproxy_node_up{` + node + `} 1`,
		`seqproxy_node_primary{` + node + `} 1`,
		`seqproxy_node_connections{` + node + `,state="idle"} 1`,
		`seqproxy_node_connections{` + node + `,state="active"} 0`,
		`seqproxy_node_connections{` + node + `,state="connecting"} 0`,
		fmt.Sprintf(`seqproxy_node_errors_total{code="1054",%s} 1`, node),
	}
	some := []string{ // their number depends on the server
		`seqproxy_client_bytes_total{direction="received"} `, `seqproxy_client_bytes_total{direction="sent"} `,
		`seqproxy_shard_bytes_total{direction="received",shard="main"} `, `seqproxy_shard_bytes_total{direction="sent",shard="main"} `,
		`seqproxy_node_connect_duration_seconds_count{` + node + `} `, `seqproxy_proxy_overhead_seconds_count `,
	}
	missing := ""
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		got := metrics(t, gatherer)
		missing = ""
		for _, want := range wants {
			if !strings.Contains(got, "\n"+want+"\n") {
				missing += want + "\n"
			}
		}
		for _, want := range some {
			if !strings.Contains(got, "\n"+want) || want != some[5] && strings.Contains(got, "\n"+want+"0\n") {
				missing += want + "\n"
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got\n%swithout\n%s", got, missing)
		}
	}
}
