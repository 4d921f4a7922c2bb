package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"seqproxy/test/mysqltest"
)

// openTerminal returns both ends of a pseudo terminal.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

func TestSIGHUPReloadsUnlessTheTerminalIsGone(t *testing.T) {
	s := mysqltest.Shared(t)
	t.Cleanup(func() { s.Exec(t, "DROP DATABASE IF EXISTS seqproxy") })
	// The tests may run under nohup. A signal that is caught here is not ignored in a child.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	for _, nohup := range []bool{false, true} {
		t.Run(fmt.Sprintf("nohup=%v", nohup), func(t *testing.T) {
			ours, theirs := openTerminal(t)
			defer ours.Close()
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			args := []string{exe, "-backend", s.Addr(), "-user", "root", "-listen", "127.0.0.1:0"}
			if nohup {
				args = append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh"}, args...)
			}
			p := &process{t: t, cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
			p.cmd.Env = []string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir()}
			p.cmd.ExtraFiles = []*os.File{theirs} // not as its input, which must end with the test
			stdin, err := p.cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			p.cmd.Stdout, p.cmd.Stderr = &lockedWriter{p, &p.out}, &lockedWriter{p, &p.err}
			p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
			if err := p.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			theirs.Close()
			go func() {
				_ = p.cmd.Wait() // the status is in ProcessState
				close(p.ended)
			}()
			t.Cleanup(func() {
				_ = p.cmd.Process.Kill()
				<-p.ended
			})
			p.await("listening")
			var files unix.Rlimit
			if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &files); err != nil {
				t.Fatal(err)
			}
			for i := 1; i <= 3; i++ {
				limit := files
				if i == 2 { // no file can be opened, not even the terminal, which still exists
					limit.Cur = 3
				}
				if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
					t.Fatal(err)
				}
				p.signal(syscall.SIGHUP)
				for end := time.Now().Add(patience); strings.Count(p.stderr(), "reloaded") < i; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("SIGHUP %d made no reload:\n%s", i, p.stderr())
					}
				}
			}
			ours.Close() // the kernel sends SIGHUP
			if !nohup {
				p.end(0)
				return
			}
			time.Sleep(300 * time.Millisecond)
			select {
			case <-p.ended:
				t.Fatal("the program ended with its terminal in spite of nohup")
			default:
			}
			if got := strings.Count(p.stderr(), "reloaded"); got != 3 {
				t.Errorf("got %d reloads, want 3: a terminal that is closed wishes none", got)
			}
			p.signal(syscall.SIGTERM)
			p.end(0)
		})
	}
}
