package clients_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// binlogIsReadAndFollowed reads a whole binary log and follows a growing one. That is a stream
// without an end: the proxy passes it on until one side leaves.
func binlogIsReadAndFollowed(t *testing.T, p *place) {
	p.server.Exec(t, "DROP DATABASE IF EXISTS logged", "CREATE DATABASE logged", "FLUSH BINARY LOGS", "USE logged",
		"CREATE TABLE t (n INT PRIMARY KEY, data LONGBLOB)", "INSERT INTO t VALUES (1, 'one')",
		"INSERT INTO t VALUES (2, REPEAT('x', 3000000))", "UPDATE t SET data = 'uno' WHERE n = 1")
	file := p.binlog(t)
	p.server.Exec(t, "FLUSH BINARY LOGS")
	if got := p.both(t, nil, "binlog", "--read-from-remote-server", "--base64-output=DECODE-ROWS", "-vv", file); !strings.Contains(got, "'uno'") {
		t.Errorf("the log does not have the last statement: %.2000s", got)
	}
	if _, errs := p.try(t, p.proxy, "", "binlog", "--read-from-remote-server", "no_such_log.000001"); !strings.Contains(errs, "Could not find first log file") {
		t.Errorf("a log that is not there: got %q", errs)
	}

	// Following: what is written now arrives at once.
	command := slices.Concat([]string{p.tool(t, "binlog")}, p.account(t, p.proxy),
		[]string{"--read-from-remote-server", "--stop-never", "--base64-output=DECODE-ROWS", "-vv", p.binlog(t)})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	await := func(text string) {
		t.Helper()
		for line := range lines {
			if strings.Contains(line, text) {
				return
			}
		}
		t.Errorf("the stream ended before %q came", text)
	}
	for i := range 3 {
		word := fmt.Sprintf("followed %d", i)
		p.server.Exec(t, "USE logged", fmt.Sprintf("INSERT INTO t VALUES (%d, '%s')", 10+i, word))
		await(word)
	}
	p.awaitDumps(t, 1)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range lines {
	}
	_ = cmd.Wait() // killed
	p.awaitDumps(t, 0)
}

// binlog is the name of the log that is written now.
func (p *place) binlog(t *testing.T) string {
	t.Helper()
	rows, err := p.open(t, p.server.Addr(), "", nil).Query("SHOW BINARY LOGS")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // Err tells
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	for rows.Next() {
		at := make([]any, len(columns))
		for i := range at {
			at[i] = new(any)
		}
		at[0] = &name
		if err := rows.Scan(at...); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return name
}

// awaitDumps waits until that many connections read the server's log. A server may notice only at
// its next event that a reader has left.
func (p *place) awaitDumps(t *testing.T, want int) {
	t.Helper()
	db := p.open(t, p.server.Addr(), "", nil)
	var got int
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		p.server.Exec(t, "UPDATE logged.t SET data = UUID() WHERE n = 1")
		if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got == want {
			return
		}
	}
	t.Errorf("connections that read the log: got %d, want %d", got, want)
}
