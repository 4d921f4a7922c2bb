package mysqld

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"
)

// helperDir makes the test binary a parent that starts a server and waits to be killed.
const helperDir = "MYSQLD_TEST_PARENT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		beParent(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// beParent starts a server as a program would and prints its process id. It then lets threads end,
// which must not kill the server.
func beParent(dir string) {
	bin, err := Find(os.Getenv("SEQPROXY_TEST_SERVER"))
	if err == nil {
		var s *Server
		if s, err = Start(context.Background(), Config{Binary: bin, Dir: dir}); err == nil {
			for range 8 {
				ended := make(chan struct{})
				go func() { // ends its thread: locked and never unlocked
					runtime.LockOSThread()
					close(ended)
				}()
				<-ended
			}
			time.Sleep(100 * time.Millisecond)
			fmt.Println("pid", s.PID(), s.Running())
			select {}
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

func binary(t *testing.T) Binary {
	t.Helper()
	b, err := Find(os.Getenv("SEQPROXY_TEST_SERVER"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	if cfg.Binary.Path == "" {
		cfg.Binary = binary(t)
	}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func query(t *testing.T, addr, text string) string {
	t.Helper()
	got, err := tryQuery(addr, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return got
}

func tryQuery(addr, text string) (got string, err error) {
	db, err := sql.Open("mysql", "root@tcp("+addr+")/")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRow(text).Scan(&got)
	return got, err
}

// gone waits until no process has this id.
func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) {
			return
		}
	}
	t.Fatalf("process %d still runs", pid)
}

// zombie reports whether the process has ended and no parent has asked for its status. In a
// container the first process may never do that.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(stat), ") ")
	return ok && strings.HasPrefix(rest, "Z")
}

func TestAServerAnswersOnItsAddressAndSocket(t *testing.T) {
	s := start(t, Config{})
	if got := query(t, s.Addr(), "SELECT @@port"); got != strconv.Itoa(s.Port()) {
		t.Errorf("port: got %s, want %d", got, s.Port())
	}
	if got := query(t, s.Addr(), "SELECT VERSION()"); !strings.HasPrefix(got, s.Version()) {
		t.Errorf("version: got %s, want %s", got, s.Version())
	}
	if got := query(t, s.Addr(), "SELECT @@socket"); got != s.Socket() {
		t.Errorf("socket: got %s, want %s", got, s.Socket())
	}
	if _, err := os.Stat(s.Socket()); err != nil {
		t.Error(err)
	}
	if got := query(t, s.Addr(), "SELECT COUNT(*) FROM mysql.user WHERE User=''"); got != "0" {
		t.Errorf("anonymous users: got %s, want 0", got)
	}
	if host, _, err := net.SplitHostPort(s.Addr()); err != nil || host != "127.0.0.1" {
		t.Errorf("address: got %s (%v), want one on 127.0.0.1", s.Addr(), err)
	}
	if got := query(t, s.Addr(), "SELECT @@bind_address"); got != "127.0.0.1" {
		t.Errorf("bind address: got %s, want 127.0.0.1", got)
	}
}

func TestRootLogsInOverTCPWithoutNameResolution(t *testing.T) {
	s := start(t, Config{SkipNameResolve: true, ExtraArgs: []string{"--sql-mode=ANSI"}})
	if got := query(t, s.Addr(), "SELECT CURRENT_USER()"); got != "root@127.0.0.1" {
		t.Errorf("user: got %s, want root@127.0.0.1", got)
	}
	if got := query(t, s.Addr(), "SELECT @@sql_mode"); !strings.Contains(got, "ANSI_QUOTES") {
		t.Errorf("sql_mode: got %s, want the extra argument's ANSI", got)
	}
}

func TestDataSurvivesKillRestartAndASecondStart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir})
	db, err := sql.Open("mysql", "root@tcp("+s.Addr()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the server goes away under it
	for _, text := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT) ENGINE=InnoDB", "INSERT INTO d.t VALUES (7)"} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}

	pid, addr := s.PID(), s.Addr()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	if s.Running() {
		t.Error("Running: got true after Kill")
	}
	if err := s.Crashed(); err != nil {
		t.Errorf("Crashed after Kill: got %v, want nil", err)
	}
	if err := s.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Wait after Kill: got %v, want an error that says killed", err)
	}
	if _, err := tryQuery(addr, "SELECT 1"); err == nil {
		t.Error("the server answers after Kill")
	}
	// MySQL leaves a file with the id of the process that has its socket. Another process may soon
	// get that id.
	if err := os.WriteFile(s.Socket()+".lock", []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != addr || s.PID() == pid {
		t.Errorf("after Restart: got %s pid %d, want %s and another pid than %d", s.Addr(), s.PID(), addr, pid)
	}
	if got := query(t, addr, "SELECT id FROM d.t"); got != "7" {
		t.Errorf("row after Kill and Restart: got %s, want 7", got)
	}
	if err := s.Restart(t.Context()); err != nil { // of one that runs
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("Wait after Stop: got %v, want nil", err)
	}

	again := start(t, Config{Dir: dir})
	if got := query(t, again.Addr(), "SELECT id FROM d.t"); got != "7" {
		t.Errorf("row after a second Start: got %s, want 7", got)
	}
	_, err = Start(t.Context(), Config{Binary: again.Binary(), Dir: dir})
	if !errors.Is(err, ErrDirInUse) {
		t.Errorf("a second server in one directory: got %v, want ErrDirInUse", err)
	}
}

func TestDoneIsClosedWhenTheServerEndsByItself(t *testing.T) {
	s := start(t, Config{})
	done := s.Done()
	select {
	case <-done:
		t.Fatal("Done is closed while the server runs")
	default:
	}
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("Done is not closed after the server's end")
	}
	if err := s.Crashed(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Crashed: got %v, want an error that says killed", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Crashed(); err != nil {
		t.Errorf("Crashed of a server that runs: got %v, want nil", err)
	}
}

func TestAPathTooLongForASocketGetsAShortOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	s := start(t, Config{Dir: dir})
	if len(s.Socket()) > maxSocketPath {
		t.Errorf("socket path of %d bytes: %s", len(s.Socket()), s.Socket())
	}
	query(t, s.Addr(), "SELECT 1")
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(s.Socket())); !os.IsNotExist(err) {
		t.Errorf("the socket's directory after Stop: got %v, want it gone", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Errorf("Restart after Stop: %v", err)
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // it is only in the way
	port := ln.Addr().(*net.TCPAddr).Port
	_, err = Start(t.Context(), Config{Binary: binary(t), Dir: t.TempDir(), Port: port})
	if !errors.Is(err, errPortInUse) || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("got %v, want that %s is in use", err, ln.Addr())
	}
}

func TestAFailedStartShowsTheLogAndLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	_, err := Start(t.Context(), Config{Binary: binary(t), Dir: dir, ExtraArgs: []string{"--no-such-option"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Fatalf("got %v, want an error with the log's complaint about --no-such-option", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		t.Fatalf("the directory is still locked: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestACancelledStartLeavesNoServer(t *testing.T) {
	dir := t.TempDir()
	b := binary(t)
	if err := Init(t.Context(), b, filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if s, err := Start(ctx, Config{Binary: b, Dir: dir}); err == nil {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		t.Skip("the server answered within 20 ms; nothing was cancelled")
	} else if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		t.Fatalf("a server still runs: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// Another process that is started at the same moment has the lock until it runs its program.
func TestALockThatIsFreeSoonIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	of, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = of.Close() })
	lock, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestInitRefusesADirectoryThatHoldsSomething(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Init(t.Context(), binary(t), dir)
	if err == nil || !strings.Contains(err.Error(), `"mine"`) {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func TestACancelledInitLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := Init(ctx, binary(t), filepath.Join(dir, "data"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want context.DeadlineExceeded", err)
	}
	remains, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(remains) != 0 {
		t.Errorf("got the files %v, want none", remains)
	}
}

func TestTheServerDiesWithAKilledParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), helperDir+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var (
		pid     int
		running bool
	)
	if _, scanErr := fmt.Sscanf(line, "pid %d %t", &pid, &running); scanErr != nil {
		t.Fatalf("the parent says %q (%v)", line, err)
	}
	if !running || syscall.Kill(pid, 0) != nil {
		t.Errorf("server %d does not run after other threads of its parent ended", pid)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Error("the parent was not killed")
	}
	gone(t, pid)
}

func TestTheServerIsOutOfTheTerminalsReach(t *testing.T) {
	s := start(t, Config{})
	group, err := syscall.Getpgid(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	if group == syscall.Getpgrp() {
		t.Error("the server is in the test's process group: Ctrl-C would end it first")
	}
}

func TestFindNamesWhatIsWrong(t *testing.T) {
	script := filepath.Join(t.TempDir(), "mysqld")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho hello\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(script); err == nil || !strings.Contains(err.Error(), "neither mariadbd nor mysqld") {
		t.Errorf("another program: got %v", err)
	}
	if _, err := Find("/nonexistent/mysqld"); err == nil || !strings.Contains(err.Error(), "/nonexistent/mysqld") {
		t.Errorf("a missing path: got %v", err)
	}

	dirs := extraDirs
	extraDirs = nil
	defer func() { extraDirs = dirs }()
	t.Setenv("PATH", t.TempDir())
	if _, err := Find(""); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "install") {
		t.Errorf("no server: got %v, want ErrNotFound with the command to install one", err)
	}
	if _, err := FindClient(); !errors.Is(err, ErrNotFound) {
		t.Errorf("no client: got %v, want ErrNotFound", err)
	}
}

func TestFindTellsFlavoursApart(t *testing.T) {
	for _, test := range []struct {
		says    string
		flavour Flavour
		version string
		since93 bool
	}{
		{"mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)", MariaDB, "10.11.6", true},
		{"/usr/sbin/mysqld  Ver 9.7.4 for Linux on x86_64 (Debian)", MySQL, "9.7.4", true},
		{"mysqld  Ver 8.0.36-0ubuntu0.22.04.1 for Linux on x86_64 ((Ubuntu))", MySQL, "8.0.36", false},
	} {
		script := filepath.Join(t.TempDir(), "mysqld")
		if err := os.WriteFile(script, []byte("#!/bin/sh\necho '"+test.says+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		b, err := Find(script)
		if err != nil {
			t.Errorf("%s: %v", test.says, err)
			continue
		}
		if b.Flavour != test.flavour || b.Version != test.version || b.AtLeast(9, 3) != test.since93 {
			t.Errorf("%s: got %v, 9.3 or newer %t", test.says, b, b.AtLeast(9, 3))
		}
	}
}

// A starting server removes files that look like temporary tables from its temporary directory. In
// the system's directory they may belong to a running server.
func TestInitLeavesTemporaryTablesOfOthersAlone(t *testing.T) {
	shared := t.TempDir()
	t.Setenv("TMPDIR", shared)
	var files []string
	for _, name := range []string{"#sql-temptable-7e48-1-3.MAI", "#sql-temptable-7e48-1-3.MAD", "#sql-temptable-7e48-1-3.frm"} {
		file := filepath.Join(shared, name)
		if err := os.WriteFile(file, []byte("another server's"), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	s := start(t, Config{Dir: filepath.Join(t.TempDir(), "server")})
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("a file of another server: %v", err)
		}
	}
}

func TestAComplaintIsWhatSaysWhy(t *testing.T) {
	out := "Installing system tables ...\n2026-11-20 0 [ERROR] InnoDB: no space\nERROR: 29  File not found\n\nPlease check all of the above\n"
	if got, want := complaint([]byte(out)), "2026-11-20 0 [ERROR] InnoDB: no space\nERROR: 29  File not found"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := complaint([]byte("something\n\nelse\n")), "something\nelse"; got != want {
		t.Errorf("without an error in it: got %q, want %q", got, want)
	}
}
