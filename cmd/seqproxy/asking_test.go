package main

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/statement/ddl"
	"seqproxy/test/mysqltest"
)

// asked is a proxy that answers about itself: shard s works, and shard gone does not answer.
type asked struct {
	*process
	file, address, admin string
	server               *mysqltest.Server
}

const askedSecret = "hush, hush"

func startAsked(t *testing.T) *asked {
	t.Helper()
	s := mysqltest.Start(t)
	s.Exec(t, "CREATE DATABASE album0", "CREATE USER app@'%' IDENTIFIED BY '"+askedSecret+"'", "GRANT ALL ON *.* TO app@'%'")
	a := &asked{server: s, file: write(t, "seqproxy.toml", fmt.Sprintf(`
listen = "127.0.0.1:0"
admin.listen = "127.0.0.1:0"
http.listen = ""
admin_users = ["dba"]
monitor_users = ["watch"]
default_shard = "main"
connect_timeout = "2s"
[[user]]
name = "dba"
password = "dba's"
[[user]]
name = "watch"
sequences = []
password = "w"
[[user]]
name = "app"
password = %[2]q
schema = "album0"
max_connections = 7
sequences = ["photos", "video*"]
[[sequence.server]]
address = %[1]q
user = "app"
password = %[2]q
[[shard]]
name = "main"
schemas = ["album0"]
[[shard.node]]
address = %[1]q
[[shard]]
name = "gone"
schemas = ["album1", "album2"]
user = "app"
password = %[2]q
[[shard.node]]
address = "127.0.0.1:1"
`, s.Addr(), askedSecret))}
	a.process = begin(t, "-config", a.file)
	a.address, a.admin = a.process.address(), a.process.adminAddress()
	return a
}

// connect opens one connection of a user.
func (a *asked) connect(address, user, password string, change func(*mysql.Config)) *sql.Conn {
	a.t.Helper()
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.Timeout, cfg.ReadTimeout = user, password, "tcp", address, patience, patience
	if change != nil {
		change(cfg)
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		a.t.Fatal(err)
	}
	pool := sql.OpenDB(connector)
	a.t.Cleanup(func() { _ = pool.Close() })
	c, err := pool.Conn(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = c.Close() })
	return c
}

// answer is a result: its columns with their types, and rows by column, NULL as "NULL".
type answer struct {
	types []string
	rows  []map[string]string
}

// inquire runs a query, as text or prepared.
func inquire(t *testing.T, c *sql.Conn, prepared bool, query string, args ...any) (a answer) {
	t.Helper()
	var rows *sql.Rows
	var err error
	if prepared {
		var s *sql.Stmt
		if s, err = c.PrepareContext(t.Context(), query); err != nil {
			t.Fatalf("prepare %s: %v", query, err)
		}
		defer s.Close()
		rows, err = s.Query(args...)
	} else {
		rows, err = c.QueryContext(t.Context(), query, args...)
	}
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range types {
		a.types = append(a.types, typ.Name()+" "+typ.DatabaseTypeName())
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(types)), make([]any, len(types))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := make(map[string]string)
		for i, v := range values {
			if row[types[i].Name()] = v.String; !v.Valid {
				row[types[i].Name()] = "NULL"
			}
		}
		a.rows = append(a.rows, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return a
}

// find returns the single row with a value in a column.
func (a answer) find(t *testing.T, column, value string) map[string]string {
	t.Helper()
	var found map[string]string
	for _, row := range a.rows {
		if row[column] == value {
			if found != nil {
				t.Errorf("two rows have %s = %s", column, value)
			}
			found = row
		}
	}
	if found == nil {
		t.Errorf("no row of %d has %s = %s", len(a.rows), column, value)
	}
	return found
}

// want compares some columns of a row.
func want(t *testing.T, what string, row map[string]string, wanted map[string]string) {
	t.Helper()
	for column, value := range wanted {
		if got, there := row[column]; got != value || !there {
			t.Errorf("%s: %s: got %q, want %q", what, column, got, value)
		}
	}
}

// shows returns all words of SHOW SEQPROXY.
func shows() (all []string) {
	for _, p := range ddl.ProxyStatements() {
		if p.Show {
			words, _, _ := strings.Cut(p.Text, " [")
			all = append(all, words)
		}
	}
	return all
}

func TestTheProxyIsAskedByEveryClient(t *testing.T) {
	a := startAsked(t)
	app := a.connect(a.address, "app", askedSecret, func(c *mysql.Config) { c.DBName = "album0" })
	if _, err := app.ExecContext(t.Context(), "CREATE TEMPORARY TABLE kept (a INT)"); err != nil {
		t.Fatal(err)
	}

	// Everything is the same as text and prepared, and at both addresses, except for values that
	// change by themselves.
	text, prepared := a.connect(a.admin, "watch", "w", nil), a.connect(a.address, "watch", "w", func(c *mysql.Config) { c.InterpolateParams = true })
	for _, sql := range shows() {
		asText, asPrepared := inquire(t, text, false, sql), inquire(t, prepared, true, sql)
		if !slices.Equal(asText.types, asPrepared.types) {
			t.Errorf("%s: types: as text %q, prepared %q", sql, asText.types, asPrepared.types)
		}
		if len(asText.rows) == 0 && sql != "SHOW SEQPROXY CONFIG DIFF" || len(asText.rows) != len(asPrepared.rows) && sql != "SHOW SEQPROXY STATUS" {
			t.Errorf("%s: got %d rows as text, %d prepared", sql, len(asText.rows), len(asPrepared.rows))
		}
		for _, result := range []answer{asText, asPrepared} {
			if all := fmt.Sprint(result); strings.Contains(all, askedSecret) || strings.Contains(all, "dba's") {
				t.Errorf("%s shows a password", sql)
			}
		}
	}
	if got := inquire(t, prepared, false, "SHOW SEQPROXY VARIABLES LIKE ?", "max\\_conn%"); len(got.rows) != 1 {
		t.Errorf("LIKE with an interpolated parameter: got %v", got.rows)
	}

	help := inquire(t, text, true, "SHOW SEQPROXY HELP")
	for _, p := range ddl.ProxyStatements() {
		want(t, "HELP", help.find(t, "statement", p.Text), map[string]string{"meaning": p.Help})
	}
	table := "| statement | right | meaning |\n|---|---|---|\n"
	for _, row := range help.rows {
		table += fmt.Sprintf("| `%s` | %s | %s |\n", strings.ReplaceAll(row["statement"], "|", `\|`), row["right"], row["meaning"])
	}
	questions := "| question | ask |\n|---|---|\n"
	for _, q := range questionTexts {
		questions += fmt.Sprintf("| %s | `%s` |\n", q.question, q.ask)
	}
	options := "| option | meaning |\n|---|---|\n"
	for _, o := range optionTexts {
		options += fmt.Sprintf("| `%s` | %s |\n", strings.Join(o.spellings, "`, `"), o.meaning)
	}
	keepPage(t, "statements.md", map[string]string{"statements": table, "questions": questions, "options": options})
	want(t, "VERSION", inquire(t, text, true, "SHOW SEQPROXY VERSION").rows[0], map[string]string{"version": "devel", "commit": "unknown"})

	want(t, "STATUS", inquire(t, text, true, "SHOW SEQPROXY STATUS LIKE 'DRAINING'").rows[0], map[string]string{"name": "draining", "value": "0"})
	if got := inquire(t, text, false, "SHOW SEQPROXY STATUS LIKE 'no such name'"); len(got.rows) != 0 {
		t.Errorf("STATUS LIKE what is not there: got %v", got.rows)
	}

	variables := inquire(t, text, false, "SHOW SEQPROXY VARIABLES")
	want(t, "VARIABLES", variables.find(t, "name", "connect_timeout"), map[string]string{"value": `"2s"`, "default": `"5s"`, "change_counts": "at once"})
	want(t, "VARIABLES", variables.find(t, "name", "listen"), map[string]string{"change_counts": "restart"})
	want(t, "VARIABLES", variables.find(t, "name", `user["app"].max_connections`), map[string]string{"value": "7", "default": "0", "change_counts": "new sessions"})
	want(t, "VARIABLES", variables.find(t, "name", `user["app"].password`), map[string]string{"value": "[redacted]", "default": "NULL"})

	sessions := inquire(t, text, true, "SHOW SEQPROXY SESSIONS")
	want(t, "SESSIONS", sessions.find(t, "user", "app"), map[string]string{
		"address": "data", "shard": "main", "schema": "album0", "state": "idle", "statements": "1", "pinned_by": "temporary_table",
	})
	want(t, "SESSIONS", sessions.find(t, "address", "admin"), map[string]string{"user": "watch", "state": "busy", "shard": "NULL", "pinned_by": "NULL"})

	nodes := inquire(t, text, true, "SHOW SEQPROXY NODES")
	want(t, "NODES", nodes.find(t, "shard", "main"), map[string]string{
		"node": a.server.Addr(), "role": "primary", "up": "YES", "connections": "1", "last_error": "NULL", "version": query(t, a.admin, "watch", "w", "SELECT VERSION()"),
	})
	if got := nodes.find(t, "shard", "main")["version"]; strings.HasPrefix(got, "5.5.5-") {
		t.Errorf("NODES: version: got %s, which is not the server's", got)
	}
	gone := nodes.find(t, "shard", "gone")
	want(t, "NODES", gone, map[string]string{"node": "127.0.0.1:1", "up": "NO", "version": "NULL"})
	if !strings.Contains(gone["last_error"], "refused") {
		t.Errorf("NODES: last_error: got %q", gone["last_error"])
	}
	shards := inquire(t, text, true, "SHOW SEQPROXY SHARDS")
	want(t, "SHARDS", shards.find(t, "shard", "main"), map[string]string{"is_default": "YES", "schemas": "album0", "user": "NULL", "sessions": "1"})
	want(t, "SHARDS", shards.find(t, "shard", "gone"), map[string]string{"is_default": "NO", "schemas": "album1, album2", "nodes": "127.0.0.1:1", "user": "app", "sessions": "0"})
	dba := a.connect(a.admin, "dba", "dba's", nil)
	for _, step := range []struct {
		sql    string
		paused bool
	}{{"SEQPROXY PAUSE SHARD gone", true}, {"SEQPROXY RESUME", false}} {
		if _, err := dba.ExecContext(t.Context(), step.sql); err != nil {
			t.Fatalf("%s: %v", step.sql, err)
		}
		shards := inquire(t, text, true, "SHOW SEQPROXY SHARDS")
		if is := shards.find(t, "shard", "gone")["paused_seconds"] != "NULL"; is != step.paused {
			t.Errorf("SHARDS after %s: paused %v", step.sql, is)
		}
		want(t, "SHARDS", shards.find(t, "shard", "main"), map[string]string{"paused_seconds": "NULL"})
	}
	want(t, "POOLS", inquire(t, text, false, "SHOW SEQPROXY POOLS").find(t, "user", "app"), map[string]string{"shard": "main", "mode": "session", "sessions": "1", "idle": "1", "pinned": "1"})
	users := inquire(t, text, false, "SHOW SEQPROXY USERS")
	want(t, "USERS", users.find(t, "user", "app"), map[string]string{
		"right": "", "checked_by": "proxy", "sessions": "1", "max_connections": "7", "sequences": "photos, video*", "schema": "album0", "requires": "NULL",
	})
	want(t, "USERS", users.find(t, "user", "dba"), map[string]string{"right": "admin", "sessions": "1", "max_connections": "NULL", "sequences": "NULL"})
	want(t, "USERS", users.find(t, "user", "watch"), map[string]string{"right": "monitor", "sessions": "2", "sequences": ""})

	if config := inquire(t, text, false, "SHOW SEQPROXY CONFIG"); config.rows[0]["config"] != `listen = "127.0.0.1:0"` {
		t.Errorf("CONFIG: got %q", config.rows[0])
	}
	if diff := inquire(t, text, false, "SHOW SEQPROXY CONFIG DIFF"); len(diff.rows) != 0 {
		t.Errorf("CONFIG DIFF of the same: got %v", diff.rows)
	}
	before, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(strings.Replace(string(before), "max_connections = 7", "max_connections = 8", 1), askedSecret, "another", 1)
	overwriteText(t, a.file, changed)
	diff := inquire(t, text, true, "SHOW SEQPROXY CONFIG DIFF")
	if len(diff.rows) != 2 || strings.Contains(fmt.Sprint(diff), "another") {
		t.Errorf("CONFIG DIFF: got %v, want two rows without a password", diff.rows)
	}
	want(t, "CONFIG DIFF", diff.find(t, "name", `user["app"].max_connections`), map[string]string{"in_force": "7", "in_file": "8", "change_counts": "new sessions"})
	overwriteText(t, a.file, "nonsense = 1")
	if _, err := text.ExecContext(t.Context(), "SHOW SEQPROXY CONFIG DIFF"); err == nil || !strings.Contains(err.Error(), `unknown key "nonsense"`) {
		t.Errorf("CONFIG DIFF with a wrong file: got %v", err)
	}
	overwriteText(t, a.file, string(before))

	for name, address := range map[string]string{"admin": a.admin, "data": a.address} {
		t.Run("command-line client at the "+name+" address", func(t *testing.T) {
			got := commandLine(t, a.server.Client(t), address, "watch", "w", shows())
			for _, word := range []string{"ERROR", askedSecret} {
				if strings.Contains(got, word) {
					t.Errorf("got %q in\n%s", word, got)
				}
			}
			for _, word := range []string{"temporary_table", "127.0.0.1:1", "SHOW SEQPROXY HELP", "draining", "uptime_seconds"} {
				if !strings.Contains(got, word) {
					t.Errorf("got no %q in\n%s", word, got)
				}
			}
		})
	}
	a.signal(syscall.SIGTERM)
	a.end(0)
}

// overwriteText replaces a file's contents.
func overwriteText(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// commandLine runs statements with a command-line client and returns its output.
func commandLine(t *testing.T, program, address, user, password string, statements []string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	plain := "--skip-ssl"
	args := []string{"--no-defaults", "--table", "--force", "-h", host, "-P", port, "-u", user, "--password=" + password}
	if filepath.Base(program) == "mysql" {
		plain = "--ssl-mode=DISABLED"
		args = append(args, "--get-server-public-key")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(args, plain)...)
	cmd.Stdin = strings.NewReader(strings.Join(statements, ";\n") + ";\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v", program, err)
	}
	return string(out)
}
