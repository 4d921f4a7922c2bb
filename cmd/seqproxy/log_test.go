package main

import (
	"bufio"
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

func logOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
	text := logOf(t, path)
	if !strings.HasPrefix(text, `{"level":"info","ts":"`) || !strings.Contains(text, `"event":"stopped"`) {
		t.Errorf("the end of the log: got %q", text)
	}
	if got := p.stderr(); got != "" {
		t.Errorf("stderr: got %q, want nothing", got)
	}
}

// TestSignalsCountWhileAStopWaitsForClients: such a wait may take days.
func TestSignalsCountWhileAStopWaitsForClients(t *testing.T) {
	server := mysqltest.Shared(t)
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE IF EXISTS seqproxy") })
	path := filepath.Join(t.TempDir(), "seqproxy.log")
	p := begin(t, "-config", write(t, "seqproxy.toml", inFront(server, "admin_users = ['alice']", fmt.Sprintf("[[user]]\nname = 'alice'\npassword = 'a'\n[log]\nformat = 'json'\noutput = %q\n", path))))
	awaitInFile(t, path, `"event":"listening"`)
	_, rest, _ := strings.Cut(logOf(t, path), `"address":"`)
	address, _, _ := strings.Cut(rest, `"`)
	c, err := connectTo(t, address, "alice", "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ExecContext(t.Context(), "SEQPROXY SHUTDOWN WAIT_FOR_CLIENTS"); err != nil {
		t.Fatal(err)
	}
	awaitInFile(t, path, `"event":"waiting for all clients to leave"`)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGUSR1)
	awaitInFile(t, path, `"event":"log file opened again"`)
	p.signal(syscall.SIGHUP)
	awaitInFile(t, path, `"event":"not reloaded","err":"the proxy is stopping"`)
	if got := firstValue(c, "SELECT 7"); got != "7" {
		t.Errorf("the client that it waits for: got %s", got)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
	if !strings.Contains(logOf(t, path), `"event":"stopped"`) {
		t.Error("the new file has no end of the log")
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

// TestAReaderOfTheLogThatLeavesEndsNothing closes the pipe that stderr is. The lines of the stop
// cannot be written then, and it is in order all the same.
func TestAReaderOfTheLogThatLeavesEndsNothing(t *testing.T) {
	file := write(t, "seqproxy.toml", apart+"unknown_user = \"backend\"\n"+sequencesAt("127.0.0.1:1")+shardAt("s", "127.0.0.1:1"))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(t, nil, exe, "-config", file)
	p.cmd.Stderr = writer
	p.start()
	_ = writer.Close() // the program has its own
	_ = reader.SetReadDeadline(time.Now().Add(patience))
	lines := bufio.NewScanner(reader)
	for listens := false; !listens; listens = strings.Contains(lines.Text(), "listening") {
		if !lines.Scan() {
			t.Fatalf("the log ends before the proxy listens: %v", lines.Err())
		}
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}
