package main

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// A change through one proxy also holds for the other. A RESTART to a lower number needs no help
// after a proxy was killed.
func TestChangesHoldForOtherProxiesAlsoAfterOneWasKilled(t *testing.T) {
	s := mysqltest.Start(t) // a server of its own, since the schema has a fixed name
	start := func() *process {
		return begin(t, "-backend", s.Addr(), "-user", "root", "-listen", "127.0.0.1:0")
	}
	ask := func(p *process, sql string) string { return query(t, p.address(), "root", "", sql) }
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	first, second := start(), start()
	check("first", ask(first, "CREATE SEQUENCE photos CACHE 10; SELECT NEXTVAL('photos')"), "1")
	if got := ask(second, "SELECT NEXTVAL('photos')"); got == "1" {
		t.Errorf("the second proxy gave 1, too")
	}
	check("INCREMENT", ask(first, "ALTER SEQUENCE photos INCREMENT BY 100 RESTART WITH 1000; SELECT NEXTVAL('photos'), NEXTVAL('photos')"), "1000\t1100")
	deadline := time.Now().Add(patience)
	for got := ""; len(got) < 4; got = ask(second, "SELECT NEXTVAL('photos')") {
		if time.Now().After(deadline) {
			t.Fatalf("%v after the restart the second proxy gives %s", patience, got)
		}
	}
	const again = "ALTER SEQUENCE photos INCREMENT BY 1 RESTART WITH 1 FORCE"
	output, err := client(t, first.address(), "root", "", "-e", again)
	if err == nil || !strings.Contains(output, "process "+strconv.Itoa(second.cmd.Process.Pid)+", registered") || !strings.Contains(output, "stop it first") {
		t.Errorf("got %q, %v; want an error that names the other proxy", output, err)
	}
	second.signal(syscall.SIGKILL)
	second.end(-1)
	check("RESTART FORCE after kill -9", ask(first, again+"; SELECT NEXTVAL('photos')"), "1")
	first.await("dead proxy removed")

	// The error names a proxy that died on another machine.
	s.Exec(t, "INSERT INTO seqproxy.sequence_proxy (id, host, since, heartbeat, version) VALUES ('gone', 'web7, process 12', UTC_TIMESTAMP(), UTC_TIMESTAMP() - INTERVAL 1 HOUR, 3)")
	output, err = client(t, first.address(), "root", "", "-e", again)
	if err == nil || !strings.Contains(output, "web7, process 12") || !strings.Contains(output, "DELETE FROM `seqproxy`.`sequence_proxy`") {
		t.Errorf("got %q, %v; want an error that names the dead proxy and how to remove it", output, err)
	}
	_, remedy, _ := strings.Cut(output, "for good: ")
	remedy, _, _ = strings.Cut(remedy, ")")
	s.Exec(t, remedy)
	check("after the remedy", ask(first, "ALTER SEQUENCE photos RESTART WITH 1 FORCE; SELECT NEXTVAL('photos')"), "1")
}
