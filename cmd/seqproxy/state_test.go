//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"seqproxy/test/mysqltest"
)

// A proxy with a state directory: a second proxy on it, a full disk, kill -9, and a backup restored
// meanwhile.
func TestStateDirectoryOutlivesTheProxy(t *testing.T) {
	s := mysqltest.Start(t) // a server of its own, since the schema has a fixed name
	dir := t.TempDir()
	config := filepath.Join(dir, "seqproxy.toml")
	text := apart + `
admin_users = ["root"]
[[user]]
name = "root"
[sequence]
cache = 10
outage_cover = "0s"
allocate_timeout = "5s"
state_dir = "state"
` + sequencesAt(s.Addr())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	state := func(p *process, when string, want float64) {
		t.Helper()
		m := metered{t, p.address(), p.httpAddress()}
		m.awaits("the state file "+when, series{"state_file_usable": want})
	}
	ask := func(p *process, sql string) string { return query(t, p.address(), "root", "", sql) }
	first := begin(t, "-config", config)
	if got := ask(first, "CREATE SEQUENCE photos; SELECT NEXTVAL('photos')"); got != "1" {
		t.Fatalf("got %q, want 1", got)
	}
	second := begin(t, "-config", config)
	second.end(1)
	if got, want := second.stderr(), "the state directory "+filepath.Join(dir, "state")+" is in use by process "+strconv.Itoa(first.cmd.Process.Pid)+" on "; !strings.Contains(got, want) {
		t.Errorf("the second proxy says %q, want %q", got, want)
	}

	state(first, "at first", 1)
	// The disk is full: numbers in memory are given, and then the error names the file.
	var free unix.Rlimit
	if err := unix.Prlimit(first.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 10, Max: unix.RLIM_INFINITY}, &free); err != nil {
		t.Skipf("a process's limits cannot be set here: %v", err)
	}
	last, failed := 1, ""
	for failed == "" {
		output, err := client(t, first.address(), "root", "", "-N", "-e", "SELECT NEXTVAL('photos')")
		if err != nil {
			failed = output
			break
		}
		number, err := strconv.Atoi(strings.TrimSpace(output))
		if err != nil || number <= last || number > 100 {
			t.Fatalf("got %q, %v after %d", output, err, last)
		}
		last = number
	}
	for _, part := range []string{`sequence "photos"`, "no number is left in memory", "cannot write its state file", "the proxy's log says why"} {
		if !strings.Contains(failed, part) {
			t.Errorf("got %q, want %q in it", failed, part)
		}
	}
	if strings.Contains(failed, dir) {
		t.Errorf("got %q, with the path of the state file", failed)
	}
	first.await("state file " + filepath.Join(dir, "state", "state") + " cannot be written")
	if last < 10 {
		t.Errorf("%d numbers were given from memory, want 10 or more", last)
	}
	first.await("state file cannot be written")
	state(first, "on a full disk", 0)
	var id int
	if err := s.DB(t, "seqproxy").QueryRow("SELECT id FROM sequence").Scan(&id); err != nil || id != last {
		t.Errorf("the row has %d, %v; want %d: the reservation that could not be remembered was undone", id, err, last)
	}
	if err := unix.Prlimit(first.cmd.Process.Pid, unix.RLIMIT_FSIZE, &free, nil); err != nil {
		t.Fatal(err)
	}
	first.await("state file can be written again")
	state(first, "with space again", 1)
	if got, _ := strconv.Atoi(ask(first, "SELECT NEXTVAL('photos')")); got <= last || got > last+50 {
		t.Errorf("with space again got %d after %d", got, last)
	} else {
		last = got
	}

	first.signal(syscall.SIGKILL)
	first.end(-1)
	s.Exec(t, "UPDATE seqproxy.sequence SET id = 5") // an old copy is restored
	third := begin(t, "-config", config)
	got, _ := strconv.Atoi(ask(third, "SELECT NEXTVAL('photos')"))
	if got <= last || got > last+50 {
		t.Errorf("after kill -9 and a restored backup got %d, want one above %d", got, last)
	}
	third.await("sequence row went back")
	third.signal(syscall.SIGTERM)
	third.end(0)
	fourth := begin(t, "-config", config)
	if next, _ := strconv.Atoi(ask(fourth, "SELECT NEXTVAL('photos')")); next != got+1 {
		t.Errorf("after an orderly stop got %d, want %d", next, got+1)
	}
	if strings.Contains(fourth.stderr(), "went back") {
		t.Error("an orderly stop looks as if the row had gone back")
	}
}

// Without a shard there is nothing but keys to come for. A sequence with ORDER has no number in
// memory, and nobody reserves in the background: so the question itself finds out that the disk has
// space again.
func TestAProxyForKeysAloneIsNotReadyWhileNothingCanBeRemembered(t *testing.T) {
	s := mysqltest.StartUnsynced(t)
	s.Exec(t, "CREATE DATABASE ids", "CREATE TABLE ids.tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) NOT NULL UNIQUE)",
		"REPLACE INTO ids.tickets64 (stub) VALUES ('a')")
	p := begin(t, "-config", write(t, "seqproxy.toml", apart+`
admin_users = ["root"]
[[user]]
name = "root"
[sequence]
allocate_timeout = "5s"
state_dir = "state"
[[ticket]]
table = "ids.tickets64"
`+sequencesAt(s.Addr())))
	m := metered{t, p.address(), p.httpAddress()}
	if got := query(t, m.clients, "root", "", "CREATE SEQUENCE strict ORDER; SELECT NEXTVAL('strict')"); got != "1" {
		t.Fatalf("got %q, want 1", got)
	}
	awaitReady(t, m.http, "", 200)
	pid, full := p.cmd.Process.Pid, &unix.Rlimit{Cur: 10, Max: unix.RLIM_INFINITY}
	var free unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, full, &free); err != nil {
		t.Skipf("a process's limits cannot be set here: %v", err)
	}
	refused := func(sql string) {
		t.Helper()
		if output, err := client(t, m.clients, "root", "", "-e", sql); err == nil || !strings.Contains(output, "cannot write its state file") {
			t.Errorf("%s: got %q, %v, want an error that names the state file", sql, output, err)
		}
	}
	refused("SELECT NEXTVAL('strict')")
	for _, query := range []string{"", "?sequence=strict"} {
		if why := awaitReady(t, m.http, query, 503).Reasons; !strings.Contains(why[0], "state file ") {
			t.Errorf("/readyz%s: got %q, want the state file as the reason", query, why)
		}
	}
	m.awaits("on a full disk", series{"ready": 0})
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &free, nil); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, m.http, "", 200)
	m.awaits("with space again", series{"ready": 1})

	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, full, nil); err != nil {
		t.Fatal(err)
	}
	refused("REPLACE INTO ids.tickets64 (stub) VALUES ('a')")
	for deadline := time.Now().Add(patience); m.read()[line("ids.tickets64", "reservations error")] < 3; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("attempts to reserve tickets are not counted: %v", m.read().of("ids.tickets64"))
		}
	}
}
