package main

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// The worker_id of a proxy comes from its environment, as for a pod. The proxy is killed, or
// stopped, and started again, and another proxy is started with the same id.
func TestAProxyWithAWorkerIDIsStartedAgain(t *testing.T) {
	s := mysqltest.Start(t) // a server of its own, since the schema has a fixed name
	config := write(t, "seqproxy.toml", apart+`
admin_users = ["root"]
[[user]]
name = "root"
[sequence]
worker_id_env = "POD_INDEX"
`+sequencesAt(s.Addr()))
	given := make(map[uint64]bool)
	note := func(p *process, text string) {
		t.Helper()
		key, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err != nil || given[key] {
			t.Fatalf("got %q, %v; given before: %t", text, err, given[key])
		}
		given[key] = true
		got := query(t, p.address(), "root", "", "SELECT SEQUENCE_DECODE('photos', "+text+")")
		if parts := strings.Split(got, "\t"); len(parts) < 5 || parts[4] != "3" {
			t.Errorf("the key %s is %q, want worker 3", text, got)
		}
	}
	take := func(p *process) {
		t.Helper()
		for range 5 {
			note(p, query(t, p.address(), "root", "", "SELECT NEXTVAL('photos')"))
		}
	}
	refused := func(p *process, want string) {
		t.Helper()
		output, err := client(t, p.address(), "root", "", "-N", "-e", "SELECT NEXTVAL('photos')")
		if err == nil || !strings.Contains(output, "1105") || !strings.Contains(output, "worker 3, which is the worker_id of this proxy, is in use for ") || !strings.Contains(output, want) {
			t.Errorf("got %q, %v, want an error with %q", output, err, want)
		}
	}
	env := []string{"POD_INDEX=3"}
	first := beginIn(t, env, "-config", config)
	query(t, first.address(), "root", "", "CREATE SEQUENCE photos SNOWFLAKE OUTAGE_COVER 10")
	take(first)
	second := beginIn(t, env, "-config", config)
	refused(second, ", process "+strconv.Itoa(first.cmd.Process.Pid)+", worker 3: give each proxy another worker_id")
	second.signal(syscall.SIGTERM)
	second.end(0)
	take(first)

	first.signal(syscall.SIGTERM)
	first.end(0)
	third := beginIn(t, env, "-config", config)
	take(third) // at once

	third.signal(syscall.SIGKILL)
	third.end(-1)
	fourth := beginIn(t, env, "-config", config)
	refused(fourth, "or one that was killed")
	if testing.Short() {
		return // ticks are reserved for 20 seconds at least
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		output, err := client(t, fourth.address(), "root", "", "-N", "-e", "SELECT NEXTVAL('photos')")
		if err == nil {
			note(fourth, strings.TrimSpace(output))
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no key after a kill: %s", output)
		}
	}
	take(fourth)
}
