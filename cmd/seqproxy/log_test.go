package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// awaitInFile waits until a file contains a text.
func awaitInFile(t *testing.T, path, text string) {
	t.Helper()
	var got []byte
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got, _ = os.ReadFile(path); strings.Contains(string(got), text) {
			return
		}
	}
	t.Fatalf("%s does not say %q in %v: %s", path, text, patience, got)
}

// TestTheLogFileIsRotated rotates the log in both ways of logrotate, and removes the directory
// once.
func TestTheLogFileIsRotated(t *testing.T) {
	s := mysqltest.Shared(t)
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "seqproxy.log")
	file := write(t, "seqproxy.toml", fmt.Sprintf(`
listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
unknown_user = "backend"
[log]
format = "json"
output = %q
[[sequence.server]]
address = "unix:%[2]s"
user = "root"
[[shard]]
name = "s"
[[shard.node]]
address = "unix:%[2]s"
`, path, s.Socket()))
	p := begin(t, "-config", file)
	awaitInFile(t, path, `"event":"listening"`)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGUSR1)
	awaitInFile(t, path, `"event":"log file opened again"`)

	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGUSR1)
	awaitInFile(t, filepath.Join(dir+".away", "seqproxy.log"), `"event":"log file kept"`)
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil { // after a copy
		t.Fatal(err)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), `{"level":"info","ts":"`) || !strings.Contains(string(text), `"event":"stopped"`) {
		t.Errorf("the end of the log: got %q, %v", text, err)
	}
	if got := p.stderr(); got != "" {
		t.Errorf("stderr: got %q, want nothing", got)
	}
}

func TestALogFileThatCannotBeOpenedIsTold(t *testing.T) {
	dir := t.TempDir()
	file := write(t, "seqproxy.toml", fmt.Sprintf(`
unknown_user = "backend"
[log]
output = %q
[[sequence.server]]
address = "127.0.0.1:1"
user = "root"
[[shard]]
name = "s"
[[shard.node]]
address = "127.0.0.1:1"
`, dir))
	p := begin(t, "-config", file)
	p.end(1)
	if got, want := p.stderr(), "seqproxy: log.output: "+dir+" is a directory: name a file in it\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
