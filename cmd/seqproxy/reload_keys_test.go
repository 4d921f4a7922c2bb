package main

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/conf"
	"seqproxy/test/mysqltest"
)

// changing has the servers, accounts and files for tests of reloads.
type changing struct {
	first, other *mysqltest.Server // first has the sequences; other has TLS
	schema       string            // on both
	ca, wrongCA  *mysqltest.CA     // ca has signed other's certificate
	front        mysqltest.Certificate
	one          mysqltest.Certificate // for a client, by ca
	stray        mysqltest.Certificate // for a client, by wrongCA
	slow         string                // forwards to other after a second
	dir          string
}

// part is the part of a configuration that differs between cases.
type part struct {
	top   string // keys before the first table
	user  string // for the user app, whose password is p by default
	shard string // for the shard s, which has its own account by default
	node  string // the shard's address instead of first
	from  string // keys of the sequence server instead of first and root
	more  string // tables
}

// reloadCase is a change of keys and its effect on a client. The test waits for both states.
type reloadCase struct {
	keys          []string
	before, after part
	// look describes the present state. running is the session of a client that logged in as app
	// before the reload.
	look           func(t *testing.T, s *subject, running *sql.Conn) string
	was, is        string // an empty was is not awaited
	runningWithout bool   // there is no such session
	then           func() // runs before the first look, after numbers were taken
}

func (c *changing) text(p part) string {
	if !strings.HasPrefix(p.user, "password") {
		p.user = "password = 'p'\n" + p.user
	}
	if !strings.Contains(p.shard, "user") {
		p.shard = "user = 'root'\n" + p.shard
	}
	if p.node == "" {
		p.node = c.first.Addr()
	}
	if p.from == "" {
		p.from = fmt.Sprintf("address = %q\nuser = 'root'", c.first.Addr())
	}
	return fmt.Sprintf(`listen = "127.0.0.1:0"
http.listen = ""
admin.listen = "127.0.0.1:0"
%s
[[user]]
name = "root"
password = "r"
[[user]]
name = "app"
%s
[[sequence.server]]
%s
[[shard]]
name = "s"
%s
[[shard.node]]
address = %q
%s
`, p.top, p.user, p.from, p.shard, p.node, p.more)
}

func newChanging(t *testing.T) *changing {
	c := &changing{first: mysqltest.Shared(t), ca: mysqltest.NewCA(t), wrongCA: mysqltest.NewCA(t), dir: t.TempDir()}
	c.front, c.one, c.stray = c.ca.Server(t, "127.0.0.1"), c.ca.Client(t, "one"), c.wrongCA.Client(t, "one")
	c.other = mysqltest.Start(t, c.ca.Server(t, "db1.example").ServerArgs(c.ca)...)
	c.schema = c.first.Schema(t)
	c.first.Exec(t, "CREATE USER outsider@'%' IDENTIFIED BY 'o'", "CREATE USER account@'%' IDENTIFIED BY 'a'", "CREATE VIEW "+c.schema+".v AS SELECT LAST_INSERT_ID() AS id", "CREATE TABLE "+c.schema+".rows_of_pairs (id BIGINT UNSIGNED)",
		"CREATE TABLE "+c.schema+".filled (id BIGINT UNSIGNED, other BIGINT UNSIGNED, n INT PRIMARY KEY AUTO_INCREMENT)")
	c.other.Exec(t, "CREATE DATABASE "+c.schema, "CREATE USER certified@'%' REQUIRE X509", "CREATE USER account@'%' IDENTIFIED BY 'a'")
	t.Cleanup(func() {
		c.first.Exec(t, "DROP USER outsider@'%', account@'%'", "DROP DATABASE IF EXISTS seqproxy")
	})
	for name, password := range map[string]string{"p1": "one", "p2": "two"} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("RELOAD_P1", "one")
	t.Setenv("RELOAD_P2", "two")
	t.Setenv("RELOAD_A", "a")
	if err := os.WriteFile(filepath.Join(c.dir, "a"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.slow = slowly(t, c.other.Addr())
	return c
}

// slowly listens and forwards connections to an address after a second.
func slowly(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			time.Sleep(time.Second)
			if to, err := net.Dial("tcp", address); err == nil {
				pass(nc, to)
			}
			_ = nc.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return l.Addr().String()
}

// pass copies in both directions until one side ends.
func pass(a, b net.Conn) {
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			buffer := make([]byte, 4096)
			for {
				n, err := way[0].Read(buffer)
				if err == nil {
					_, err = way[1].Write(buffer[:n])
				}
				if err != nil {
					break
				}
			}
			_ = a.Close()
			_ = b.Close()
			done <- struct{}{}
		}()
	}
	<-done
	<-done
}

// outcomeWord returns "ok" or the number of an error.
func outcomeWord(err error) string {
	var refusal *mysql.MySQLError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &refusal):
		return strconv.Itoa(int(refusal.Number))
	}
	return err.Error()
}

// login logs in at an address and runs statements. It returns the value of the last, or "ok"
// without any.
func login(t *testing.T, address, user, password string, change func(*mysql.Config), statements ...string) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.Timeout, c.ReadTimeout = user, password, "tcp", address, patience, patience
	if change != nil {
		change(c)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	pool := sql.OpenDB(connector)
	defer pool.Close()
	conn, err := pool.Conn(context.Background())
	if err != nil {
		return outcomeWord(err)
	}
	defer conn.Close()
	last := "ok"
	for _, s := range statements {
		last = valueOf(conn, s)
	}
	return last
}

// valueOf returns the value of a statement, "ok" without one, or the number of its error.
func valueOf(c *sql.Conn, statement string) string {
	rows, err := c.QueryContext(context.Background(), statement)
	if err != nil {
		return outcomeWord(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return outcomeWord(err)
	}
	if len(columns) == 0 || !rows.Next() {
		return outcomeWord(rows.Err())
	}
	values := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return outcomeWord(err)
	}
	return values[len(values)-1].String
}

// as looks by a login and the statements in it.
func as(user, password string, statements ...string) func(*testing.T, *subject, *sql.Conn) string {
	return func(t *testing.T, s *subject, _ *sql.Conn) string {
		return login(t, s.address(), user, password, nil, statements...)
	}
}

// overTLS is as with a certificate, unless that is empty.
func overTLS(cert mysqltest.Certificate) func(*testing.T, *subject, *sql.Conn) string {
	return func(t *testing.T, s *subject, _ *sql.Conn) string {
		cfg := &tls.Config{InsecureSkipVerify: true}
		if cert.CertFile != "" {
			pair, err := tls.LoadX509KeyPair(cert.CertFile, cert.KeyFile)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Certificates = []tls.Certificate{pair}
		}
		got := login(t, s.address(), "app", "p", func(c *mysql.Config) { c.TLS = cfg }, "DO 1")
		if _, err := strconv.Atoi(got); err != nil && got != "ok" {
			return "no TLS"
		}
		return got
	}
}

// inRunning looks by statements in the session from before the reload.
func inRunning(statements ...string) func(*testing.T, *subject, *sql.Conn) string {
	return func(_ *testing.T, _ *subject, running *sql.Conn) (last string) {
		for _, s := range statements {
			last = valueOf(running, s)
		}
		return last
	}
}

// TestEveryKeyCountsAsItsTagSays changes each key that needs no restart.
func TestEveryKeyCountsAsItsTagSays(t *testing.T) {
	c := newChanging(t)
	cases := slices.Concat(c.servingCases(), c.loginCases(), c.userCases(), c.tlsCases(), c.sequenceCases(), c.accountCases(t), c.shardCases())
	var tried []string
	for _, test := range cases {
		tried = append(tried, test.keys...)
		t.Run(test.keys[0], func(t *testing.T) { c.try(t, test) })
	}
	for _, key := range conf.Keys() {
		if !key.Table && key.When != conf.WhenRestart && !slices.Contains(tried, key.Name) && !slices.Contains(triedElsewhere, key.Name) {
			t.Errorf("no test changes %s", key.Name)
		}
	}
}

// triedElsewhere are keys that another test covers, or that behave like others here.
var triedElsewhere = []string{
	// needs a group: TestAnIsolatedPrimaryGivesNoOrderedNumberBehindTheNewOnes
	"sequence.order_requires_replica",
	"drain.grace", "drain.timeout", // TestADrainGoesByTheReloadedConfiguration
	// handled like the other files; only some logins of MySQL need it
	"shard.public_key_file", "sequence.server.public_key_file",
}

func (c *changing) try(t *testing.T, test reloadCase) {
	s := startSubject(t, c.text(test.before))
	for _, name := range []string{"photos", "big", "pairs"} {
		ctx := context.Background()
		if _, err := s.sequences.Create(ctx, sequenceToTry(name)); err != nil && test.then == nil {
			t.Fatal(err)
		}
	}
	var running *sql.Conn
	if !test.runningWithout {
		running = s.mustConnect(t, "app", "p")
	}
	await := func(when, want string) {
		t.Helper()
		got := ""
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			if got = test.look(t, s, running); got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: got %q, want %q", when, got, want)
			}
		}
	}
	if test.then != nil {
		test.then()
	}
	if test.was != "" {
		await("before", test.was)
	}
	changed := s.reload(c.text(test.after))
	if len(changed) == 0 {
		t.Fatal("the reload found no change")
	}
	if slices.ContainsFunc(changed, func(key string) bool { return strings.Contains(key, "restart") }) {
		t.Errorf("changed: got %q, want nothing that takes a restart", changed)
	}
	await("after", test.is)
}

func (c *changing) servingCases() []reloadCase {
	port := func(s *mysqltest.Server) string { return strconv.Itoa(s.Port()) }
	more := fmt.Sprintf("[[shard]]\nname = 't'\nuser = 'root'\n[[shard.node]]\naddress = %q\n", c.other.Addr())
	slow := fmt.Sprintf("[[shard]]\nname = 't'\nuser = 'root'\nschemas = [%q]\n[[shard.node]]\naddress = %q\n", c.schema, c.slow)
	return []reloadCase{
		{
			keys: []string{"admin_users"}, was: "1227", is: "ok",
			before: part{}, after: part{top: "admin_users = ['app']"},
			look: as("app", "p", "CREATE SEQUENCE IF NOT EXISTS photos"),
		},
		{
			keys: []string{"monitor_users"}, was: "1227", is: "ok",
			before: part{top: "admin_users = ['root']"}, after: part{top: "monitor_users = ['app']"},
			look: func(t *testing.T, s *subject, _ *sql.Conn) string {
				return login(t, s.server.AdminAddr().String(), "app", "p", nil)
			},
		},
		{
			keys: []string{"unknown_user"}, was: "1045", is: "ok",
			after: part{top: "unknown_user = 'backend'"},
			look:  as("outsider", "o"),
		},
		{
			keys: []string{"default_shard"}, was: port(c.first), is: port(c.other),
			before: part{top: "default_shard = 's'", more: more}, after: part{top: "default_shard = 't'", more: more},
			look: inRunning("SELECT @@port"),
		},
		{
			keys: []string{"connect_timeout"}, was: "refused", is: "ok",
			before: part{top: "default_shard = 's'\nconnect_timeout = '100ms'", more: slow}, after: part{top: "default_shard = 's'\nconnect_timeout = '40s'", more: slow},
			look: func(_ *testing.T, _ *subject, running *sql.Conn) string {
				if got := valueOf(running, "USE "+c.schema); got == "ok" {
					return got
				}
				return "refused"
			},
		},
		{
			keys: []string{"write_timeout"}, is: "ended",
			before: part{top: "write_timeout = '1h'"}, after: part{top: "write_timeout = '100ms'"},
			look: func(t *testing.T, s *subject, _ *sql.Conn) string {
				before := s.server.Sessions()
				conn, err := s.connect(t, "app", "p", nil)
				if err != nil {
					return outcomeWord(err)
				}
				rows, err := conn.QueryContext(context.Background(),
					"WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT REPEAT('x', 100000) FROM n")
				if err != nil {
					return outcomeWord(err)
				}
				defer rows.Close()
				for deadline := time.Now().Add(patience); s.server.Sessions() > before; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						return "goes on"
					}
				}
				return "ended"
			},
		},
		{
			keys: []string{"max_statement"}, was: "relayed", is: "given",
			before: part{top: "max_statement = '1KiB'"},
			look: func(_ *testing.T, _ *subject, running *sql.Conn) string {
				if got := valueOf(running, "SELECT IF(NEXTVAL('photos') > 0, 'given', '') /* "+strings.Repeat("x", 100_000)+" */"); got == "given" {
					return got
				}
				return "relayed"
			},
		},
		{
			keys: []string{"statement_memory"}, was: "2097152", is: "3145728",
			before: part{top: "statement_memory = '2MiB'"}, after: part{top: "statement_memory = '3MiB'"},
			look: func(t *testing.T, s *subject, running *sql.Conn) string {
				if got := valueOf(running, "SELECT IF(NEXTVAL('photos') > 0, 'given', '') /* "+strings.Repeat("x", 1_500_000)+" */"); got != "given" {
					t.Errorf("a large statement: got %s", got)
				}
				size, _, _, _ := s.server.StatementMemory()
				return fmt.Sprint(size)
			},
		},
		{
			keys: []string{"compression"}, was: "offered", is: "not offered",
			after: part{top: "compression = false"},
			look: func(t *testing.T, s *subject, _ *sql.Conn) string {
				const compress = 1 << 5
				if capabilities := greetingOf(t, s); capabilities&compress == 0 {
					return "not offered"
				}
				return "offered"
			},
		},
		{
			keys: []string{"last_insert_id"}, was: "another", is: "the same",
			after: part{top: "last_insert_id = 'exact'"},
			look: func(_ *testing.T, _ *subject, running *sql.Conn) string {
				if valueOf(running, "SELECT NEXTVAL('photos')") == valueOf(running, "SELECT id FROM "+c.schema+".v") {
					return "the same"
				}
				return "another"
			},
		},
		{
			keys: []string{"unknown_sequence"}, was: "4091", is: "1",
			after: part{top: "unknown_sequence = 'create'"},
			look:  inRunning("SELECT IF(NEXTVAL('reloaded') > 0, 1, 0)"),
		},
		{
			keys: []string{"admin.data_port"}, was: "ok", is: "1235",
			before: part{top: "admin_users = ['app']"}, after: part{top: "admin_users = ['app']\nadmin.data_port = false"},
			look: func(_ *testing.T, _ *subject, running *sql.Conn) string {
				if got := valueOf(running, "SHOW SEQPROXY VERSION"); got == "1235" {
					return got
				}
				return "ok"
			},
		},
		{
			keys: []string{"pause_timeout"}, is: "refused",
			before: part{top: "pause_timeout = '1h'"}, after: part{top: "pause_timeout = '10ms'"},
			look: func(t *testing.T, s *subject, running *sql.Conn) string {
				s.server.Pause(context.Background(), "s", 0)
				defer s.server.Resume("s")
				if got := valueOf(running, "SELECT 'not held'"); got == "not held" {
					return got
				}
				return "refused"
			},
		},
		{
			keys: []string{"log.slow_statement"}, was: "not told", is: "told",
			before: part{top: "log.slow_statement = '1h'"}, after: part{top: "log.slow_statement = '1ms'"},
			look: func(_ *testing.T, s *subject, running *sql.Conn) string {
				valueOf(running, "SELECT SLEEP(0.01)")
				if strings.Contains(s.logged(), `"event":"slow statement"`) {
					return "told"
				}
				return "not told"
			},
		},
		{
			keys: []string{"log.level"}, was: "info", is: "debug",
			after: part{top: "log.level = 'debug'"},
			look: func(t *testing.T, s *subject, _ *sql.Conn) string {
				login(t, s.address(), "app", "p", nil)
				if strings.Contains(s.logged(), `"level":"debug"`) {
					return "debug"
				}
				return "info"
			},
		},
	}
}

// greetingOf returns the lower half of the capabilities that a client is offered.
func greetingOf(t *testing.T, s *subject) uint16 {
	t.Helper()
	b := firstBytes(t, s)
	// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_v10.html
	rest := b[5:]
	for rest[0] != 0 {
		rest = rest[1:]
	}
	at := 1 + 4 + 8 + 1
	return uint16(rest[at]) | uint16(rest[at+1])<<8
}

// firstBytes connects and returns the proxy's first bytes.
func firstBytes(t *testing.T, s *subject) []byte {
	t.Helper()
	nc, err := net.Dial("tcp", s.address())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1024)
	n, err := nc.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}
