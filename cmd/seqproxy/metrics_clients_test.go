package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"os/user"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/test/mysqltest"
)

// greeted connects without logging in, and waits for the greeting.
func greeted(t *testing.T, address string) net.Conn {
	t.Helper()
	nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if _, err := io.ReadFull(nc, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return nc
}

// TestMetricsOfClientsAndStatements causes everything that metrics of clients count, from the login
// to the proxy's end.
func TestMetricsOfClientsAndStatements(t *testing.T) {
	server := mysqltest.Start(t)
	server.Exec(t, "CREATE DATABASE numbers", "CREATE DATABASE app", "CREATE TABLE app.photos (id BIGINT UNSIGNED PRIMARY KEY)", "CREATE USER few@'%'", "GRANT ALL ON app.* TO few@'%'")
	file := write(t, "seqproxy.toml", strings.Replace(meteredConfig(server, "numbers", "", `[[user]]
name = "few"
schema = "app"
max_connections = 1
`, server.Addr()), `admin.listen = ""`, `admin.listen = "127.0.0.1:0"`, 1))
	p := begin(t, "-config", file)
	m := &metered{t, p.address(), p.httpAddress()}
	reason := func(name string) string { return `client_disconnects_total{reason="` + name + `"}` }
	auth := func(name string) string { return `client_auth_failures_total{reason="` + name + `"}` }
	ends := []string{"client_disconnects_total", "client_auth_failures_total"}
	var err error
	connect := func(user string) *sql.Conn {
		t.Helper()
		c, err := connectTo(t, m.clients, user, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	refused := func(address, user, password, schema string) func() {
		return func() {
			t.Helper()
			if _, err := connectTo(t, address, user, password, func(c *mysql.Config) { c.DBName = schema }); err == nil {
				t.Errorf("%s was let in", user)
			}
		}
	}

	// Clients that come and go.
	m.awaits("no client is connected", series{"client_connections_accepted_total": 0, `sessions{state="login"}`: 0, `sessions{state="idle"}`: 0})
	root, few := connect("root"), connect("few")
	m.awaits("two", series{
		"client_connections_accepted_total": 2, `client_connections{user="root"}`: 1, `client_connections{user="few"}`: 1,
		`sessions{state="idle"}`: 2, `sessions{state="busy"}`: 0, `sessions{state="login"}`: 0, "client_connections_limit": 10000,
	})
	m.moves("a wrong password", ends, series{reason("auth"): 1, auth("password"): 1}, refused(m.clients, "root", "wrong", ""))
	m.moves("an unknown user", ends, series{reason("auth"): 1, auth("unknown_user"): 1}, refused(m.clients, "nobody", "", ""))
	m.moves("an unknown schema", ends, series{reason("auth"): 1, auth("server"): 1}, refused(m.clients, "root", "", "nowhere"))
	m.moves("one who is no admin", ends, series{reason("auth"): 1, auth("not_admin"): 1}, refused(p.adminAddress(), "few", "", ""))
	m.moves("too many of a user", ends, series{reason("limit"): 1}, refused(m.clients, "few", "", ""))
	m.moves("a health check", ends, series{reason("client_gone"): 1}, func() { _ = greeted(t, m.clients).Close() })
	var slow net.Conn
	m.moves("one that logs in", []string{"sessions"}, series{`sessions{state="login"}`: 1}, func() { slow = greeted(t, m.clients) })
	m.moves("it goes", ends, series{reason("client_gone"): 1}, func() { _ = slow.Close() })
	m.moves("no login at all", ends, series{reason("malformed"): 1}, func() {
		if _, err := greeted(t, m.clients).Write([]byte("\x02\x00\x00\x01\x01\x02")); err != nil {
			t.Fatal(err)
		}
	})
	m.moves("QUIT", ends, series{reason("quit"): 1}, func() { query(t, m.clients, "root", "", "DO 1") })
	m.moves("KILL", ends, series{reason("killed"): 1, reason("quit"): 1}, func() {
		query(t, m.clients, "root", "", "KILL "+firstValue(few, "SELECT CONNECTION_ID()"))
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		// The user may have one connection.
		if few, err = connectTo(t, m.clients, "few", "", nil); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	id := ""
	if err := few.QueryRowContext(t.Context(), "SELECT id FROM information_schema.processlist WHERE id = CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	m.moves("a server that ends the connection", ends, series{reason("backend_gone"): 1}, func() { server.Exec(t, "KILL "+id) })

	// Statements.
	must(t, root, "USE app", "CREATE SEQUENCE photos CACHE 10")
	// A session reports its counts when it rests or ends, a moment after its answer.
	m.awaits("one session rests, and the others have gone", series{`sessions{state="idle"}`: 1, `sessions{state="busy"}`: 0, `sessions{state="login"}`: 0})
	for _, c := range []struct{ kind, shard, statement string }{
		{"relay", "main", "DO 1"},
		{"rewrite", "main", "INSERT INTO photos VALUES (NEXTVAL('photos'))"},
		{"nextval", "", "SELECT NEXTVAL('photos')"},
		{"last_insert_id", "", "SELECT LAST_INSERT_ID()"},
		{"own", "", "SELECT CONNECTION_ID()"},
		{"admin", "", "SHOW SEQPROXY NODES"},
		{"refused", "", "SELECT NEXTVAL('nobody')"},
	} {
		m.moves(c.statement, []string{"statements_total", "statement_duration_seconds_count"},
			series{fmt.Sprintf(`statements_total{kind="%s",shard="%s"}`, c.kind, c.shard): 1, "statement_duration_seconds_count": 1}, func() { firstValue(root, c.statement) })
	}
	const size = 1 << 20
	statement := fmt.Sprintf("SELECT REPEAT('x', %d)", size)
	before := m.read()
	m.moves("a long answer", []string{"statements_total"}, series{`statements_total{kind="relay",shard="main"}`: 1}, func() { firstValue(root, statement) })
	moved := m.read().since(before)
	if got, want := moved[`client_bytes_total{direction="received"}`], float64(len(statement)+5); got != want || moved[`shard_bytes_total{direction="sent",shard="main"}`] != want {
		t.Errorf("a statement of %v bytes: %v", want, moved.family("client_bytes_total", "shard_bytes_total"))
	}
	if got := moved[`client_bytes_total{direction="sent"}`]; got < size || got > size+200 || moved[`shard_bytes_total{direction="received",shard="main"}`] != got {
		t.Errorf("an answer of %d bytes: %v", size, moved.family("client_bytes_total", "shard_bytes_total"))
	}
	m.moves("a pin", []string{"sessions_pinned"}, series{`sessions_pinned{reason="temporary_table"}`: 1}, func() { must(t, root, "CREATE TEMPORARY TABLE mine (a INT)") })

	// The proxy stops while a session runs a statement.
	idle := connect("root")
	must(t, idle, "DO 1")
	lock, err := server.DB(t, "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	must(t, lock, "DO GET_LOCK('metered', 60)")
	answered := make(chan error, 1)
	m.awaits("two sessions rest", series{`sessions{state="idle"}`: 2, `sessions{state="busy"}`: 0})
	m.moves("a session with a statement in hand", []string{"sessions"}, series{`sessions{state="busy"}`: 1, `sessions{state="idle"}`: -1}, func() {
		go func() {
			_, err := root.ExecContext(context.Background(), "DO GET_LOCK('metered', 60)")
			answered <- err
		}()
	})
	m.awaits("the proxy runs", series{"draining": 0, reason("drain"): 0})
	p.signal(syscall.SIGTERM)
	m.awaits("the proxy stops", series{"draining": 1, "ready": 0, reason("drain"): 1})
	must(t, lock, "DO RELEASE_LOCK('metered')")
	if err := receive(t, "the statement", answered); err != nil {
		t.Error(err)
	}
	p.end(0)
}

// TestMetricsOfClientsThatAreRefusedOrTooSlow checks that all reasons exist from the start and are
// on the page. It counts those that need a special configuration.
func TestMetricsOfClientsThatAreRefusedOrTooSlow(t *testing.T) {
	server := mysqltest.Shared(t)
	p := begin(t, "-config", write(t, "seqproxy.toml", fmt.Sprintf(`listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
admin.listen = ""
login_timeout = "1h"
[[user]]
name = "root"
[[user]]
name = "secure"
require_tls = true
%s
[[sequence.server]]
address = %q
user = "root"
`, frontTLS(t), server.Addr())))
	m := &metered{t, p.address(), p.httpAddress()}
	page := repositoryFile(t, "docs/metrics.md")
	all := m.read()
	for _, of := range []struct {
		metric, page string
		reasons      int
	}{
		{"client_disconnects_total", "\n| `%s` | ", 10},
		{"client_auth_failures_total", "`%s`", 6},
	} {
		series := all.family(of.metric)
		for line, value := range series {
			if value != 0 {
				t.Errorf("at the start %s is %v, want 0", line, value)
			}
			reason := strings.TrimSuffix(strings.TrimPrefix(line, of.metric+`{reason="`), `"}`)
			if !strings.Contains(page, fmt.Sprintf(of.page, reason)) {
				t.Errorf("docs/metrics.md does not have the reason %s of %s", reason, of.metric)
			}
		}
		if len(series) != of.reasons {
			t.Errorf("%s has %d series, want %d", of.metric, len(series), of.reasons)
		}
	}

	ends := []string{"client_disconnects_total", "client_auth_failures_total"}
	reason := func(name string) string { return `client_disconnects_total{reason="` + name + `"}` }
	m.moves("one who must come over TLS", ends, series{reason("auth"): 1, `client_auth_failures_total{reason="requirement"}`: 1}, func() {
		if _, err := connectTo(t, m.clients, "secure", "", nil); err == nil {
			t.Error("secure was let in without TLS")
		}
	})
	m.moves("one who is idle", ends, series{reason("timeout"): 1}, func() {
		c, err := connectTo(t, m.clients, "root", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		must(t, c, "SET SESSION wait_timeout = 1")
	})
	m.moves("a character set that no client can have", ends, series{reason("error"): 1}, func() {
		login := "\x01\xa2\x08\x00\x00\x00\x00\x01\x23" + strings.Repeat("\x00", 23) + "root\x00\x00caching_sha2_password\x00"
		if _, err := greeted(t, m.clients).Write(append([]byte{byte(len(login)), 0, 0, 1}, login...)); err != nil {
			t.Fatal(err)
		}
	})
	p.signal(syscall.SIGTERM)
	p.end(0)
}

// TestMetricsOfLoginsThatTheServerChecks: the server refuses a client, or it would accept one
// because of the proxy's user id.
func TestMetricsOfLoginsThatTheServerChecks(t *testing.T) {
	server := mysqltest.Start(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	how := "VIA mysql_native_password USING PASSWORD('pw') OR unix_socket"
	if !server.IsMariaDB() {
		server.Exec(t, "INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'")
		how = "WITH auth_socket"
	}
	// Another account makes the tables of sequences, since the account to be refused may be root.
	server.Exec(t, "CREATE USER numbers@'%'", "GRANT ALL ON *.* TO numbers@'%'", "CREATE USER app@'%' IDENTIFIED BY 'right'",
		fmt.Sprintf("DROP USER IF EXISTS `%s`@localhost", me.Username), fmt.Sprintf("CREATE USER `%s`@localhost IDENTIFIED %s", me.Username, how))
	p := begin(t, "-config", write(t, "seqproxy.toml", fmt.Sprintf(`listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
admin.listen = ""
unknown_user = "backend"
[[sequence.server]]
address = %q
user = "numbers"
[[shard]]
name = "main"
[[shard.node]]
address = "unix:%s"
`, server.Addr(), server.Socket())))
	m := &metered{t, p.address(), p.httpAddress()}
	refused := func(user string) func() {
		return func() {
			t.Helper()
			if _, err := connectTo(t, m.clients, user, "wrong", nil); err == nil {
				t.Errorf("%s was let in", user)
			}
		}
	}
	ends := []string{"client_disconnects_total", "client_auth_failures_total"}
	ended := `client_disconnects_total{reason="auth"}`
	m.moves("a password that the server refuses", ends, series{ended: 1, `client_auth_failures_total{reason="server"}`: 1}, refused("app"))
	m.moves("one whom the server would know by the proxy", ends, series{ended: 1, `client_auth_failures_total{reason="relay"}`: 1}, refused(me.Username))
	p.signal(syscall.SIGTERM)
	p.end(0)
}

// frontTLS has the proxy offer TLS.
func frontTLS(t *testing.T) string {
	t.Helper()
	c := mysqltest.NewCA(t).Server(t, "127.0.0.1")
	return fmt.Sprintf("[tls]\ncert_file = %q\nkey_file = %q", c.CertFile, c.KeyFile)
}
