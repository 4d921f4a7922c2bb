package clients_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// ctrlCEndsTheStatement interrupts the command-line client. The client kills its statement over a
// second connection, using the id from its greeting.
func ctrlCEndsTheStatement(t *testing.T, p *place) {
	interrupt := func(addr string) string {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		command := slices.Concat([]string{p.tool(t, "")}, p.account(t, addr), []string{"--force", "--batch", "--unbuffered"})
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.WaitDelay = 5 * time.Second
		var out bytes.Buffer
		cmd.Stdin = strings.NewReader("SELECT SLEEP(50);\nSELECT 'goes on';\n")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.awaitSleep(t)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its output has the result
		if ctx.Err() != nil {
			t.Fatalf("the client did not end after Ctrl-C; it printed %s", out.String())
		}
		return out.String()
	}
	want := interrupt(p.server.Addr())
	got := interrupt(p.proxy)
	if got != want {
		t.Errorf("Ctrl-C: %s", difference(got, want))
	}
	if !strings.Contains(want, "goes on") {
		t.Errorf("direct: got %q, want the next statement to run", want)
	}
}

// awaitSleep waits until the account's statement sleeps on the server. It is the only one without a
// schema.
func (p *place) awaitSleep(t *testing.T) {
	t.Helper()
	db := p.open(t, p.server.Addr(), "", nil)
	var n int
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE user = '" + user + "' AND db IS NULL AND state = 'User sleep'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			return
		}
	}
	t.Fatal("the statement does not run")
}
