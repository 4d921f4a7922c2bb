package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/conf"
	"seqproxy/test/mysqltest"
)

// subject is a proxy in this process whose configuration changes.
type subject struct {
	*running
	t    *testing.T
	file string
	log  string
}

// startSubject runs a proxy with a configuration until the test ends.
func startSubject(t *testing.T, text string) *subject {
	t.Helper()
	s := &subject{t: t, log: filepath.Join(t.TempDir(), "log")}
	s.file = write(t, "seqproxy.toml", "")
	s.write(text)
	load := func() (*conf.Config, error) {
		cfg, err := conf.Load(s.file)
		if err == nil {
			cfg.Log.Output, cfg.Log.Format = s.log, "json"
		}
		return cfg, err
	}
	cfg, err := load()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	out, err := openLog(cfg.Log)
	if err != nil {
		t.Fatal(err)
	}
	if s.running, err = start(context.Background(), cfg, load, out); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.abandon(context.Background()), out.Close()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the log:\n%s", s.logged())
		}
	})
	return s
}

func (s *subject) write(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// reload makes the proxy read another configuration.
func (s *subject) reload(text string) []string {
	s.t.Helper()
	s.write(text)
	changed, err := s.Reload(context.Background(), false)
	if err != nil {
		s.t.Fatalf("%v in\n%s", err, text)
	}
	return changed
}

func (s *subject) logged() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *subject) address() string { return s.server.Addr().String() }

// connect logs in at the proxy. change may be nil. The connection ends with the test.
func (s *subject) connect(t *testing.T, user, password string, change func(*mysql.Config)) (*sql.Conn, error) {
	t.Helper()
	return connectTo(t, s.address(), user, password, change)
}

func connectTo(t *testing.T, address, user, password string, change func(*mysql.Config)) (*sql.Conn, error) {
	t.Helper()
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
	t.Cleanup(func() { _ = pool.Close() })
	conn, err := pool.Conn(context.Background())
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() }) // the proxy may have ended it
	}
	return conn, err
}

func (s *subject) mustConnect(t *testing.T, user, password string) *sql.Conn {
	t.Helper()
	c, err := s.connect(t, user, password, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// firstValue returns the first value of the first row, or the error.
func firstValue(c *sql.Conn, query string) string {
	var value sql.NullString
	if err := c.QueryRowContext(context.Background(), query).Scan(&value); err != nil {
		return err.Error()
	}
	return value.String
}

// inFront configures a proxy in front of a server whose root has no password. first precedes all
// tables.
func inFront(s *mysqltest.Server, first, rest string) string {
	return fmt.Sprintf(`listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
%s
[[sequence.server]]
address = %q
user = "root"
%s
[[shard]]
name = "s"
user = "root"
[[shard.node]]
address = %[2]q
`, first, s.Addr(), rest)
}

func TestAReloadIsAllOrNothing(t *testing.T) {
	server := mysqltest.Shared(t)
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE IF EXISTS seqproxy") })
	const alice, bob = "\n[[user]]\nname = 'alice'\npassword = 'a'\n", "\n[[user]]\nname = 'bob'\npassword = 'b'\n"
	s := startSubject(t, inFront(server, "", alice))
	running := s.mustConnect(t, "alice", "a")

	refused := func(text string, want ...string) {
		t.Helper()
		before := s.Config()
		s.write(text)
		changed, err := s.Reload(context.Background(), false)
		if err == nil || len(changed) > 0 {
			t.Fatalf("got %q, %v, want an error", changed, err)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("got %q, want %q in it", err, w)
			}
		}
		if at, last := s.LastReload(); last == nil || at.IsZero() || last.Error() != err.Error() {
			t.Errorf("kept %v of %v, want %v", last, at, err)
		}
		if s.Config() != before {
			t.Error("another configuration is in force")
		}
		if _, err := s.connect(t, "bob", "b", nil); err == nil || !strings.Contains(err.Error(), "1045") {
			t.Errorf("a user of the refused configuration: got %v, want 1045", err)
		}
		s.mustConnect(t, "alice", "a")
		if !strings.Contains(s.logged(), `"event":"not reloaded"`) {
			t.Error("the log has no line about the reload")
		}
	}
	good := inFront(server, "max_connections = 77", bob)
	// The problems are those that check reports.
	wrong := strings.Replace(good, "= 77", "= 0", 1) + "colour = 'red'\n"
	refused(wrong, `max_connections: must be >= 1, is 0`, "unknown key")
	_, loadErr := conf.Load(s.file)
	if _, last := s.LastReload(); last.Error() != loadErr.Error() {
		t.Errorf("got %q, want what check says: %q", last, loadErr)
	}
	refused(strings.Replace(good, "user = \"root\"\n[[shard.node]]", "user = \"root\"\ntls_ca_file = \"/nonexistent\"\n[[shard.node]]", 1), "/nonexistent")
	refused(good+"[[shard]]\nname = 't'\nuser = 'root'\n[[shard.node]]\naddress = '127.0.0.1:1'\n[tls]\n", "default_shard")
	refused("default_shard = 's'\n"+good+"[[shard]]\nname = 't'\nuser = 'root'\n[[shard.node]]\naddress = '127.0.0.1:1'\n", "shard t: node 127.0.0.1:1 cannot be used")
	if err := os.Remove(s.file); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reload(context.Background(), false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: got %v", err)
	}

	// A key that needs a restart is reported. The others take effect.
	listens := s.address()
	changed := s.reload(strings.Replace(good, `listen = "127.0.0.1:0"`, `listen = "127.0.0.1:9"`, 1))
	want := []string{"max_connections", `user["alice"]`, `user["bob"]`, "listen (takes a restart)"}
	if !slices.Equal(changed, want) {
		t.Errorf("changed: got %q, want %q", changed, want)
	}
	if at, err := s.LastReload(); err != nil || time.Since(at) > patience {
		t.Errorf("the last reload: got %v at %v", err, at)
	}
	if got := s.Config(); got.Listen == "127.0.0.1:9" || got.MaxConnections != 77 || s.address() != listens {
		t.Errorf("in force: got listen %s and max_connections %d", got.Listen, got.MaxConnections)
	}
	diff, err := s.ConfigDiff()
	if err != nil || len(diff) != 1 || diff[0].Key != "listen" || diff[0].When != conf.WhenRestart {
		t.Errorf("what differs still: got %v, %v, want listen", diff, err)
	}
	s.mustConnect(t, "bob", "b")
	if _, err := s.connect(t, "alice", "a", nil); err == nil || !strings.Contains(err.Error(), "1045") {
		t.Errorf("a removed user: got %v, want 1045", err)
	}
	if got := firstValue(running, "SELECT 7"); got != "7" {
		t.Errorf("the session of a removed user: got %s, want 7", got)
	}
	if strings.Contains(s.logged(), "'a'") {
		t.Error("a password is in the log")
	}
}

// TestAReloadNeedsNoFilesThatNoKeyNames deletes certificates together with the keys that named
// them.
func TestAReloadNeedsNoFilesThatNoKeyNames(t *testing.T) {
	server := mysqltest.Shared(t)
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE IF EXISTS seqproxy") })
	ca := mysqltest.NewCA(t)
	before, after, forServer := ca.Server(t, "127.0.0.1"), ca.Server(t, "127.0.0.1"), ca.Client(t, "one")
	config := func(first, shard string, c mysqltest.Certificate) string {
		return fmt.Sprintf("default_shard = 's'\n%s\n[[user]]\nname = 'alice'\npassword = 'a'\n[tls]\ncert_file = %q\nkey_file = %q\n", inFront(server, first, shard), c.CertFile, c.KeyFile)
	}
	second := fmt.Sprintf("[[shard]]\nname = 't'\nuser = 'root'\ntls_cert_file = %q\ntls_key_file = %q\n[[shard.node]]\naddress = %q\n", forServer.CertFile, forServer.KeyFile, server.Addr())
	s := startSubject(t, config("", second, before))
	for _, file := range []string{before.CertFile, before.KeyFile, forServer.CertFile, forServer.KeyFile} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	changed := s.reload(config("max_connections = 77", "", after))
	if want := []string{"max_connections", "tls.cert_file", "tls.key_file", `shard["t"]`}; !slices.Equal(changed, want) {
		t.Errorf("changed: got %q, want %q", changed, want)
	}

	// A file that it names is read again, although its key is the same.
	next := ca.Server(t, "127.0.0.1")
	overwrite(t, next.CertFile, after.CertFile)
	overwrite(t, next.KeyFile, after.KeyFile)
	changed = s.reload(config("max_connections = 78", "", after))
	if want := []string{"max_connections", "files of tls"}; !slices.Equal(changed, want) {
		t.Errorf("changed: got %q, want %q", changed, want)
	}
}

// TestReloadsUnderLoad reloads again and again while clients work. Both configurations serve them,
// so they meet no error.
func TestReloadsUnderLoad(t *testing.T) {
	server := mysqltest.Shared(t)
	schema, other := server.Schema(t), server.Schema(t)
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE IF EXISTS seqproxy", "DROP USER torture@'%'") })
	server.Exec(t, "CREATE USER torture@'%' IDENTIFIED BY 'two'", "GRANT ALL ON *.* TO torture@'%'")
	for _, s := range []string{schema, other} {
		server.Exec(t, "CREATE TABLE "+s+".photos (id BIGINT UNSIGNED PRIMARY KEY, n INT)")
	}
	version := func(first, user, shard string) string {
		return fmt.Sprintf(`listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
unknown_sequence = "create"
default_shard = "s"
%s
[[user]]
name = "torture"
%s
[[sequence.server]]
address = %q
user = "root"
%s
`, first, user, server.Addr(), shard)
	}
	one := version("max_logins = 5\nlast_insert_id = 'auto'\nsequence.cache = 10", "password = 'two'", fmt.Sprintf(`
[[shard]]
name = "s"
schemas = [%q]
[[shard.node]]
address = %q
[[shard]]
name = "t"
user = "torture"
password = "two"
schemas = [%q]
[[shard.node]]
address = %[2]q
`, schema, server.Addr(), other))
	two := version("max_logins = 7\nlast_insert_id = 'exact'\nsequence.cache = 1000\nfailed_logins = 3", "password = 'three'\nold_password = 'two'", fmt.Sprintf(`
[[bind]]
column = "photos.id"
sequence = "photos"
[[shard]]
name = "s"
schemas = [%q]
[[shard.node]]
address = "unix:%s"
[[shard]]
name = "u"
schemas = [%q]
user = "root"
[[shard.node]]
address = %q
`, schema, server.Socket(), other, server.Addr()))
	s := startSubject(t, one)

	ctx, cancel := context.WithCancel(context.Background())
	type outcome struct {
		what string
		err  error
	}
	outcomes := make(chan outcome)
	clients := 0
	client := func(what string, work func(pool *sql.DB, i int) error) {
		clients++
		c := mysql.NewConfig()
		c.User, c.Passwd, c.Net, c.Addr, c.DBName, c.Timeout, c.ReadTimeout = "torture", "two", "tcp", s.address(), schema, patience, patience
		c.InterpolateParams = what != "prepared statements"
		connector, err := mysql.NewConnector(c)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			pool := sql.OpenDB(connector)
			defer pool.Close()
			if what != "logins" {
				pool.SetMaxOpenConns(1)
			} else {
				pool.SetMaxIdleConns(-1)
			}
			var err error
			for i := 0; err == nil && ctx.Err() == nil; i++ {
				err = work(pool, i)
			}
			outcomes <- outcome{what, err}
		}()
	}
	key := func(pool *sql.DB, query string, args ...any) error {
		var n uint64
		return pool.QueryRow(query, args...).Scan(&n)
	}
	client("keys", func(pool *sql.DB, _ int) error { return key(pool, "SELECT NEXTVAL('keys')") })
	client("logins", func(pool *sql.DB, _ int) error { return key(pool, "SELECT 1") })
	client("prepared statements", func(pool *sql.DB, i int) error { return key(pool, "SELECT ? + 1", i) })
	client("inserts", func(pool *sql.DB, i int) error {
		_, err := pool.Exec("INSERT INTO photos (id, n) VALUES (NEXTVAL('photos'), ?)", i)
		return err
	})
	client("transactions", func(pool *sql.DB, i int) error {
		tx, err := pool.Begin()
		if err != nil {
			return err
		}
		result, err := tx.Exec("INSERT INTO photos (id, n) VALUES (NEXTVAL('photos'), ?)", i)
		if err != nil {
			return err
		}
		id, err := result.LastInsertId()
		if err != nil {
			return err
		}
		var last int64
		if err := tx.QueryRow("SELECT LAST_INSERT_ID()").Scan(&last); err != nil || last != id {
			return fmt.Errorf("LAST_INSERT_ID() is %d after %d: %w", last, id, err)
		}
		return tx.Commit()
	})
	client("two shards", func(pool *sql.DB, i int) error {
		for _, use := range []string{other, schema} {
			if _, err := pool.Exec("USE " + use); err != nil {
				return err
			}
			var at string
			if err := pool.QueryRow("SELECT DATABASE()").Scan(&at); err != nil || at != use {
				return fmt.Errorf("in %s, want %s: %w", at, use, err)
			}
		}
		return nil
	})
	client("user variables", func(pool *sql.DB, i int) error {
		if _, err := pool.Exec(fmt.Sprintf("SET @n = %d", i)); err != nil {
			return err
		}
		var n int
		if err := pool.QueryRow("SELECT @n").Scan(&n); err != nil || n != i {
			return fmt.Errorf("@n is %d, want %d: %w", n, i, err)
		}
		return nil
	})

	reloads := make(chan error, 2)
	const each = 100
	for range 2 { // two independent clients
		go func() {
			for range each {
				if _, err := s.Reload(context.Background(), false); err != nil {
					reloads <- err
					return
				}
			}
			reloads <- nil
		}()
	}
	versions := make(chan struct{})
	stop := make(chan struct{})
	go func() { // the file is replaced as a whole, as deployments do
		defer close(versions)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			next := filepath.Join(filepath.Dir(s.file), "next")
			if err := os.WriteFile(next, []byte([]string{one, two}[i%2]), 0o600); err != nil {
				t.Error(err)
			}
			if err := os.Rename(next, s.file); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 2 {
		if err := <-reloads; err != nil {
			t.Errorf("a reload: %v", err)
		}
	}
	close(stop)
	<-versions
	cancel()
	for range clients {
		if o := <-outcomes; o.err != nil {
			t.Errorf("%s: %v", o.what, o.err)
		}
	}
	if got := strings.Count(s.logged(), `"event":"reloaded"`); got == 0 {
		t.Error("nothing was reloaded")
	}
	for _, wrong := range []string{`"event":"session not moved"`, `"level":"error"`} {
		if strings.Contains(s.logged(), wrong) {
			t.Errorf("the log has %s", wrong)
		}
	}
}
