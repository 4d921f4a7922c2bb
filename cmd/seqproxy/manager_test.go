package main

import (
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// manager is a service manager's socket.
type manager struct {
	t    *testing.T
	path string
	conn *net.UnixConn
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &manager{t: t, path: path, conn: conn}
}

// next is the next message.
func (m *manager) next() string {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		m.t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := m.conn.Read(b)
	if err != nil {
		m.t.Fatalf("no message: %v", err)
	}
	return string(b[:n])
}

// beginManaged begins a proxy that tells a service manager of itself. Its admin is app.
func beginManaged(t *testing.T) (*manager, *process) {
	t.Helper()
	m := newManager(t)
	return m, beginIn(t, []string{"NOTIFY_SOCKET=" + m.path}, "-config", write(t, "seqproxy.toml", apart+`
drain.grace = "1s"
drain.timeout = "20s"
admin_users = ["app"]
[[user]]
name = "app"
`+sequencesAt(mysqltest.Shared(t).Addr())))
}

func TestTheServiceManagerIsTold(t *testing.T) {
	m, p := beginManaged(t)
	first := m.next()
	address := p.address()
	if want := "READY=1\nSTATUS=listening on " + address; first != want {
		t.Errorf("first message: got %q, want %q", first, want)
	}
	c, err := net.Dial("tcp", address) // the proxy already listened when it said so
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	p.signal(syscall.SIGHUP)
	if got := m.next(); !regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[1-9]\d*$`).MatchString(got) {
		t.Errorf("message at a reload: got %q", got)
	}
	if got := m.next(); !strings.HasPrefix(got, "READY=1\n") {
		t.Errorf("message after the reload: got %q", got)
	}
	p.signal(syscall.SIGTERM)
	// Grace, timeout and 10 seconds more.
	if got, want := m.next(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=31000000"; got != want {
		t.Errorf("last message: got %q, want %q", got, want)
	}
	p.end(0)
}

// A service manager gives a stop a limited time. So it hears of the stop when all clients have
// left.
func TestTheServiceManagerIsToldOfAStopWhenClientsHaveLeft(t *testing.T) {
	m, p := beginManaged(t)
	m.next()
	open := func(address string) *sql.DB {
		db, err := sql.Open("mysql", "app@tcp("+address+")/")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	client := open(p.address())
	if err := client.Ping(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(p.adminAddress()).Exec("SEQPROXY SHUTDOWN WAIT_FOR_CLIENTS"); err != nil {
		t.Fatal(err)
	}
	p.await("waiting for all clients to leave")
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	// Timeout and 10 seconds more: grace is over.
	if got, want := m.next(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000"; got != want {
		t.Errorf("last message: got %q, want %q", got, want)
	}
	p.end(0)
}

func TestAServiceManagerThatIsGoneIsNoReasonNotToServe(t *testing.T) {
	s := mysqltest.Shared(t)
	account(t, "unmanaged", "ALL ON seqproxy.*")
	p := beginIn(t, []string{"NOTIFY_SOCKET=/nowhere/notify"}, "-backend", s.Addr(), "-user", "unmanaged", "-password-file", write(t, "password", "secret\n"),
		"-listen", "127.0.0.1:0")
	p.await("service manager not told")
	if got := query(t, p.address(), "unmanaged", "secret", "SELECT 1", plain(t)...); got != "1" {
		t.Errorf("got %q, want 1", got)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}

func TestHealthAsksTheProxyThatRunsHere(t *testing.T) {
	p := begin(t, "-config", write(t, "seqproxy.toml", `
listen = "127.0.0.1:0"
admin.listen = ""
http.listen = "0.0.0.0:0"
[log]
format = "json"
[[user]]
name = "app"
[[sequence.server]]
address = "127.0.0.1:1"
user = "nobody"
[[shard]]
name = "gone"
[[shard.node]]
address = "127.0.0.1:1"
`))
	p.await(`"http":"`)
	_, rest, _ := strings.Cut(p.stderr(), `"http":"`)
	address, _, _ := strings.Cut(rest, `"`)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatalf("%q: %v", address, err)
	}
	alive := begin(t, "health", "-http", "0.0.0.0:"+port)
	alive.end(0)
	if !strings.Contains(alive.stdout(), "ok") {
		t.Errorf("got %q", alive.stdout())
	}
	ready := begin(t, "health", "-http", "127.0.0.1:"+port, "-ready")
	ready.end(1) // all servers are gone
	if !strings.Contains(ready.stderr(), "/readyz says 503 Service Unavailable: {") {
		t.Errorf("got %q", ready.stderr())
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
	gone := begin(t, "health", "-http", "127.0.0.1:"+port)
	gone.end(1)
}
