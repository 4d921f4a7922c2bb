package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/test/mysqltest"
)

// process is a proxy in a process of its own.
type process struct {
	t    testing.TB
	cmd  *osexec.Cmd
	Addr string
	done chan error
}

var listening = regexp.MustCompile(`listening.*?"?address"?: ?"([^"]+)"`)

// startProcess builds the program and starts it in front of shard 0's server, without a
// configuration file.
func (e *env) startProcess(t testing.TB) *process {
	t.Helper()
	dir := t.TempDir()
	program := mysqltest.Program(t)
	secret := filepath.Join(dir, "password")
	writeFile(t, secret, e.Password+"\n")
	p := &process{t: t, done: make(chan error, 1)}
	p.cmd = osexec.Command(program, "--backend", e.Servers[0].Addr(), "--user", e.User, "--password-file", secret, "--listen", "127.0.0.1:0", "--admin-listen", "", "--http-listen", "")
	log, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			fmt.Fprintln(&all, lines.Text())
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
		}
		close(address)
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(p.Stop)
	select {
	case p.Addr = <-address:
	case <-time.After(20 * time.Second):
	}
	if p.Addr == "" {
		_ = p.cmd.Process.Kill()
		t.Fatalf("the proxy does not listen: %v\n%s", <-p.done, all.String())
	}
	return p
}

// Stop ends the process with SIGTERM and checks that it exits with 0 and soon.
func (p *process) Stop() {
	if p.done == nil {
		return
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Errorf("SIGTERM: %v", err)
	}
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("the proxy ended with %v", err)
		}
	case <-time.After(15 * time.Second):
		p.t.Error("the proxy does not exit")
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	p.done = nil
}

// memory returns a figure of /proc/PID/status in bytes: VmRSS, or VmHWM, its peak.
func (p *process) memory(field string) int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("no memory figures here: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				p.t.Fatal(err)
			}
			return kb << 10
		}
	}
	p.t.Fatalf("no %s in %s", field, status)
	return 0
}

func TestTheProgramServesOneBackendWithoutAConfiguration(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE DATABASE IF NOT EXISTS seqproxy")
	p := e.startProcess(t)
	schema := e.Schemas[0]
	name := "s_" + e.User
	c := one(t, e.open(t, p.Addr, schema, nil))
	exec(t, c, "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, a INT)", "CREATE SEQUENCE "+name, "INSERT INTO t VALUES (NEXTVAL('"+name+"'), 5)")
	if got := value(t, c, "SELECT CONCAT(id, ' ', a) FROM t"); got != "1 5" {
		t.Errorf("got %s, want 1 5", got)
	}
	exec(t, c, "DROP SEQUENCE "+name)
	err := e.open(t, p.Addr, schema, nil).Ping()
	if err != nil {
		t.Error(err)
	}
	out := withoutTimes(e.CLI(t, p.Addr, schema, "SELECT * FROM t;\nSELECT nothing;"))
	compareTexts(t, out, withoutTimes(e.CLI(t, e.Servers[0].Addr(), schema, "SELECT * FROM t;\nSELECT nothing;")))
	p.Stop()
}

// Checklist 35.
func TestAMillionRowsPassInConstantMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("CI runs it: a million rows")
	}
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE DATABASE IF NOT EXISTS seqproxy")
	p := e.startProcess(t)
	w := e.Wire(t, p.Addr, wireLogin{Schema: e.Schemas[0]})
	w.query("SELECT 1")
	before := p.memory("VmRSS")
	// 100 MB, in the text and in the prepared protocol.
	sql := "SELECT seq, REPEAT('x', 90) FROM " + e.Servers[0].Numbers(1_000_000)
	id := string(w.do(protocol.ComStmtPrepare, sql)[5:9])
	for _, c := range [][]byte{
		command(protocol.ComQuery, sql),
		command(protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00"),
	} {
		w.send(packet(c))
		size := w.drain()
		if size < 90_000_000 {
			t.Errorf("got %d bytes, want the million rows", size)
		}
	}
	if grown := p.memory("VmHWM") - before; grown > 10<<20 {
		t.Errorf("memory grew by %d KB, want less than 10 MB", grown>>10)
	} else {
		t.Logf("memory grew by %d KB from %d KB", grown>>10, before>>10)
	}
}

// drain reads an answer without keeping it, and returns its size.
func (w *wire) drain() (size int) {
	w.t.Helper()
	w.answer.Begin(protocol.ShapeResult, w.caps)
	for {
		n, ev := w.answer.Walk(w.Buffered())
		w.Discard(n)
		size += n
		switch ev {
		case protocol.Done:
			return size
		case protocol.NeedMore:
			if err := w.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
				w.t.Fatal(err)
			}
			if err := w.Fill(); err != nil {
				w.t.Fatal(err)
			}
		default:
			w.t.Fatal("malformed answer")
		}
	}
}
