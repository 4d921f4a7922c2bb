package proxy_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// drain shuts the proxy down in the background and gives its sessions so much time.
func (e *env) drain(patience time.Duration) (done chan error) {
	done = make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		done <- e.Shutdown(ctx)
	}()
	return done
}

// last runs a statement that succeeds, after which the proxy ends the session.
func (w *wire) last(sql string) {
	w.t.Helper()
	w.send(packet(command(protocol.ComQuery, sql)))
	if got := w.receive(protocol.ShapeResult, nil); got[protocol.HeaderSize] != 0 {
		w.t.Errorf("%s: got %q, want OK", sql, got)
	}
	w.ended()
}

func TestADrainEndsSessionsAtTheBorderOfATransaction(t *testing.T) {
	e := newEnv(t, setup{})
	table := e.Schemas[0] + ".t"
	root := e.Wire(t, e.Servers[0].Addr(), wireLogin{})
	e.Servers[0].Exec(t, "CREATE TABLE "+table+" (a INT PRIMARY KEY)")
	login := wireLogin{Schema: e.Schemas[0]}

	idle := e.Wire(t, e.Addr(), login)
	prepared := e.Wire(t, e.Addr(), login)
	prepared.send(packet(command(protocol.ComStmtPrepare, "SELECT ?")))
	if _, err := prepared.receivePrepare(); err != nil {
		t.Fatal(err)
	}
	prepared.query("SET @x = 1")
	begun, aborted, implicit := e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login)
	begun.query("BEGIN")
	begun.query("INSERT INTO t VALUES (1)")
	aborted.query("START TRANSACTION")
	aborted.query("INSERT INTO t VALUES (10)")
	implicit.query("SET autocommit = 0")
	implicit.query("INSERT INTO t VALUES (20)")
	between := e.Wire(t, e.Addr(), login)
	between.query("SET autocommit = 0")
	between.query("INSERT INTO t VALUES (30)")
	between.query("COMMIT")

	done := e.drain(wireTimeout)
	for _, w := range []*wire{idle, prepared, between} {
		// A server that stops closes without an error, too.
		if answer := w.ended(); len(answer) > 0 {
			t.Errorf("before the end: got %q, want nothing", answer)
		}
	}
	begun.query("INSERT INTO t VALUES (2)")
	if got := fmt.Sprint(begun.rows("SELECT GROUP_CONCAT(a ORDER BY a) FROM t")); got != "[1,2,30]" {
		t.Errorf("in the transaction: got %s, want [1,2,30]", got)
	}
	begun.ping("a drain")
	begun.last("COMMIT")
	aborted.last("ROLLBACK")
	implicit.query("INSERT INTO t VALUES (21)")
	implicit.last("COMMIT")
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if got, want := root.rows("SELECT GROUP_CONCAT(a ORDER BY a) FROM " + table)[0], "1,2,20,21,30"; got != want {
		t.Errorf("the rows: got %s, want %s", got, want)
	}
}

func TestADrainCutsATransactionThatDoesNotEnd(t *testing.T) {
	e := newEnv(t, setup{})
	root := e.Wire(t, e.Servers[0].Addr(), wireLogin{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT PRIMARY KEY)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("BEGIN")
	w.query("INSERT INTO t VALUES (1)")
	err := <-e.drain(500 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "1 sessions") {
		t.Errorf("got error %v, want one of 1 session", err)
	}
	w.ended()
	root.query("ALTER TABLE " + e.Schemas[0] + ".t COMMENT 'waits for the transaction'")
	if got := root.rows("SELECT COUNT(*) FROM " + e.Schemas[0] + ".t")[0]; got != "0" {
		t.Errorf("the rows: got %s, want none: it was not committed", got)
	}
}

func TestACommandThatCrossesADrainIsToldThatItWasNotRun(t *testing.T) {
	e := newEnv(t, setup{})
	root := e.Wire(t, e.Servers[0].Addr(), wireLogin{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	w.send(packet(command(protocol.ComQuery, "SELECT SLEEP(1.5)")))
	e.awaitStatement(e.Servers[0], "SELECT SLEEP(1.5)")
	// The second statement is not read before the first has its answer.
	w.send(packet(command(protocol.ComQuery, "INSERT INTO t VALUES (1)")))
	done := e.drain(wireTimeout)
	w.receive(protocol.ShapeResult, nil)
	if answer := w.ended(); !bytes.Contains(answer, []byte("\xff\x1d\x04#08S01Server shutdown in progress")) || answer[3] != 1 {
		t.Errorf("the answer: got %q, want error 1053 in a packet of number 1", answer)
	}
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if got := root.rows("SELECT COUNT(*) FROM " + e.Schemas[0] + ".t")[0]; got != "0" {
		t.Errorf("the rows: got %s, want none", got)
	}
}

func TestAStopGoesStepByStep(t *testing.T) {
	e := newEnv(t, setup{})
	before := e.Wire(t, e.Addr(), wireLogin{})
	if e.Proxy.Draining() {
		t.Error("Accepting is false before the drain")
	}
	e.Proxy.Announce()
	if !e.Proxy.Draining() {
		t.Error("Accepting is true during the drain")
	}
	late := e.Wire(t, e.Addr(), wireLogin{})
	late.ping("the announcement")

	e.Proxy.StopAccepting()
	if nc, err := net.Dial("tcp", e.Addr()); err == nil {
		nc.Close()
		t.Error("a client connects during the drain, want a refusal")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := e.Proxy.Wait(ctx); err == nil {
		t.Error("the wait for sessions ended before they did")
	}
	before.ping("nobody is accepted")
	before.quit()
	late.ping("nobody is accepted")
	late.quit()
	ctx, cancel = context.WithTimeout(context.Background(), wireTimeout)
	defer cancel()
	if err := e.Proxy.Wait(ctx); err != nil {
		t.Errorf("wait for sessions that have ended: %v", err)
	}
	if err := e.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// TestHealthChecksAreNoFailedLogins connects and leaves as load balancers and probes do.
func TestHealthChecksAreNoFailedLogins(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.FailedLogins, o.FailedLoginDelay = 1, time.Second // a failed login would be logged, too
		o.Users = append(o.Users, proxy.User{Name: "check"})
	}})
	for _, when := range []string{"at once", "at once, by a reset", "after the greeting", "after the greeting, by a reset"} {
		nc := dialTCP(t, e.Addr())
		if strings.HasPrefix(when, "after") {
			if _, err := nc.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasSuffix(when, "reset") {
			if err := nc.(*net.TCPConn).SetLinger(0); err != nil {
				t.Fatal(err)
			}
		}
		nc.Close()
		e.awaitSessions(t, 0)
	}
	if binary := haproxyBinary(t); binary == "" {
		t.Log("HAProxy is not there, and checks nothing")
	} else {
		haproxyChecks(t, binary, e.Addr(), "", "option mysql-check", "option mysql-check user check", "option mysql-check user check post-41")
	}
	e.awaitSessions(t, 0)
	for _, line := range e.Logs.All() {
		if line.Level >= zapcore.InfoLevel && (strings.Contains(line.Message, "login") || strings.Contains(line.Message, "session")) {
			t.Errorf("health checks: got the log line %v, want none", line)
		}
	}
}

// haproxyChecks has HAProxy check a server in several ways, each until it reports the server as up.
func haproxyChecks(t *testing.T, binary, to string, checks ...string) {
	t.Helper()
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "haproxy.cfg"), filepath.Join(dir, "s")
	var text strings.Builder
	fmt.Fprintf(&text, "global\n\tstats socket %s\ndefaults\n\tmode tcp\n\ttimeout connect 20s\n\ttimeout client 20s\n\ttimeout server 20s\n\ttimeout check 20s\n", socket)
	for i, check := range checks {
		fmt.Fprintf(&text, "backend b%d\n\t%s\n\tserver proxy %s check inter 50ms\n", i, check, to)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(binary, "-db", "-f", file)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	states := func() (up, listed int) {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			return 0, 0
		}
		defer nc.Close()
		if _, err := nc.Write([]byte("show stat\n")); err != nil {
			return 0, 0
		}
		lines := strings.Split(string(readToEnd(t, nc)), "\n")
		names := strings.Split(lines[0], ",")
		status, checked := slices.Index(names, "check_status"), slices.Index(names, "svname")
		for _, line := range lines[1:] {
			if cells := strings.Split(line, ","); len(cells) == len(names) && cells[checked] == "proxy" {
				listed++
				if cells[status] == "L7OK" || cells[status] == "L4OK" {
					up++
				}
			}
		}
		return up, listed
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		up, listed := states()
		if up == len(checks) && listed == len(checks) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("HAProxy reports %d of %d as up: %s", up, len(checks), out.String())
		}
	}
}

func TestACommandBehindALoginThatADrainMeetsIsAnswered(t *testing.T) {
	const user = "without_password"
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.Users = append(o.Users, proxy.User{Name: user}) }})
	node := mysqltest.NewLink(t, e.Servers[0].Addr())
	e.Reload(t, func(b *backend.Options, _ *proxy.Options) {
		b.Shards[0].Nodes, b.Shards[0].Login = []string{node.Addr()}, &backend.Credentials{User: e.User, Password: e.Password}
	})
	nc, err := net.Dial("tcp", e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Read(make([]byte, 1024)); err != nil { // the greeting
		t.Fatal(err)
	}
	node.Silence()
	flags := protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth | protocol.ConnectWithDB
	login := binary.LittleEndian.AppendUint64(nil, uint64(uint32(flags)))
	login = append(append(login, 45), make([]byte, 23)...)
	login = append(login, user+"\x00\x00"+e.Schemas[0]+"\x00caching_sha2_password\x00"...)
	sent, _ := protocol.AppendPacket(nil, login, 1)
	if _, err := nc.Write(append(sent, packet(command(protocol.ComQuery, "DO 1"))...)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a login that waits for its server", func() bool {
		list := e.Proxy.SessionList()
		return len(list) == 1 && list[0].User == user
	})
	done := e.drain(wireTimeout)
	eventually(t, "the drain", func() bool { return !e.Proxy.Accepting() })
	node.Mend()
	answer, err := io.ReadAll(nc)
	if err != nil {
		t.Fatal(err)
	}
	if n := protocol.PayloadLen(answer) + protocol.HeaderSize; len(answer) <= n || answer[protocol.HeaderSize] != 0 || answer[n+3] != 1 {
		t.Errorf("got %q, want OK to the login, and an answer to the command behind it", answer)
	}
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestADrainDuringALoginIsNoTimeout(t *testing.T) {
	e := newEnv(t, setup{})
	nc, err := net.Dial("tcp", e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Read(make([]byte, 1024)); err != nil { // the greeting
		t.Fatal(err)
	}
	if err := <-e.drain(wireTimeout); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	for _, end := range e.Proxy.Stats().Disconnects {
		if want := map[string]uint64{"drain": 1}[end.Name]; end.N != want {
			t.Errorf("ends by %s: got %d, want %d", end.Name, end.N, want)
		}
	}
}
