package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"seqproxy/internal/child"
	"seqproxy/internal/mysqld"
)

// The names of the targets.
const (
	direct   = "direct"
	haproxy  = "haproxy"
	relay    = "relay" // a bare relay in Go, see relay.go
	seqproxy = "seqproxy"
	before   = "before" // another build of seqproxy, see -before
)

// allTargets are in the order of the tables.
var allTargets = []string{direct, haproxy, relay, seqproxy}

// startTimeout bounds the wait for a proxy to listen.
const startTimeout = 20 * time.Second

// Another build may have other tables beside its sequences, so it has a schema of its own. Both
// builds write keys into one table, so the other build's sequences begin far above.
const (
	beforeSchema = "bench_before"
	beforeFirst  = 1_000_000_000_000
)

// benchAccount exists on the private server and in seqproxy's configuration.
var benchAccount = account{user: "bench", password: "loopback-only", schema: "bench"}

// target is a server or proxy that is measured.
type target struct {
	name    string
	addr    string
	pid     int    // the process whose CPU time and memory are measured
	plugin  string // completes a login
	version string // from the greeting
	ended   func() error
}

// fleet is a private server and the proxies in front of it. Its methods are for one goroutine.
type fleet struct {
	dir      string // has all files
	wanted   []string
	binary   mysqld.Binary
	binlog   bool   // the server has one
	haproxy  string // path of the program
	seqproxy string // path of the program
	before   string // path of another build of it, or ""

	server    *mysqld.Server
	admin     *sql.DB
	processes []*process
	targets   map[string]*target
	loaded    bool // the tables are there
}

// start starts the server and the wanted proxies, and logs in to each once. The first time it also
// makes the tables. threads is HAProxy's number of threads, or 0 for its default. The caller must
// call stop, even after an error.
func (f *fleet) start(ctx context.Context, threads int) error {
	f.targets = map[string]*target{}
	if err := f.startServer(ctx); err != nil {
		return err
	}
	if slices.Contains(f.wanted, haproxy) {
		if err := f.startHAProxy(ctx, threads); err != nil {
			return err
		}
	}
	if slices.Contains(f.wanted, relay) {
		if err := f.startRelay(ctx); err != nil {
			return err
		}
	}
	if slices.Contains(f.wanted, seqproxy) {
		if err := f.startSeqproxy(ctx, seqproxy, f.seqproxy); err != nil {
			return err
		}
	}
	if slices.Contains(f.wanted, before) {
		if err := f.startSeqproxy(ctx, before, f.before); err != nil {
			return err
		}
	}
	for _, t := range f.targets {
		c, err := dial(ctx, t.addr, benchAccount, 4<<10)
		if err == nil {
			t.plugin, t.version = c.plugin, c.version
			err = errors.Join(c.selectOne(), c.quit())
		}
		if err != nil {
			return fmt.Errorf("first login to %s: %w", t.name, errors.Join(err, t.ended()))
		}
	}
	return nil
}

// stop stops everything that start started. It may be called again.
func (f *fleet) stop() error {
	var errs []error
	for _, p := range slices.Backward(f.processes) {
		errs = append(errs, p.stop())
	}
	f.processes = nil
	if f.admin != nil {
		errs = append(errs, f.admin.Close())
		f.admin = nil
	}
	if f.server != nil {
		// Not the run's context: an interrupted run must also stop its server.
		ctx, cancel := context.WithTimeout(context.Background(), 2*stopTimeout)
		defer cancel()
		errs = append(errs, f.server.Stop(ctx))
		f.server = nil
	}
	return errors.Join(errs...)
}

// restart replaces all processes by fresh ones with the same data.
func (f *fleet) restart(ctx context.Context, threads int) error {
	if err := f.stop(); err != nil {
		return err
	}
	return f.start(ctx, threads)
}

func (f *fleet) startServer(ctx context.Context) error {
	var err error
	f.server, err = mysqld.Start(ctx, mysqld.Config{
		Binary:          f.binary,
		Dir:             filepath.Join(f.dir, "server"),
		SkipNameResolve: true,
		ExtraArgs:       serverArgs(f.binary.Flavour, f.binlog),
	})
	if err != nil {
		return err
	}
	cfg := driver.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "unix", f.server.Socket()
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	f.admin = sql.OpenDB(connector)
	if !f.loaded {
		if err := f.load(ctx); err != nil {
			return fmt.Errorf("create the tables: %w", err)
		}
		f.loaded = true
	}
	if f.binary.Flavour == mysqld.MySQL {
		if err := f.fillPasswordCache(ctx); err != nil {
			return fmt.Errorf("log in to the server: %w", err)
		}
	}
	server := f.server
	f.targets[direct] = &target{name: direct, addr: server.Addr(), pid: server.PID(), ended: func() error {
		if server.Running() {
			return nil
		}
		return server.Wait()
	}}
	return nil
}

// serverArgs restores the server's own defaults, which mysqld has made small, with room for the
// sessions. The binary log is on or off.
func serverArgs(flavour mysqld.Flavour, binlog bool) []string {
	args := []string{"--max-connections=4000", "--innodb-buffer-pool-size=128M"}
	if flavour == mysqld.MariaDB {
		args = append(args, "--innodb-log-file-size=96M")
	}
	if binlog {
		args = append(args, "--log-bin=binlog", "--server-id=1", "--sync-binlog=1", "--binlog-format=ROW")
	}
	return args
}

// fillPasswordCache completes one login. After that caching_sha2_password has a short exchange.
func (f *fleet) fillPasswordCache(ctx context.Context) error {
	db, err := openAccount(f.server.Addr())
	if err != nil {
		return err
	}
	return errors.Join(db.PingContext(ctx), db.Close())
}

// load creates the account and the tables of all workloads that the server supports.
func (f *fleet) load(ctx context.Context) error {
	quoted := "'" + benchAccount.password + "'"
	plugin := "VIA mysql_native_password USING PASSWORD(" + quoted + ")"
	if f.binary.Flavour == mysqld.MySQL {
		plugin = "WITH caching_sha2_password BY " + quoted
	}
	statements := []string{
		"CREATE DATABASE bench",
		"CREATE USER bench@'%' IDENTIFIED " + plugin,
		"GRANT ALL ON bench.* TO bench@'%'",
		"CREATE TABLE bench.point (id INT PRIMARY KEY, v VARCHAR(40) NOT NULL) ENGINE=InnoDB",
		pointInsert(),
		"CREATE TABLE bench.sequence (name varchar(50) NOT NULL, id bigint(20) unsigned NOT NULL DEFAULT '0', PRIMARY KEY (name)) ENGINE=InnoDB",
		"INSERT INTO bench.sequence VALUES ('photos', 0), ('idiom', 0)",
		"CREATE DATABASE " + beforeSchema,
		"GRANT ALL ON " + beforeSchema + ".* TO bench@'%'",
		"CREATE TABLE " + beforeSchema + ".sequence LIKE bench.sequence",
		fmt.Sprintf("INSERT INTO %s.sequence VALUES ('photos', %d)", beforeSchema, beforeFirst),
		"CREATE TABLE bench.photos (id BIGINT UNSIGNED PRIMARY KEY, title VARCHAR(100) NOT NULL) ENGINE=InnoDB",
		"CREATE TABLE bench.filled LIKE bench.photos",
	}
	if f.binary.Flavour == mysqld.MariaDB {
		statements = append(statements, "CREATE SEQUENCE bench.photos_seq CACHE 1000")
	}
	for _, statement := range statements {
		if _, err := f.admin.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.200s: %w", strings.ReplaceAll(statement, quoted, "..."), err)
		}
	}
	return nil
}

// pointInsert fills the table of the point selects.
func pointInsert() string {
	rows := make([]string, pointRows)
	for i := range rows {
		rows[i] = fmt.Sprintf("(%d,'%s%d')", i+1, pointPrefix, i+1)
	}
	return "INSERT INTO bench.point VALUES " + strings.Join(rows, ",")
}

func (f *fleet) startHAProxy(ctx context.Context, threads int) error {
	addr, err := child.FreeAddr()
	if err != nil {
		return err
	}
	path := filepath.Join(f.dir, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(haproxyConfig(addr, f.server.Addr(), threads)), 0o600); err != nil {
		return fmt.Errorf("configure haproxy: %w", err)
	}
	return f.startProxy(ctx, haproxy, addr, f.haproxy, "-db", "-f", path)
}

// haproxyConfig is HAProxy as a bare TCP relay.
func haproxyConfig(addr, backend string, threads int) string {
	nbthread := ""
	if threads > 0 {
		nbthread = fmt.Sprintf("  nbthread %d\n", threads)
	}
	return "global\n  maxconn 4000\n" + nbthread + fmt.Sprintf(`defaults
  mode tcp
  timeout connect 5s
  timeout client 10m
  timeout server 10m
listen mysql
  bind %s
  server mysql %s
`, addr, backend)
}

// startSeqproxy starts a build of seqproxy as the target of that name.
func (f *fleet) startSeqproxy(ctx context.Context, name, binary string) error {
	addr, err := child.FreeAddr()
	if err != nil {
		return err
	}
	path := filepath.Join(f.dir, name+".toml")
	schema, first := benchAccount.schema, 1
	if name == before {
		schema, first = beforeSchema, beforeFirst
	}
	if err := os.WriteFile(path, []byte(seqproxyConfig(addr, f.server.Addr(), schema)), 0o600); err != nil {
		return fmt.Errorf("configure seqproxy: %w", err)
	}
	if err := f.startProxy(ctx, name, addr, binary, "-config", path); err != nil {
		return err
	}
	return createSequences(ctx, name, addr, first)
}

// createSequences makes the ORDER sequence and one of each kind, starting with first. MariaDB
// cannot make these.
func createSequences(ctx context.Context, name, addr string, first int) error {
	db, err := openAccount(addr)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf("CREATE SEQUENCE IF NOT EXISTS ordered START WITH %d ORDER", first))
	if failed := createKinds(ctx, db, first); name != before { // which may be of before there were kinds
		err = errors.Join(err, failed)
	}
	return errors.Join(err, db.Close())
}

// openAccount opens the account's connections to an address.
func openAccount(addr string) (*sql.DB, error) {
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr = benchAccount.user, benchAccount.password, "tcp", addr
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// seqproxyConfig is a configuration with seqproxy's defaults, one shard, and the sequence table in
// schema on the same server. Applications do not count in the table. One table's keys are filled
// in.
func seqproxyConfig(addr, backend, schema string) string {
	return fmt.Sprintf(`listen = %[1]q
http.listen = "127.0.0.1:0"
admin.listen = ""
admin_users = [%[3]q]

[[user]]
name = %[3]q
password = %[4]q

[sequence]
database = %[6]q
direct_writers = false

[[sequence.server]]
address = %[2]q
user = %[3]q
password = %[4]q

[[shard]]
name = "main"

[[shard.node]]
address = %[2]q

[[bind]]
column = "%[5]s.filled.id"
sequence = "photos"
`, addr, backend, benchAccount.user, benchAccount.password, benchAccount.schema, schema)
}

func (f *fleet) startProxy(ctx context.Context, name, addr, path string, args ...string) error {
	p, err := startProcess(name, f.dir, path, args...)
	if err != nil {
		return err
	}
	f.processes = append(f.processes, p)
	if err := p.awaitPort(ctx, addr, startTimeout); err != nil {
		return err
	}
	f.targets[name] = &target{name: name, addr: addr, pid: p.PID(), ended: p.ended}
	return nil
}

// findHAProxy returns HAProxy's path. It is usually in a directory that only root has in PATH.
func findHAProxy() (string, error) {
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy", "/usr/local/sbin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("HAProxy is not installed, so there is nothing to compare with; `make deps-bench` installs it")
}

// haproxyVersion returns the first line of haproxy -v.
func haproxyVersion(ctx context.Context, path string) string {
	out, err := exec.CommandContext(ctx, path, "-v").Output()
	if err != nil {
		return "HAProxy of unknown version"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	first, _, _ = strings.Cut(first, " - ")
	return first
}

// buildSeqproxy builds the proxy of this repository into dir.
func buildSeqproxy(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "seqproxy")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", path, "seqproxy/cmd/seqproxy")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build seqproxy (choose another binary with -seqproxy, or leave it out with -targets direct,haproxy): %w\n%s", err, out)
	}
	return path, nil
}
