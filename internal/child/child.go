// Package child runs programs that must not outlive this one: servers of a test, targets of a
// benchmark.
package child

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Process is a program that runs in the foreground, with its output in a file. It is safe for
// concurrent use.
type Process struct {
	Log  string          // the file with what it wrote
	Done <-chan struct{} // closed when the process is gone

	cmd *exec.Cmd
	err error
}

// Start starts cmd in a process group of its own, so that Ctrl-C reaches only this program, which
// then stops what it started in order. If this program is killed, the process is, too, where the
// system can do that. Its output goes to the file log, which is made anew.
func Start(cmd *exec.Cmd, log string) (*Process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // the process has its own descriptor
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)

	done, started := make(chan struct{}), make(chan error)
	p := &Process{Log: log, Done: done, cmd: cmd}
	go func() {
		// The parent-death signal is sent when the thread that forked ends, so the thread is kept.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(done)
		}
	}()
	return p, <-started
}

// PID is the number of the process, which may be gone.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal. The error of a process that is gone is [os.ErrProcessDone].
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Err is how the process ended, nil if well. It must not be called before Done is closed.
func (p *Process) Err() error { return p.err }

// Tail returns the last lines that a process wrote to its log, with an introduction; it is meant
// for the end of an error.
func Tail(log string) string {
	text, err := os.ReadFile(log)
	if text = bytes.TrimSpace(text); err != nil || len(text) == 0 {
		return ""
	}
	lines := bytes.Split(text, []byte("\n"))
	return "; its last output:\n" + string(bytes.Join(lines[max(0, len(lines)-8):], []byte("\n")))
}
