package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
	"seqproxy/test/mysqltest"
)

// asProgram is the environment variable that makes the test binary the program.
const asProgram = "SEQPROXY_TEST_AS_PROGRAM"

// sandboxed puts the process into a sandbox if the environment asks for it. It may be nil.
var sandboxed func()

func TestMain(m *testing.M) {
	if sandboxed != nil {
		sandboxed()
	}
	if os.Getenv(asProgram) == "" {
		mysqltest.Main(m, mysqltest.CheckLeaks())
		return
	}
	go func() { // ends the test process when its parent has ended
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	main()
}

// apart begins a configuration with addresses that no other program uses.
const apart = `
listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
admin.listen = "127.0.0.1:0"
`

// sequencesAt configures one sequence server, with the account root.
func sequencesAt(address string) string {
	return fmt.Sprintf("[[sequence.server]]\naddress = %q\nuser = \"root\"\n", address)
}

// shardAt configures one shard.
func shardAt(name, address string) string {
	return fmt.Sprintf("[[shard]]\nname = %q\n[[shard.node]]\naddress = %q\n", name, address)
}

// patience bounds every wait for the program.
const patience = 60 * time.Second

// process is a run of the program.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended

	mu       sync.Mutex
	out, err bytes.Buffer // guarded by mu
}

// driverPrints begins every line that go-sql-driver prints.
const driverPrints = "[mysql] "

// begin runs the program without the user's environment.
func begin(t *testing.T, args ...string) *process {
	t.Helper()
	return beginIn(t, nil, args...)
}

func beginIn(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return beginCommand(t, env, exe, args...)
}

// beginCommand runs a command that becomes the program.
func beginCommand(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := newProcess(t, env, name, args...)
	p.cmd.Stdout = &lockedWriter{p, &p.out}
	p.start()
	return p
}

// newProcess prepares a command that becomes the program.
func newProcess(t *testing.T, env []string, name string, args ...string) *process {
	p := &process{t: t, cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Env = append([]string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(), "GORACE=atexit_sleep_ms=0"}, env...)
	p.cmd.Stderr = &lockedWriter{p, &p.err}
	return p
}

// start runs the program until the test ends.
func (p *process) start() {
	t := p.t
	t.Helper()
	stdin, err := p.cmd.StdinPipe() // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the status is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		_ = stdin.Close()
		if printed := p.stderr(); strings.Contains(printed, driverPrints) {
			t.Errorf("go-sql-driver prints among the log lines:\n%s", printed)
		}
		if t.Failed() {
			t.Logf("seqproxy %s\n--- stdout\n%s--- stderr\n%s", strings.Join(p.cmd.Args[1:], " "), p.stdout(), p.stderr())
		}
	})
}

type lockedWriter struct {
	p *process
	b *bytes.Buffer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.b.Write(b)
}

func (p *process) stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err.String()
}

// await waits until the program has written text to stdout or stderr.
func (p *process) await(text string) {
	p.t.Helper()
	p.awaitCount(text, 1)
}

// awaitCount waits until it has written a text that many times.
func (p *process) awaitCount(text string, times int) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if strings.Count(p.stdout()+p.stderr(), text) >= times {
			return
		}
		select {
		case <-p.ended:
			if strings.Count(p.stdout()+p.stderr(), text) >= times {
				return
			}
			p.t.Fatalf("the program ended with %v before it printed %q", p.cmd.ProcessState, text)
		default:
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the program did not say %q in %v", text, patience)
		}
	}
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the program's end and checks its exit status. -1 means the end by a signal.
func (p *process) end(want int) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("the program still runs after %v", patience)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != want {
		p.t.Fatalf("exit status: got %d (%v), want %d", got, p.cmd.ProcessState, want)
	}
}

// address returns the proxy's address, from its log.
func (p *process) address() string {
	p.t.Helper()
	p.await(`"version"`)
	_, rest, ok := strings.Cut(p.stderr(), `"address": "`)
	address, _, ok2 := strings.Cut(rest, `"`)
	if !ok || !ok2 {
		p.t.Fatal("the log does not say where the proxy listens")
	}
	return address
}

// client runs statements with the command-line client and returns its whole output.
func client(t *testing.T, address, user, password string, args ...string) (output string, err error) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	program, err := mysqld.FindClient() // any client will do; the options depend on the client
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program,
		append([]string{"--no-defaults", "-h", host, "-P", port, "-u", user, "--password=" + password}, args...)...)
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// plain returns the client's options for a login without TLS that does not send the password in
// clear.
func plain(t *testing.T) []string {
	t.Helper()
	program, err := mysqld.FindClient()
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(program) == "mysql" {
		if out, err := exec.Command(program, "--version").Output(); err == nil && !strings.Contains(string(out), "MariaDB") {
			return []string{"--ssl-mode=DISABLED", "--get-server-public-key"}
		}
	}
	return []string{"--skip-ssl"}
}

// query runs statements and returns their output.
func query(t *testing.T, address, user, password, sql string, args ...string) string {
	t.Helper()
	output, err := client(t, address, user, password, append(args, "-N", "-e", sql)...)
	if err != nil {
		t.Fatalf("%s: %v: %s", sql, err, output)
	}
	return strings.TrimSuffix(output, "\n")
}

// write makes a file and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serverPIDs reads the pid files of a playground's two servers.
func serverPIDs(t *testing.T, home string) (pids []int) {
	t.Helper()
	for i := range exampleSchemas {
		text, err := os.ReadFile(filepath.Join(home, "server"+strconv.Itoa(i), "mysqld.pid"))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("server %d with pid %d does not run: %v", i, pid, err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// awaitServersGone waits until no server runs in a playground's directory. A server locks its
// directory as long as it lives. Its pid may stay behind as a zombie.
func awaitServersGone(t *testing.T, home string) {
	t.Helper()
	for i := range exampleSchemas {
		f, err := os.Open(filepath.Join(home, "server"+strconv.Itoa(i), "lock"))
		if err != nil {
			t.Fatal(err)
		}
		err = syscall.EWOULDBLOCK
		for deadline := time.Now().Add(30 * time.Second); errors.Is(err, syscall.EWOULDBLOCK) && time.Now().Before(deadline); {
			if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if err != nil {
			t.Errorf("server %d still runs: %v", i, err)
		}
		_ = f.Close()
	}
}

// inFile replaces FILE and DIR in a text by a file's path and its directory.
func inFile(file, text string) string {
	return strings.NewReplacer("FILE", file, "DIR", filepath.Dir(file)).Replace(text)
}
