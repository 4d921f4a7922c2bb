package proxy_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/admin"
	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m, mysqltest.CheckLeaks()) }

// setup says what an env is made of. Its zero value is one shard on the shared server.
type setup struct {
	// Shards is how many shards there are; 0 means 1, noShards none.
	Shards int
	// Servers replace the usual ones: the shared server for the first shard and the sequences, the
	// second shared one for the second shard.
	Servers []*mysqltest.Server
	// AdminAddress makes the proxy listen at one.
	AdminAddress bool
	// Bare puts nothing between the proxy and the shards, for tests that measure memory.
	Bare bool
	// Proxy, Backend and Sequence may change the options of their parts.
	Proxy    func(*proxy.Options)
	Before   func(*proxy.Server) // before it serves
	Backend  func(*backend.Options)
	Sequence func(*sequence.Options)
}

const noShards = -1

// env is a proxy in this process, in front of real servers. Its account exists at the proxy and on
// every server, so that a direct connection is the oracle for one through the proxy.
type env struct {
	t testing.TB

	Servers []*mysqltest.Server // by shard; the first has the sequence table
	// Schemas[i] is the schema that shard i owns, empty at the start.
	Schemas []string
	// SequenceSchema holds the sequence table.
	SequenceSchema string
	// User and Password are an account with all rights.
	User, Password string

	Proxy     *proxy.Server
	Shards    *backend.Shards
	Sequences *sequence.Sequences
	Logs      *observer.ObservedLogs

	addr     string
	stop     func()
	shutDown bool

	back backend.Options // the options in force
	opts proxy.Options
}

// Reload changes the options that the proxy runs with, as a reload of its configuration does.
func (e *env) Reload(t testing.TB, change func(*backend.Options, *proxy.Options)) {
	t.Helper()
	if err := e.TryReload(change); err != nil {
		t.Fatal(err)
	}
}

// TryReload is Reload for a test that expects a refusal.
func (e *env) TryReload(change func(*backend.Options, *proxy.Options)) error {
	back, opts := e.back, e.opts
	back.Shards = slices.Clone(back.Shards)
	change(&back, &opts)
	c, err := e.Shards.Change(back)
	if err != nil {
		return err
	}
	if err := c.Try(context.Background()); err != nil {
		return err
	}
	e.Proxy.Reload(opts, c.Apply())
	e.back, e.opts = back, opts
	return nil
}

// Shutdown shuts the proxy down. Otherwise the test's end does.
func (e *env) Shutdown(ctx context.Context) error {
	e.shutDown = true
	return e.Proxy.Shutdown(ctx)
}

// newEnv starts a proxy and stops it at the test's end, when it checks that no goroutine and no
// connection to a server remains.
func newEnv(t testing.TB, s setup) *env {
	t.Helper()
	e := &env{
		t:        t,
		User:     fmt.Sprintf("u_%08x", rand.Uint32()),
		Password: "s3cret pässword",
	}
	switch {
	case s.Servers != nil:
		e.Servers = s.Servers
	case s.Shards == 2:
		e.Servers = []*mysqltest.Server{mysqltest.Shared(t), mysqltest.SharedSecond(t)}
	default:
		e.Servers = []*mysqltest.Server{mysqltest.Shared(t)}
	}
	for _, server := range e.Servers {
		server.Exec(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", e.User, e.Password),
			fmt.Sprintf("GRANT ALL ON *.* TO %s@'%%' WITH GRANT OPTION", e.User))
		e.Schemas = append(e.Schemas, server.Schema(t))
	}
	e.SequenceSchema = e.Servers[0].Schema(t)
	t.Cleanup(e.checkConnections)

	leaks := leaksFrom()
	core, logs := observer.New(zapcore.DebugLevel)
	e.Logs = logs
	log := zap.New(core)

	seq := sequence.Options{
		Servers: []sequence.ServerOptions{{
			Addr: e.Servers[0].Addr(), User: e.User, Password: e.Password, Database: e.SequenceSchema,
		}},
		Tuning: sequence.Tuning{CreateTable: true}, Logger: log,
	}
	if s.Sequence != nil {
		s.Sequence(&seq)
	}
	if len(seq.Servers) > 1 && seq.AllocateTimeout == 0 {
		seq.AllocateTimeout = 16 * time.Second // each server may take a part of this, and makes its tables in it
	}
	back := backend.Options{
		Default:        "s0",
		Probe:          backend.Credentials{User: e.User, Password: e.Password},
		ConnectTimeout: 5 * time.Second, Logger: log,
	}
	if s.Shards != noShards {
		for i, server := range e.Servers {
			back.Shards = append(back.Shards, backend.ShardOptions{
				Name: fmt.Sprintf("s%d", i), Nodes: []string{server.Addr()}, Schemas: []string{e.Schemas[i]},
			})
		}
	}
	if s.Backend != nil {
		s.Backend(&back)
	}
	var err error
	if e.Sequences, err = sequence.New(seq); err != nil {
		t.Fatal(err)
	}
	if e.Shards, err = backend.New(back); err != nil {
		t.Fatal(err)
	}
	opts := proxy.Options{
		Shards:           e.Shards,
		KeyOptions:       proxy.KeyOptions{Sequences: e.Sequences, Admin: admin.NewSequences(e.Sequences, nil)},
		AccountOptions:   proxy.AccountOptions{Users: []proxy.User{{Name: e.User, Password: e.Password, Admin: true}}},
		TransportOptions: proxy.TransportOptions{RSA: testRSA, Compression: true},
		LoginOptions:     proxy.LoginOptions{MaxConnections: 200, LoginTimeout: 10 * time.Second},
		StatementOptions: proxy.StatementOptions{
			WriteTimeout: 20 * time.Second, PauseTimeout: time.Minute, MaxStatement: 16 << 20, SlowStatement: 10 * time.Second,
		},
		Logger: log,
	}
	if s.Proxy != nil {
		s.Proxy(&opts)
	}
	e.back, e.opts = back, opts
	e.Proxy = proxy.New(opts)
	if s.Before != nil {
		s.Before(e.Proxy)
	}
	if err := e.Proxy.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	e.addr = e.Proxy.Addr().String()
	if s.AdminAddress {
		if err := e.Proxy.ListenAdmin("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	e.Shards.Open(context.Background())
	served := make(chan error, 1)
	go func() { served <- e.Proxy.Serve(context.Background()) }()

	e.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if !e.shutDown {
			if err := e.Shutdown(ctx); err != nil {
				t.Errorf("shutdown: %v", err)
			}
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		e.Shards.Close()
		// The shutdown may have waited for a server that is slow to end killed statements.
		after, cancelAfter := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancelAfter()
		// A refused connection is to a server that the test has ended.
		if err := e.Sequences.Close(after); err != nil && e.Servers[0].Running() && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("close sequences: %v", err)
		}
		if n := e.Proxy.Sessions(); n != 0 {
			t.Errorf("sessions after the shutdown: got %d, want 0", n)
		}
		e.checkLogs()
		if err := leaks(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(e.stop)
	return e
}

// envs counts the envs that run. A test may have several, and goroutines of a later one are no
// leaks of an earlier one. Tests do not run in parallel.
var envs struct {
	n    int
	from goleak.Option // goroutines that ran before the first env
}

// leaksFrom registers a new env, and returns a check for when it has ended: the last env to end
// reports the leaks of all.
func leaksFrom() (check func() error) {
	if envs.n == 0 {
		envs.from = goleak.IgnoreCurrent()
	}
	envs.n++
	return func() error {
		if envs.n--; envs.n > 0 {
			return nil
		}
		return mysqltest.FindLeaks(envs.from, goleak.IgnoreAnyFunction("seqproxy/internal/mysqld.(*process).run"))
	}
}

// eventually polls ok until it is true, and fails the test if it stays false for longer than a busy
// machine needs.
func eventually(t testing.TB, what string, ok func() bool) bool {
	t.Helper()
	for end := time.Now().Add(wireTimeout); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%s: not within %v", what, wireTimeout)
			return false
		}
	}
	return true
}

// impatient gives clients almost no time to wait for a sequence server, which is away from here on.
// A healthy one may need longer than that on a busy machine.
func (e *env) impatient() {
	e.Sequences.Tune(sequence.Tuning{CreateTable: true, AllocateTimeout: 300 * time.Millisecond})
}

// checkLogs fails the test if the log has a password, or a line of level error.
func (e *env) checkLogs() {
	for _, entry := range e.Logs.All() {
		line := fmt.Sprintf("%s %s %v", entry.Level, entry.Message, entry.ContextMap())
		if strings.Contains(line, e.Password) {
			e.t.Errorf("a password is in the log: %s", line)
		}
		if entry.Level >= zapcore.ErrorLevel {
			e.t.Errorf("logged: %s", line)
		}
	}
}

// checkFaults fails the test if a fault of the proxy has ended a session. what names the input.
func (e *env) checkFaults(t testing.TB, what any) {
	t.Helper()
	if faults := e.Logs.FilterMessage("session ended by a fault of the proxy").All(); len(faults) > 0 {
		t.Fatalf("%.200q: %v", what, faults[0].ContextMap())
	}
}

// testRSA is shared, because a key takes a while to make.
var testRSA = protocol.NewRSAKeys()

// checkConnections fails the test if the account still has a connection to a server. Servers notice
// a closed one a little late.
func (e *env) checkConnections() {
	for _, server := range e.Servers {
		if !server.Running() {
			continue
		}
		var open string
		if !eventually(e.t, "no connection on "+server.Addr(), func() bool { open = e.connections(server); return open == "" }) {
			e.t.Errorf("connections remain: %s", open)
		}
		server.Exec(e.t, "DROP USER "+e.User)
	}
}

// connections lists the account's connections to a server, as "id command info".
func (e *env) connections(server *mysqltest.Server) string {
	pool, err := sql.Open("mysql", server.DSN(""))
	if err != nil {
		e.t.Fatal(err)
	}
	defer pool.Close()
	var list sql.NullString
	if err := pool.QueryRow("SELECT GROUP_CONCAT(id, ' ', command, ' ', LEFT(COALESCE(info, ''), 100)) FROM information_schema.processlist WHERE user = ?", e.User).Scan(&list); err != nil {
		e.t.Fatal(err)
	}
	return list.String
}

// awaitConnections waits until the account has n connections to a server, including those of the
// sequences.
func (e *env) awaitConnections(server *mysqltest.Server, n int) {
	e.t.Helper()
	var got int
	pool := server.DB(e.t, "")
	if !eventually(e.t, "connections on "+server.Addr(), func() bool {
		if err := pool.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE user = ?", e.User).Scan(&got); err != nil {
			e.t.Fatal(err)
		}
		return got == n
	}) {
		e.t.Errorf("connections: got %d, want %d", got, n)
	}
}

// AdminAddr is the proxy's admin address.
func (e *env) AdminAddr() string { return e.Proxy.AdminAddr().String() }

// AdminConn is a connection to it. change may be nil.
func (e *env) AdminConn(t testing.TB, change func(*mysql.Config)) *sql.Conn {
	t.Helper()
	return one(t, e.open(t, e.AdminAddr(), "", change))
}

// Addr is the proxy's address.
func (e *env) Addr() string { return e.addr }

// config is what go-sql-driver needs for the account at addr.
func (e *env) config(addr, schema string, change func(*mysql.Config)) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = e.User, e.Password, "tcp", addr, schema
	c.Timeout, c.ReadTimeout = 10*time.Second, 30*time.Second
	if change != nil {
		change(c)
	}
	return c
}

// DB is a pool through the proxy, closed when the test ends. change may be nil.
func (e *env) DB(t testing.TB, schema string, change func(*mysql.Config)) *sql.DB {
	return e.open(t, e.addr, schema, change)
}

// DirectDB is a pool to shard i's server.
func (e *env) DirectDB(t testing.TB, i int, schema string, change func(*mysql.Config)) *sql.DB {
	return e.open(t, e.Servers[i].Addr(), schema, change)
}

func (e *env) open(t testing.TB, addr, schema string, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(e.config(addr, schema, change))
	if err != nil {
		t.Fatal(err)
	}
	pool := sql.OpenDB(connector)
	t.Cleanup(func() { _ = pool.Close() }) // the test may have broken its connections
	return pool
}

// Conn is one connection of a pool through the proxy.
func (e *env) Conn(t testing.TB, schema string, change func(*mysql.Config)) *sql.Conn {
	t.Helper()
	return one(t, e.DB(t, schema, change))
}

// DirectConn is one to shard i's server.
func (e *env) DirectConn(t testing.TB, i int, schema string, change func(*mysql.Config)) *sql.Conn {
	t.Helper()
	return one(t, e.DirectDB(t, i, schema, change))
}

func one(t testing.TB, pool *sql.DB) *sql.Conn {
	t.Helper()
	c, err := pool.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the test may have broken it
	return c
}

// exec runs statements on one connection; the first error fails the test.
func exec(t testing.TB, c *sql.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := c.ExecContext(context.Background(), statement); err != nil {
			t.Fatalf("%.200s: %v", statement, err)
		}
	}
}

// value returns the one value of a query as text, "NULL" for NULL.
func value(t testing.TB, c *sql.Conn, query string, args ...any) string {
	t.Helper()
	var v sql.NullString
	if err := c.QueryRowContext(context.Background(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%.200s: %v", query, err)
	}
	if !v.Valid {
		return "NULL"
	}
	return v.String
}

// wantError runs a statement and checks that it fails with the code, and that the message has all
// words.
func wantError(t testing.TB, c *sql.Conn, code uint16, statement string, words ...string) {
	t.Helper()
	_, err := c.ExecContext(context.Background(), statement)
	checkError(t, statement, err, code, words...)
}

func checkError(t testing.TB, what string, err error, code uint16, words ...string) {
	t.Helper()
	e, ok := err.(*mysql.MySQLError)
	if !ok || e.Number != code {
		t.Errorf("%.200s: got error %v, want number %d", what, err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("%.200s: got message %q, want %q in it", what, e.Message, w)
		}
	}
}

// wantErrorInTime is wantError for a statement that must end by a timeout of the proxy. A statement
// that hangs ends with the error of its context.
func wantErrorInTime(t testing.TB, c *sql.Conn, code uint16, statement string, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*wireTimeout)
	defer cancel()
	_, err := c.ExecContext(ctx, statement)
	checkError(t, statement, err, code, words...)
}

// CLI runs the mariadb command-line client at addr, with a script on its standard input, and
// returns its output: rows with column types and warnings, then the errors of the other stream. No
// address is in it.
func (e *env) CLI(t testing.TB, addr, schema, script string, args ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	program := e.Servers[0].Client(t)
	plain := []string{"--skip-ssl"} // otherwise the client of MariaDB 11.4 insists on TLS
	if filepath.Base(program) == "mysql" {
		plain = []string{"--ssl-mode=DISABLED", "--get-server-public-key", "--commands", "--system-command"}
	}
	args = append(append([]string{
		"--no-defaults", "--batch", "--force", "--show-warnings", "--column-type-info", "-vvv", "--comments",
		"-h", host, "-P", port, "-u", e.User, "--password=" + e.Password, "--default-character-set=utf8mb4",
	}, plain...), args...)
	if schema != "" {
		args = append(args, "-D", schema)
	}
	cmd := osexec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(script)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("the client did not end; it printed:\n%.2000s", out.String())
	}
	if _, failed := err.(*osexec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	return out.String() + errs.String()
}

// testTLS makes a server's and a client's configuration for 127.0.0.1.
var testTLS = sync.OnceValues(func() (server, client *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "proxy under test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12},
		&tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
})
