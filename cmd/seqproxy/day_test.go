package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/test/mysqltest"
)

// daysLog is the log file on the page.
const daysLog = "/var/log/seqproxy/seqproxy.log"

// day is a proxy in front of two shards and a sequence server. Its DBA asks the questions of
// docs/statements.md with the commands on that page.
type day struct {
	*asked
	servers   [2]*mysqltest.Server
	sequences *mysqltest.Server
	log, http string
	dba       *sql.Conn         // connection to the admin address
	page      map[string]string // commands by question
	unasked   map[string]bool   // questions that were not asked yet

	mu   sync.Mutex
	keys map[uint64]bool // all keys so far; guarded by mu
	rows [2]map[uint64]bool
}

func startDay(t *testing.T) *day {
	t.Helper()
	d := &day{
		asked: &asked{}, log: filepath.Join(t.TempDir(), "seqproxy.log"),
		page: make(map[string]string), unasked: make(map[string]bool), keys: make(map[uint64]bool),
	}
	for _, q := range questionTexts {
		d.page[q.question] = q.ask
		d.unasked[q.question] = true
	}

	for i := range d.servers {
		d.servers[i] = mysqltest.Start(t)
		album := "album" + strconv.Itoa(i)
		d.servers[i].Exec(t, "CREATE DATABASE "+album, "CREATE TABLE "+album+".photos (id BIGINT UNSIGNED PRIMARY KEY, n INT)",
			"CREATE USER app@'%' IDENTIFIED BY '"+askedSecret+"'", "GRANT ALL ON "+album+".* TO app@'%'")
		d.rows[i] = make(map[uint64]bool)
	}
	d.sequences = mysqltest.Start(t)
	d.sequences.Exec(t, "CREATE USER app@'%' IDENTIFIED BY '"+askedSecret+"'", "GRANT ALL ON seqproxy.* TO app@'%'")
	d.server, d.file = d.servers[0], write(t, "seqproxy.toml", d.config("max_connections = 100"))
	d.command(t, "on the servers").end(0)

	d.process = begin(t, "-config", d.file)
	awaitInFile(t, d.log, `"event":"listening"`)
	listening := struct{ Address, Admin, HTTP string }{}
	for line := range strings.SplitSeq(d.logged(t, ""), "\n") {
		if strings.Contains(line, `"event":"listening"`) {
			if err := json.Unmarshal([]byte(line), &listening); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.address, d.admin, d.http = listening.Address, listening.Admin, listening.HTTP
	d.dba = d.connect(d.admin, "dba", "dba's", nil)
	return d
}

// config returns the configuration with another first line.
func (d *day) config(first string) string {
	text := fmt.Sprintf(`%s
listen = "127.0.0.1:0"
admin.listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
admin_users = ["dba"]
monitor_users = ["watch"]
default_shard = "photos0"
pause_timeout = "10m"
drain.timeout = "10m"
log.output = %q
log.format = "json"
[[user]]
name = "dba"
password = "dba's"
[[user]]
name = "watch"
password = "w"
[[user]]
name = "app"
password = %q
[sequence]
cache = 1000000
allocate_timeout = "5s"
[[sequence.server]]
address = %q
user = "app"
password = %[3]q
`, first, d.log, askedSecret, d.sequences.Addr())
	for i, s := range d.servers {
		text += fmt.Sprintf(`[[shard]]
name = "photos%[1]d"
schemas = ["album%[1]d"]
user = "app"
password = %[2]q
[[shard.node]]
address = %[3]q
`, i, askedSecret, s.Addr())
	}
	return text
}

// ask returns the page's command for a question.
func (d *day) ask(t *testing.T, question string) (command string) {
	t.Helper()
	for q, c := range d.page {
		if strings.Contains(q, question) {
			if command != "" {
				t.Fatalf("two questions of the page have %q", question)
			}
			command = c
			delete(d.unasked, q)
		}
	}
	if command == "" {
		t.Fatalf("no question of the page has %q", question)
	}
	return command
}

// asks asks a question at the admin address.
func (d *day) asks(t *testing.T, question string) answer {
	t.Helper()
	return inquire(t, d.dba, false, d.ask(t, question))
}

// refuses asks a question at the admin address that must fail.
func (d *day) refuses(t *testing.T, c *sql.Conn, question string, code uint16, text string) {
	t.Helper()
	_, err := c.ExecContext(t.Context(), d.ask(t, question))
	var reply *mysql.MySQLError
	if !errors.As(err, &reply) || reply.Number != code || !strings.Contains(reply.Message, text) {
		t.Errorf("%s: got %v, want error %d with %q", question, err, code, text)
	}
}

// awaits repeats a question until the answer is as wanted.
func (d *day) awaits(t *testing.T, question string, wanted func(answer) bool) answer {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		a := d.asks(t, question)
		if wanted(a) {
			return a
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got %v for %v", question, a.rows, patience)
		}
	}
}

// command runs the program with the page's command line.
func (d *day) command(t *testing.T, question string) *process {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(d.ask(t, question), "seqproxy.toml", d.file))
	return begin(t, words[1:]...)
}

// curl sends the page's HTTP request.
func (d *day) curl(t *testing.T, question string) (status int, body string) {
	t.Helper()
	_, path, found := strings.Cut(strings.ReplaceAll(d.ask(t, question), "'", ""), "curl http://127.0.0.1:4308")
	if !found {
		t.Fatalf("%s: the page has no usual address", question)
	}
	return get(t, d.http, path)
}

// grep searches the log with the page's command.
func (d *day) grep(t *testing.T, question string) string {
	t.Helper()
	command := d.ask(t, question)
	if !strings.Contains(command, daysLog) {
		t.Fatalf("the page has another log: %s", command)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, daysLog, d.log)).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// metric returns the value of a line of /metrics.
func (d *day) metric(t *testing.T, line string) string {
	t.Helper()
	_, all := get(t, d.http, "/metrics")
	m := regexp.MustCompile(`(?m)^seqproxy_` + regexp.QuoteMeta(line) + ` (.*)$`).FindStringSubmatch(all)
	if m == nil {
		t.Errorf("/metrics has no %s", line)
		return ""
	}
	return m[1]
}

func (d *day) logged(t *testing.T, suffix string) string {
	t.Helper()
	text, err := os.ReadFile(d.log + suffix)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// awaitLines waits until the log has at least want lines with a text.
func (d *day) awaitLines(t *testing.T, text string, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); strings.Count(d.logged(t, ""), text) < want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log has %d times %s, want %d", strings.Count(d.logged(t, ""), text), text, want)
		}
	}
}

// nodeLabels are the labels of a shard's metrics.
func (d *day) nodeLabels(shard int, more string) string {
	return fmt.Sprintf(`{%snode="%s",shard="photos%d"}`, more, d.servers[shard].Addr(), shard)
}

// querier is a connection, a pool or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// keep remembers a key. It returns an error for a key that came before.
func (d *day) keep(key uint64, shard int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keys[key] {
		return fmt.Errorf("%d was given twice", key)
	}
	d.keys[key] = true
	if shard >= 0 {
		d.rows[shard][key] = true
	}
	return nil
}

// take takes a key.
func (d *day) take(ctx context.Context, c querier) error {
	var key uint64
	if err := c.QueryRowContext(ctx, "SELECT NEXTVAL('photos')").Scan(&key); err != nil {
		return fmt.Errorf("take a key: %w", err)
	}
	return d.keep(key, -1)
}

// insert inserts a row with a key.
func (d *day) insert(ctx context.Context, c querier, shard int) error {
	result, err := c.ExecContext(ctx, "INSERT INTO photos (id, n) VALUES (NEXTVAL('photos'), 1)")
	if err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	key, err := result.LastInsertId()
	if err != nil {
		return err
	}
	return d.keep(uint64(key), shard)
}

// canary runs an application's statements as text and prepared, and compares the answers.
func (d *day) canary(ctx context.Context, c querier, shard int) error {
	if err := errors.Join(d.take(ctx, c), d.insert(ctx, c, shard)); err != nil {
		return err
	}
	prepared, err := c.PrepareContext(ctx, "SELECT NEXTVAL(?), ? + 1")
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	defer prepared.Close() //nolint:errcheck // it was answered
	var key, sum uint64
	if err := prepared.QueryRowContext(ctx, "photos", 41).Scan(&key, &sum); err != nil || sum != 42 {
		return fmt.Errorf("prepared: got %d, want 42: %w", sum, err)
	}
	var schema string
	if err := c.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&schema); err != nil || schema != "album"+strconv.Itoa(shard) {
		return fmt.Errorf("in %q: %w", schema, err)
	}
	return d.keep(key, -1)
}

// album opens a connection of the application.
func (d *day) album(i int) *sql.Conn {
	d.t.Helper()
	return d.connect(d.address, "app", askedSecret, func(c *mysql.Config) { c.DBName = "album" + strconv.Itoa(i) })
}

// atData opens a connection of the admin at the clients' address.
func (d *day) atData() *sql.Conn {
	d.t.Helper()
	return d.connect(d.address, "dba", "dba's", func(c *mysql.Config) { c.DBName = "album1" })
}

// TestTheDayOfADBA goes through a day with the commands of docs/statements.md: a start, a broken
// server, a broken sequence server, a wrong configuration, a pause, a stop. An application uses the
// first shard all day and notices nothing. No key comes twice.
func TestTheDayOfADBA(t *testing.T) {
	d := startDay(t)
	if _, err := d.dba.ExecContext(t.Context(), "CREATE SEQUENCE photos"); err != nil {
		t.Fatal(err)
	}
	watch := d.connect(d.admin, "watch", "w", nil)

	all, cease := context.WithCancel(context.Background())
	worked, busy := make(chan error, 1), d.album(0)
	go func() {
		var err error
		for err == nil && all.Err() == nil {
			err = d.canary(context.Background(), busy, 0)
			time.Sleep(5 * time.Millisecond)
		}
		worked <- err
	}()
	t.Cleanup(cease)

	d.looks(t)
	d.breaksANode(t)
	d.losesTheSequenceServer(t)
	d.reloads(t)
	d.pauses(t)
	d.monitors(t, watch)
	d.audits(t)
	cease()
	if err := receive(t, "the end of the application that worked all day", worked); err != nil {
		t.Errorf("the application that worked all day: %v", err)
	}
	d.stops(t)

	for i, s := range d.servers {
		rows, err := s.DB(t, "").QueryContext(t.Context(), fmt.Sprintf("SELECT id FROM album%d.photos", i))
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close() //nolint:errcheck // was read
		n := 0
		for ; rows.Next(); n++ {
			var key uint64
			if err := rows.Scan(&key); err != nil {
				t.Fatal(err)
			}
			if !d.rows[i][key] {
				t.Errorf("shard %d has the key %d, which no client got", i, key)
			}
		}
		if err := rows.Err(); err != nil || n != len(d.rows[i]) || n == 0 {
			t.Errorf("shard %d has %d rows, want %d: %v", i, n, len(d.rows[i]), err)
		}
	}
	for question := range d.unasked {
		t.Errorf("questions of the page that the day did not ask:%s", question)
	}
	for _, secret := range []string{askedSecret, "dba's"} {
		if strings.Contains(d.logged(t, "")+d.logged(t, ".1"), secret) {
			t.Error("a password is in the log")
		}
	}
}

// looks: all is well, and all sources agree.
func (d *day) looks(t *testing.T) {
	second := d.album(1)
	if err := d.canary(t.Context(), second, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := second.ExecContext(t.Context(), "CREATE TEMPORARY TABLE kept (a INT)"); err != nil {
		t.Fatal(err)
	}
	if status, body := d.curl(t, "Is it up"); status != http.StatusOK {
		t.Errorf("/healthz: got %d %q", status, body)
	}
	if status, body := d.curl(t, "Should clients come"); status != http.StatusOK || !strings.Contains(body, `"warnings":[]`) {
		t.Errorf("/readyz: got %d %s", status, body)
	}
	for _, row := range d.asks(t, "Which server does not answer").rows {
		want(t, "NODES", row, map[string]string{"up": "YES", "last_error": "NULL"})
	}
	for i := range d.servers {
		if got := d.metric(t, "node_up"+d.nodeLabels(i, "")); got != "1" {
			t.Errorf("node_up of shard %d: got %s", i, got)
		}
	}
	sessions := d.asks(t, "Who is connected")
	want(t, "SESSIONS", sessions.find(t, "shard", "photos1"), map[string]string{"user": "app", "schema": "album1", "state": "idle", "pinned_by": "temporary_table"})
	apps := 0
	for _, s := range sessions.rows {
		if s["user"] == "app" {
			apps++
		}
	}
	status := inquire(t, d.dba, false, "SHOW SEQPROXY STATUS")
	want(t, "STATUS", status.find(t, "name", `client_connections{user="app"}`), map[string]string{"value": strconv.Itoa(apps)})
	want(t, "STATUS", status.find(t, "name", "ready"), map[string]string{"value": "1"})
	for name, value := range map[string]string{`sequence\_server\_node\_info%`: "1", `sequence\_plan\_number`: "0"} {
		like := "LIKE '" + name + "'"
		if got := inquire(t, d.dba, false, "SHOW SEQPROXY STATUS "+like); !strings.Contains(repositoryFile(t, "docs/statements.md"), like) || len(got.rows) != 1 || got.rows[0]["value"] != value {
			t.Errorf("%s, as the page has it: got %v, want one row with %s", like, got.rows, value)
		}
	}
	if got := d.metric(t, `client_connections{user="app"}`); got != strconv.Itoa(apps) || apps != 2 {
		t.Errorf("clients of app: got %d in SESSIONS, %s in /metrics, want 2", apps, got)
	}
	if got := d.metric(t, "ready"); got != "1" {
		t.Errorf("ready: got %s", got)
	}
	want(t, "POOLS", d.asks(t, "How many connections to the servers").find(t, "shard", "photos1"), map[string]string{"user": "app", "sessions": "1", "pinned": "1"})
	if got := d.asks(t, "Can numbers be reserved"); len(got.rows) != 1 {
		t.Errorf("SEQUENCE SERVERS: got %v", got.rows)
	}
	photos := d.asks(t, "For how long do keys last").find(t, "name", "photos")
	if seconds, err := strconv.ParseFloat(photos["seconds_left"], 64); err != nil || seconds <= 0 {
		t.Errorf("SHOW SEQUENCES: seconds_left: got %q", photos["seconds_left"])
	}
	if _, there := photos["runway"]; !there {
		t.Error("SHOW SEQUENCES has no runway")
	}
	if _, err := client(t, d.address, "nobody", "", append(plain(t), "-e", "SELECT 1")...); err == nil {
		t.Error("no login succeeded")
	}
	want(t, "STATUS", d.asks(t, "Which logins are refused").find(t, "name", `client_auth_failures_total{reason="unknown_user"}`), map[string]string{"value": "1"})
	want(t, "STATUS", d.awaits(t, "Why do connections end", func(a answer) bool {
		return strings.Contains(fmt.Sprint(a.rows), `reason="auth"} value:1`)
	}).find(t, "name", `client_disconnects_total{reason="auth"}`), map[string]string{"value": "1"})
	for _, question := range []string{"Is the proxy slow", "Or is it the server"} {
		d.awaits(t, question, func(a answer) bool { // only some statements are measured
			n := 0
			for _, row := range a.rows {
				if v, err := strconv.ParseFloat(row["value"], 64); err == nil && v > 0 {
					n++
				}
			}
			return n == 2 && len(a.rows) == 2
		})
	}
	for _, shard := range []string{"photos0", "photos1"} {
		d.asks(t, "How many statements").find(t, "name", `statements_total{kind="relay",shard="`+shard+`"}`)
	}
	want(t, "USERS", d.asks(t, "What may this user do").find(t, "user", "watch"), map[string]string{"right": "monitor", "checked_by": "proxy"})
	want(t, "VARIABLES", d.asks(t, "Which limits").find(t, "name", "max_connections"), map[string]string{"value": "100"})

	route := inquire(t, d.atData(), false, d.ask(t, "What becomes of this statement")).rows[0]
	want(t, "ROUTE", route, map[string]string{"kind": "rewrite", "shard": "photos1", "node": d.servers[1].Addr(), "sequences": "photos (1)", "message": "NULL"})
}

// breaksANode: the server of the second shard dies and comes back.
func (d *day) breaksANode(t *testing.T) {
	if err := d.servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	c := d.album(1) // for keys
	if err := d.take(t.Context(), c); err != nil {
		t.Errorf("a key with the shard's server dead: %v", err)
	}
	var reply *mysql.MySQLError
	if err := d.insert(t.Context(), c, 1); !errors.As(err, &reply) || reply.Number != 1429 {
		t.Errorf("an INSERT with the shard's server dead: got %v, want 1429", err)
	}
	a := d.awaits(t, "Which server does not answer", func(a answer) bool {
		return strings.Contains(a.find(t, "shard", "photos1")["last_error"], "refused")
	})
	want(t, "NODES", a.find(t, "shard", "photos1"), map[string]string{"node": d.servers[1].Addr(), "up": "NO"})
	want(t, "NODES", a.find(t, "shard", "photos0"), map[string]string{"up": "YES"})
	up, refused := "node_up"+d.nodeLabels(1, ""), "node_errors_total"+d.nodeLabels(1, `code="2003",`)
	if got := d.metric(t, up); got != "0" {
		t.Errorf("%s: got %s", up, got)
	}
	if got := d.metric(t, refused); got == "0" {
		t.Errorf("%s: got %s", refused, got)
	}
	d.asks(t, "Which errors").find(t, "name", refused)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		// the answer may be some seconds old
		status, body := d.curl(t, "Should clients come")
		if status == http.StatusOK && strings.Contains(body, "shard photos1: node "+d.servers[1].Addr()+" cannot be used") && strings.Contains(body, "refused") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz: got %d %s, want 200 and a warning with the cause", status, body)
		}
	}
	d.awaitLines(t, `"event":"node not usable"`, 1)

	if err := d.servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if _, reply := askReady(t, d.http, ""); len(reply.Warnings) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the shard is not ready again")
		}
	}
	if err := d.canary(t.Context(), c, 1); err != nil {
		t.Errorf("the session that there was, with the server back: %v", err)
	}
	want(t, "NODES", d.asks(t, "Which server does not answer").find(t, "shard", "photos1"), map[string]string{"up": "YES"})
	if got := d.metric(t, up); got != "1" {
		t.Errorf("%s with the server back: got %s", up, got)
	}
	d.awaitLines(t, `"event":"node usable again"`, 1)
}

// losesTheSequenceServer: the only sequence server dies and comes back. Sequences go on, except for
// one with hardly any numbers in memory.
func (d *day) losesTheSequenceServer(t *testing.T) {
	if _, err := d.dba.ExecContext(t.Context(), "CREATE SEQUENCE invoices CACHE 5"); err != nil {
		t.Fatal(err)
	}
	c := d.album(1)
	var highest uint64
	takeInvoice := func() error {
		var key uint64
		if err := c.QueryRowContext(t.Context(), "SELECT NEXTVAL('invoices')").Scan(&key); err != nil {
			return err
		}
		if key <= highest {
			t.Errorf("invoices: got %d after %d", key, highest)
		}
		highest = key
		return nil
	}
	if err := takeInvoice(); err != nil {
		t.Fatal(err)
	}
	server := d.sequences.Addr()
	up := `sequence_server_up{server="` + server + `"}`
	want(t, "STATUS", d.asks(t, "Is a sequence server known").find(t, "name", up), map[string]string{"value": "1"})

	if err := d.sequences.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := d.canary(t.Context(), c, 1); err != nil {
		t.Errorf("a session with the sequence server dead: %v", err)
	}
	a := d.awaits(t, "Can numbers be reserved", func(a answer) bool {
		return len(a.rows) == 1 && a.rows[0]["state"] == "away" && strings.Contains(a.rows[0]["error"], "refused")
	})
	want(t, "SEQUENCE SERVERS", a.rows[0], map[string]string{"server": server})
	var reply *mysql.MySQLError
	var err error
	for range 100 { // more than are in memory
		if err = takeInvoice(); err != nil {
			break
		}
	}
	if !errors.As(err, &reply) || reply.Number != 1105 || !strings.Contains(reply.Message, `sequence "invoices"`) || strings.Contains(reply.Message, server) {
		t.Errorf("NEXTVAL with no number in memory: got %v, want 1105 with the sequence, and without the server's address", err)
	}
	if err := d.canary(t.Context(), c, 1); err != nil {
		t.Errorf("the session after that: %v", err)
	}

	if status, body := d.curl(t, "Should clients come"); status != http.StatusOK {
		t.Errorf("/readyz: got %d %s, want 200: there are keys, and the shards work", status, body)
	}
	if status, body := d.curl(t, "Does this sequence give keys"); status != http.StatusOK {
		t.Errorf("/readyz of photos: got %d %s, want 200: it has numbers in memory", status, body)
	}
	if reply := awaitReady(t, d.http, "?sequence=invoices", http.StatusServiceUnavailable); len(reply.Reasons) != 1 || !strings.Contains(reply.Reasons[0], server) {
		t.Errorf("/readyz of invoices: got %+v, want the server as the reason", reply)
	}
	photos := d.asks(t, "For how long do keys last").find(t, "name", "photos")
	if seconds, err := strconv.ParseFloat(photos["seconds_left"], 64); err != nil || seconds <= 0 {
		t.Errorf("SHOW SEQUENCES in the outage: seconds_left of photos: got %q", photos["seconds_left"])
	}
	warnings := inquire(t, d.dba, false, "SHOW WARNINGS")
	if len(warnings.rows) != 1 || !strings.Contains(fmt.Sprint(warnings.rows[0]), "only the sequences known here") {
		t.Errorf("SHOW WARNINGS after SHOW SEQUENCES in the outage: got %v", warnings.rows)
	}
	want(t, "SHOW SEQUENCES", inquire(t, d.dba, false, "SHOW SEQUENCES").find(t, "name", "invoices"), map[string]string{"cached": "0"})
	want(t, "STATUS", d.asks(t, "Is a sequence server known").find(t, "name", up), map[string]string{"value": "0"})
	want(t, "STATUS", d.asks(t, "Were clients left without keys").find(t, "name", `sequence_waits_failed_total{sequence="invoices"}`), map[string]string{"value": "1"})
	d.fires(t, "SeqproxySequenceServerDown", up, func(v float64) bool { return v == 0 })
	d.fires(t, "SeqproxyNoKeys", `sequence_waits_failed_total{sequence="invoices"}`, func(v float64) bool { return v > 0 })
	d.fires(t, "SeqproxyReservationErrors", `sequence_reservations_total{result="(?:error|unknown)",sequence="invoices"}`, func(v float64) bool { return v > 0 })
	d.fires(t, "SeqproxyKeysRunOut", `sequence_cover_seconds{sequence="invoices"}`, func(v float64) bool { return v < 300 })
	if got := d.metric(t, `sequence_waits_failed_total{sequence="photos"}`); got != "0" {
		t.Errorf("clients without keys of photos: got %s", got)
	}
	lines := d.grep(t, "Since when")
	if !strings.Contains(lines, `"event":"reserving numbers fails"`) || !strings.Contains(lines, `"sequence":"invoices"`) ||
		!strings.Contains(lines, "refused") && !strings.Contains(lines, "invalid connection") {
		// it was noticed first
		t.Errorf("the log in the outage: got %s", lines)
	}

	if err := d.sequences.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, d.http, "?sequence=invoices", http.StatusOK)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		// a single attempt may come too late for allocate_timeout
		if err = takeInvoice(); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("an invoice with the sequence server back: %v", err)
		}
	}
	if err := d.canary(t.Context(), c, 1); err != nil {
		t.Errorf("with the sequence server back: %v", err)
	}
	d.awaits(t, "Can numbers be reserved", func(a answer) bool { return len(a.rows) == 1 && a.rows[0]["state"] != "away" })
	d.awaits(t, "Is a sequence server known", func(a answer) bool { return a.find(t, "name", up)["value"] == "1" })
	d.awaitLines(t, `"event":"reserving numbers works again"`, 1)
	if lines := d.grep(t, "Since when"); !strings.Contains(lines, `"event":"reserving numbers works again"`) {
		t.Errorf("the log with the server back: got %s", lines)
	}
}

// fires checks that an alert uses a metric, has an explanation, and fires for the metric's present
// value. line is a pattern. If it matches several lines, their values are added.
func (d *day) fires(t *testing.T, alert, line string, does func(float64) bool) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	readYAML(t, deploy+"prometheus/alerts.yml", &rules)
	name, labels, _ := strings.Cut(line, "{")
	about := false
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			about = about || rule.Alert == alert && strings.Contains(rule.Expr, "seqproxy_"+name)
		}
	}
	if !about || !strings.Contains(repositoryFile(t, "docs/alarms.md"), "`"+alert+"`") {
		t.Errorf("the alert %s is not about %s, or is not in docs/alarms.md", alert, name)
	}
	_, all := get(t, d.http, "/metrics")
	lines := regexp.MustCompile(`(?m)^seqproxy_`+name+`\{`+labels+` (.*)$`).FindAllStringSubmatch(all, -1)
	sum := 0.0
	for _, l := range lines {
		v, err := strconv.ParseFloat(l[1], 64)
		if err != nil {
			t.Errorf("%s: %v", l[0], err)
		}
		sum += v
	}
	if len(lines) == 0 || !does(sum) {
		t.Errorf("%d lines like %s, in all %v, at which %s does not fire", len(lines), line, sum, alert)
	}
}

// reloads: a configuration is wrong, then right.
func (d *day) reloads(t *testing.T) {
	overwriteText(t, d.file, d.config("max_connections = 0"))
	d.refuses(t, d.dba, "How does it get in force", 1105, "max_connections: must be >= 1, is 0")
	d.awaitLines(t, `"event":"not reloaded"`, 1)
	d.signal(syscall.SIGHUP)
	d.awaitLines(t, `"event":"not reloaded"`, 2)
	want(t, "STATUS", d.asks(t, "Was the last reload refused").rows[0], map[string]string{"value": "0"})
	for line, value := range map[string]string{"config_last_reload_successful": "0", `config_reloads_total{result="error"}`: "2"} {
		if got := d.metric(t, line); got != value {
			t.Errorf("%s after two refused reloads: got %s, want %s", line, got, value)
		}
	}
	want(t, "VARIABLES", d.asks(t, "Which limits").find(t, "name", "max_connections"), map[string]string{"value": "100"})

	overwriteText(t, d.file, d.config("max_connections = 77"))
	diff := d.asks(t, "What does the file say")
	if len(diff.rows) != 1 {
		t.Errorf("CONFIG DIFF: got %v", diff.rows)
	}
	want(t, "CONFIG DIFF", diff.find(t, "name", "max_connections"), map[string]string{"in_force": "100", "in_file": "77"})
	d.asks(t, "How does it get in force")
	want(t, "STATUS", d.asks(t, "Was the last reload refused").rows[0], map[string]string{"value": "1"})
	want(t, "VARIABLES", d.asks(t, "Which limits").find(t, "name", "max_connections"), map[string]string{"value": "77"})
	if diff := d.asks(t, "What does the file say"); len(diff.rows) != 0 {
		t.Errorf("CONFIG DIFF after the reload: got %v", diff.rows)
	}
	if got := d.metric(t, "client_connections_limit"); got != "77" {
		t.Errorf("client_connections_limit: got %s, want 77", got)
	}
	d.awaitLines(t, `"event":"reloaded"`, 1)
}

// pauses: statements for the second shard wait, keys do not.
func (d *day) pauses(t *testing.T) {
	c, keys, atData := d.album(1), d.album(1), d.atData()
	if err := errors.Join(d.canary(t.Context(), c, 1), d.canary(t.Context(), keys, 1)); err != nil {
		t.Fatal(err)
	}
	d.asks(t, "How is a server taken out")
	inserted := make(chan error, 1)
	go func() { inserted <- d.insert(context.Background(), c, 1) }()
	d.awaits(t, "Who is connected", func(a answer) bool {
		for _, s := range a.rows {
			if s["schema"] == "album1" && s["state"] == "busy" {
				return true
			}
		}
		return false
	})
	for range 10 {
		if err := d.take(t.Context(), keys); err != nil {
			t.Errorf("a key while the shard is paused: %v", err)
		}
	}
	shards := d.asks(t, "Which shards are paused")
	if shards.find(t, "shard", "photos1")["paused_seconds"] == "NULL" || shards.find(t, "shard", "photos0")["paused_seconds"] != "NULL" {
		t.Errorf("SHARDS: got %v, want photos1 paused", shards.rows)
	}
	if note := inquire(t, atData, false, d.ask(t, "What becomes of this statement")).rows[0]["message"]; !strings.Contains(note, "paused") {
		t.Errorf("EXPLAIN FORMAT=ROUTE in a pause: got %q", note)
	}
	select {
	case err := <-inserted:
		t.Errorf("a statement for the paused shard: got %v before RESUME", err)
		inserted <- err
	default:
	}
	d.asks(t, "It is back")
	if err := receive(t, "the statement that waited", inserted); err != nil {
		t.Errorf("the statement that waited: %v", err)
	}
}

// monitors: a monitor may look and not change anything.
func (d *day) monitors(t *testing.T, watch *sql.Conn) {
	if got := inquire(t, watch, true, d.ask(t, "Which server does not answer")); len(got.rows) != 2 {
		t.Errorf("NODES for a monitor: got %v", got.rows)
	}
	for _, question := range []string{"How does it get in force", "How is a server taken out", "The log file was moved", "That takes too long"} {
		d.refuses(t, watch, question, 1227, "admin_users")
	}
}

// audits: the log says who did what, and continues in another file.
func (d *day) audits(t *testing.T) {
	lines := strings.Split(d.grep(t, "What was changed"), "\n")
	for _, wanted := range [][]string{
		{`"user":"dba"`, "\"statement\":\"CREATE SEQUENCE `photos`\"", `"outcome":"done"`},
		{`"user":"dba"`, `"statement":"SEQPROXY RELOAD"`, `"outcome":"failed"`, "max_connections"},
		{`"user":"dba"`, `"statement":"SEQPROXY RELOAD"`, `"outcome":"done"`},
		{`"user":"dba"`, `"statement":"SEQPROXY PAUSE SHARD photos1"`, `"outcome":"done"`},
		{`"user":"dba"`, `"statement":"SEQPROXY RESUME SHARD photos1"`, `"outcome":"done"`},
		{`"user":"watch"`, `"statement":"SEQPROXY SHUTDOWN"`, `"code":1227`, `"outcome":"failed"`},
	} {
		found := 0
		for _, line := range lines {
			has := true
			for _, text := range wanted {
				has = has && strings.Contains(line, text)
			}
			if has {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d audit lines with %q, want 1, in\n%s", found, wanted, strings.Join(lines, "\n"))
		}
	}
	if err := os.Rename(d.log, d.log+".1"); err != nil {
		t.Fatal(err)
	}
	d.asks(t, "The log file was moved")
	awaitInFile(t, d.log, `"event":"log file opened again"`)
	awaitInFile(t, d.log, `"event":"audit"`)
	if got := d.grep(t, "What was changed"); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"statement":"SEQPROXY FLUSH LOGS"`) {
		t.Errorf("audit lines in the new file: got %s", got)
	}
}

// stops: the proxy ends after the last transaction.
func (d *day) stops(t *testing.T) {
	tx, err := d.album(1).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	insert := func(when string) {
		t.Helper()
		if err := d.insert(t.Context(), tx, 1); err != nil {
			t.Errorf("in a transaction, %s: %v", when, err)
		}
	}
	insert("before the stop")
	d.asks(t, "without cutting anybody")
	if reply := awaitReady(t, d.http, "", http.StatusServiceUnavailable); len(reply.Reasons) != 1 || reply.Reasons[0] != "the proxy is stopping" {
		t.Errorf("/readyz: got %+v", reply)
	}
	d.awaitLines(t, `"event":"waiting for all clients to leave"`, 1)
	if got := d.metric(t, "draining"); got != "1" {
		t.Errorf("draining: got %s", got)
	}
	insert("when the stop was asked for")
	if got := d.asks(t, "Who is connected"); !strings.Contains(fmt.Sprint(got.rows), "transaction") {
		t.Errorf("SESSIONS while it waits: got %v, want one in a transaction", got.rows)
	}
	d.asks(t, "That takes too long")
	awaitInFile(t, d.log, `"event":"stopping"`)
	insert("while sessions end")
	if err := tx.Commit(); err != nil {
		t.Errorf("COMMIT: %v", err)
	}
	d.end(0)
	awaitInFile(t, d.log, `"event":"stopped"`)
	if got := d.stderr(); got != "" {
		t.Errorf("stderr: got %q", got)
	}
}
