package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/statement/ddl"
	"seqproxy/test/mysqltest"
)

// controlled is a proxy with an admin, another user of the same server, and a log file in JSON.
type controlled struct {
	*process
	server         *mysqltest.Server
	data, admin    string // addresses
	log            string // log file
	root, app, adm *sql.DB
}

func startControlled(t *testing.T, more string) *controlled {
	t.Helper()
	c := &controlled{server: mysqltest.Start(t), log: filepath.Join(t.TempDir(), "log")}
	c.server.Exec(t, "CREATE USER app@'%'", "GRANT ALL ON *.* TO app@'%'", "CREATE DATABASE d", "CREATE TABLE d.t (a BIGINT)")
	file := write(t, "seqproxy.toml", apart+`
admin_users = ["root"]
`+more+`
[[user]]
name = "root"
[[user]]
name = "app"
`+sequencesAt(c.server.Addr())+shardAt("photos", c.server.Addr()))
	c.process = begin(t, "-config", file)
	c.data, c.admin = c.address(), c.adminAddress()
	for to, dsn := range map[**sql.DB]string{
		&c.root: "root@tcp(" + c.data + ")/d", &c.app: "app@tcp(" + c.data + ")/d", &c.adm: "root@tcp(" + c.admin + ")/",
	} {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		*to = db
	}
	return c
}

// fails checks that a statement fails with this error.
func fails(t *testing.T, db *sql.DB, statement string, code uint16, text string) {
	t.Helper()
	_, err := db.Exec(statement)
	var answer *mysql.MySQLError
	if !errors.As(err, &answer) || answer.Number != code || !strings.Contains(answer.Message, text) {
		t.Errorf("%s: got %v, want error %d with %q", statement, err, code, text)
	}
}

// both runs a statement as text and prepared.
func both(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
	prepared, err := db.Prepare(statement)
	if err == nil {
		_, err = prepared.Exec()
		_ = prepared.Close()
	}
	if err != nil {
		t.Errorf("%s, prepared: %v", statement, err)
	}
}

// receive waits for a value.
func receive[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("%s did not come about within %v", what, patience)
	}
	return v
}

func TestAShardIsPausedAndResumedBySQL(t *testing.T) {
	c := startControlled(t, "pause_timeout = \"1m\"")
	for name, db := range map[string]*sql.DB{"where clients connect": c.root, "at the admin address": c.adm} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.app.Exec("INSERT INTO t VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			both(t, db, "SEQPROXY PAUSE")
			both(t, db, "SEQPROXY PAUSE SHARD photos")
			inserted := make(chan error, 1)
			go func() {
				_, err := c.app.Exec("INSERT INTO t VALUES (2)")
				inserted <- err
			}()
			select {
			case err := <-inserted:
				t.Errorf("a statement for a paused shard: got %v at once", err)
			case <-time.After(200 * time.Millisecond):
			}
			both(t, db, "SEQPROXY RESUME SHARD photos")
			if err := receive(t, "the statement", inserted); err != nil {
				t.Errorf("the statement: %v", err)
			}
			both(t, db, "SEQPROXY RESUME")
			fails(t, db, "SEQPROXY PAUSE SHARD videos", 1210, "there is no shard 'videos'")
			fails(t, db, "SEQPROXY RESUME SHARD videos", 1210, "there is no shard 'videos'")
			fails(t, db, "SEQPROXY PAUSE photos", 1064, "SHARD name")
		})
	}
	// Pause does not wait for the admin's own transaction.
	tx, err := c.root.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"INSERT INTO t VALUES (3)", "SEQPROXY PAUSE", "INSERT INTO t VALUES (4)", "SEQPROXY RESUME"} {
		if _, err := tx.Exec(statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	for _, statement := range []string{
		"SEQPROXY PAUSE", "SEQPROXY RESUME SHARD photos", "SEQPROXY RELOAD", "SEQPROXY RELOAD TLS", "SEQPROXY FLUSH LOGS",
		"SEQPROXY SHUTDOWN", "SEQPROXY SHUTDOWN IMMEDIATE", "SEQPROXY SHUTDOWN WAIT_FOR_CLIENTS",
	} {
		fails(t, c.app, statement, 1227, "admin_users")
		if prepared, err := c.app.Prepare(statement); err == nil {
			if _, err = prepared.Exec(); err == nil {
				t.Errorf("%s, prepared: no error", statement)
			}
			_ = prepared.Close()
		}
	}
	c.signal(syscall.SIGTERM)
	c.end(0)
}

func TestPauseTellsOfTheSessionsThatAreStillBusy(t *testing.T) {
	c := startControlled(t, "")
	tx, err := c.app.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	output, err := client(t, c.admin, "root", "", "-e", "SEQPROXY PAUSE SHARD photos")
	if want := "shard photos is paused, but 1 sessions still have a statement or a transaction there"; err == nil || !strings.Contains(output, want) {
		t.Errorf("PAUSE with a transaction open: got %q, %v, want %q", output, err, want)
	}
	paused := make(chan error, 1)
	go func() {
		_, err := c.adm.Exec("SEQPROXY PAUSE")
		paused <- err
	}()
	if err := tx.Commit(); err != nil {
		t.Errorf("COMMIT: %v", err)
	}
	if err := receive(t, "PAUSE", paused); err != nil {
		t.Errorf("PAUSE: %v", err)
	}
	c.signal(syscall.SIGTERM)
	c.end(0)
}

func TestShutdownBySQLAnswersFirst(t *testing.T) {
	for how, statement := range map[string]string{"orderly": "SEQPROXY SHUTDOWN", "immediate": "SEQPROXY SHUTDOWN IMMEDIATE"} {
		for _, prepared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, prepared: %v", how, prepared), func(t *testing.T) {
				c := startControlled(t, "drain.timeout = \"1h\"")
				tx, err := c.app.Begin()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec("INSERT INTO t VALUES (1)"); err != nil {
					t.Fatal(err)
				}
				if prepared {
					stmt, err := c.root.Prepare(statement)
					if err == nil {
						_, err = stmt.Exec()
					}
					if err != nil {
						t.Errorf("%s, prepared: %v", statement, err)
					}
				} else if _, err := c.root.Exec(statement); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
				c.await("stopping")
				_, err = tx.Exec("INSERT INTO t VALUES (2)")
				if how == "orderly" && err != nil || how == "immediate" && err == nil {
					t.Errorf("in a transaction after the shutdown was asked for: got %v", err)
				}
				if err := tx.Commit(); how == "orderly" && err != nil {
					t.Errorf("COMMIT: %v", err)
				}
				c.end(0)
			})
		}
	}
}

// TestAShutdownWaitsForClientsUntilItIsToldToHurry also checks readiness, which ends first.
func TestAShutdownWaitsForClientsUntilItIsToldToHurry(t *testing.T) {
	for name, hurry := range map[string]func(c *controlled) error{
		"the client leaves":  nil,
		"a signal":           func(c *controlled) error { c.signal(syscall.SIGTERM); return nil },
		"SEQPROXY SHUTDOWN":  func(c *controlled) error { _, err := c.adm.Exec("SEQPROXY SHUTDOWN"); return err },
		"SHUTDOWN IMMEDIATE": func(c *controlled) error { _, err := c.adm.Exec("SEQPROXY SHUTDOWN IMMEDIATE"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			c := startControlled(t, "")
			web := c.httpAddress()
			conn, err := c.app.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // the proxy may have closed it
			if _, err := conn.ExecContext(context.Background(), "DO 1"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.adm.Exec("SEQPROXY SHUTDOWN WAIT_FOR_CLIENTS"); err != nil {
				t.Fatal(err)
			}
			c.await("waiting for all clients to leave")
			awaitReady(t, web, "", http.StatusServiceUnavailable)
			fresh, err := sql.Open("mysql", "app@tcp("+c.data+")/d")
			if err != nil {
				t.Fatal(err)
			}
			defer fresh.Close() //nolint:errcheck // it has no connection
			if err := fresh.Ping(); err == nil {
				t.Error("a client can log in when none is accepted any more")
			}
			if _, err := conn.ExecContext(context.Background(), "INSERT INTO t VALUES (1)"); err != nil {
				t.Errorf("a client that stays: %v", err)
			}
			if _, err := c.adm.Exec("SHOW SEQUENCES"); err != nil {
				t.Errorf("the admin address while it waits: %v", err)
			}
			if hurry == nil {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
				if err := c.app.Close(); err != nil {
					t.Error(err)
				}
			} else if err := hurry(c); err != nil {
				t.Error(err)
			}
			c.end(0)
		})
	}
}

func TestDuringGraceItIsNotReadyAndServes(t *testing.T) {
	c := startControlled(t, "drain.grace = \"1h\"")
	web := c.httpAddress()
	awaitReady(t, web, "", http.StatusOK)
	c.signal(syscall.SIGTERM)
	c.await("not ready any more")
	if answer := awaitReady(t, web, "", http.StatusServiceUnavailable); answer.Reasons[0] != "the proxy is stopping" {
		t.Errorf("/readyz: got %+v", answer)
	}
	if got := query(t, c.data, "app", "", "SELECT 7"); got != "7" {
		t.Errorf("a new client during grace: got %q, want 7", got)
	}
	time.Sleep(2 * sameWish)
	c.signal(syscall.SIGTERM) // hurries
	c.end(1)
}

func TestLogsAreFlushedAndCertificatesReloadedBySQL(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "log")
	ca := mysqltest.NewCA(t)
	used, next := ca.Server(t, "127.0.0.1"), ca.Server(t, "127.0.0.1")
	s := mysqltest.Start(t)
	config := write(t, "seqproxy.toml", fmt.Sprintf(`
listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
admin_users = ["root"]
log.output = %q
log.format = "json"
[[user]]
name = "root"
[tls]
cert_file = %q
key_file = %q
`, file, used.CertFile, used.KeyFile)+sequencesAt(s.Addr()))
	p := begin(t, "-config", config)
	read := func(name string) string {
		text, _ := os.ReadFile(name)
		return string(text)
	}
	var address string
	for end := time.Now().Add(patience); address == ""; time.Sleep(5 * time.Millisecond) {
		if m := regexp.MustCompile(`"event":"listening".*?"address":"([^"]*)"`).FindStringSubmatch(read(file)); m != nil {
			address = m[1]
		}
		if time.Now().After(end) {
			t.Fatalf("the log has no address: %s", read(file))
		}
	}
	query(t, address, "root", "", "SEQPROXY RELOAD TLS")
	replace(t, next.KeyFile, used.KeyFile)
	if output, err := client(t, address, "root", "", "-e", "SEQPROXY RELOAD TLS"); err == nil || !strings.Contains(output, "seqproxy: reload: ") {
		t.Errorf("a reload of what cannot be used: got %q, %v, want its error", output, err)
	}
	replace(t, next.CertFile, used.CertFile)
	if output, err := client(t, address, "root", "", "-vvv", "-e", "SEQPROXY RELOAD TLS"); err != nil || !strings.Contains(output, "OK") {
		t.Errorf("a reload: got %q, %v", output, err)
	}

	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	query(t, address, "root", "", "SEQPROXY FLUSH LOGS")
	query(t, address, "root", "", "CREATE SEQUENCE photos")
	if now := read(file); !strings.Contains(now, "CREATE SEQUENCE `photos`") {
		t.Errorf("the new log file: got %q, want what was done since", now)
	}
	before := read(file + ".1")
	for _, want := range []string{
		`"statement":"SEQPROXY RELOAD TLS","outcome":"done"`,
		`"statement":"SEQPROXY RELOAD TLS","outcome":"failed","code":1105`,
	} {
		if !strings.Contains(before, want) {
			t.Errorf("the log before: got\n%s\nwant %s", before, want)
		}
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}

// TestEveryChangeIsAudited makes changes of each kind, and attempts that fail.
func TestEveryChangeIsAudited(t *testing.T) {
	c := startControlled(t, "")
	const secret = "hunter2"
	for _, statement := range []string{
		"CREATE SEQUENCE photos CACHE 7 COMMENT '" + secret + "'", "ALTER SEQUENCE photos RESTART 5000 FORCE", "ALTER SEQUENCE IF EXISTS photos MAXVALUE 9000 NO CYCLE",
		"SELECT SETVAL(photos, 6000)", "FLUSH SEQUENCES photos", "SEQPROXY PAUSE SHARD photos", "SEQPROXY RESUME", "DROP SEQUENCE photos",
	} {
		if _, err := c.root.Exec(statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	fails(t, c.app, "DROP SEQUENCE photos", 1227, "admin_users")
	fails(t, c.adm, "ALTER SEQUENCE videos CACHE 5 COMMENT '"+secret+"'", 4091, "videos")
	if _, err := c.adm.Exec("SHOW SEQUENCES"); err != nil {
		t.Error(err)
	}
	c.signal(syscall.SIGTERM)
	c.end(0)
	log := c.stderr()
	for _, want := range []string{
		`"client": "127.0.0.1:`,
		"\"user\": \"root\", \"statement\": \"CREATE SEQUENCE `photos` CACHE 7 COMMENT ?\", \"outcome\": \"done\"",
		"\"statement\": \"ALTER SEQUENCE `photos` RESTART 5000 FORCE\", \"outcome\": \"done\"",
		"\"statement\": \"ALTER SEQUENCE IF EXISTS `photos` MAXVALUE 9000 NO CYCLE\", \"outcome\": \"done\"",
		"\"statement\": \"SETVAL(`photos`, 6000)\", \"outcome\": \"done\"",
		"\"statement\": \"FLUSH SEQUENCES `photos`\", \"outcome\": \"done\"",
		`"statement": "SEQPROXY PAUSE SHARD photos", "outcome": "done"`,
		`"statement": "SEQPROXY RESUME", "outcome": "done"`,
		"\"statement\": \"DROP SEQUENCE `photos`\", \"outcome\": \"done\"",
		"\"statement\": \"DROP SEQUENCE `photos`\", \"outcome\": \"failed\", \"code\": 1227",
		"\"statement\": \"ALTER SEQUENCE `videos` CACHE 5 COMMENT ?\", ",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if n := strings.Count(log, "audit"); n != 10 {
		t.Errorf("got %d audit lines, want 10", n)
	}
	if strings.Contains(log, secret) {
		t.Error("the log has what stood in a string")
	}
	if t.Failed() {
		t.Log(log)
	}
}

// TestEveryStatementToTheProxyThatChangesSomethingIsAudited runs each of them once, with success or
// an error.
func TestEveryStatementToTheProxyThatChangesSomethingIsAudited(t *testing.T) {
	c := startControlled(t, "")
	var all []string
	for _, p := range ddl.ProxyStatements() {
		if p.Show || p.Verb == ddl.ShutdownProxy {
			continue
		}
		words, _, _ := strings.Cut(p.Text, " [")
		// nothing listens there
		all = append(all, strings.ReplaceAll(words, "host:port", "127.0.0.1:1"))
	}
	all = append(all, "SEQPROXY SHUTDOWN") // it ends the session
	for _, sql := range all {
		_, err := c.adm.Exec(sql)
		var answer *mysql.MySQLError
		switch {
		case errors.As(err, &answer) && (answer.Number == 1064 || answer.Number == 1235):
			t.Errorf("%s is not understood: %v", sql, err)
		case err != nil && answer == nil:
			t.Errorf("%s: %v", sql, err)
		}
	}
	c.end(0)
	log := c.stderr()
	for _, sql := range all {
		if n := strings.Count(log, `"statement": "`+strings.ReplaceAll(sql, "'", "")+`", `); n != 1 {
			t.Errorf("%s has %d audit lines, want one", sql, n)
		}
	}
	if n := strings.Count(log, "audit"); n != len(all) {
		t.Errorf("got %d audit lines for %d statements", n, len(all))
	}
	if t.Failed() {
		t.Log(log)
	}
}
