// Package child runs programs that must not outlive this one: servers of a test, targets of a
// benchmark. Start at [Start].
package child

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Process is a program that runs in the foreground and writes its output to a file. It is safe for
// concurrent use.
type Process struct {
	Log  string          // the file with its output
	Done <-chan struct{} // closed when the process has ended

	cmd *exec.Cmd
	err error
}

// Start starts cmd in a process group of its own. So Ctrl-C reaches only this program, which can
// then stop its processes in order. If this program is killed, the system also kills the process,
// where that is possible. The output goes to a new file log.
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
		// The kernel sends the parent-death signal when the forking thread ends, so the thread must
		// stay.
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

// PID returns the process id. The process may have ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal. The error is [os.ErrProcessDone] if the process has ended.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Err says how the process ended; nil means success. Call it after Done is closed.
func (p *Process) Err() error { return p.err }

// Tail returns the last lines of a log with an introduction, for the end of an error message.
func Tail(log string) string {
	text, err := os.ReadFile(log)
	if text = bytes.TrimSpace(text); err != nil || len(text) == 0 {
		return ""
	}
	lines := bytes.Split(text, []byte("\n"))
	return "; its last output:\n" + string(bytes.Join(lines[max(0, len(lines)-8):], []byte("\n")))
}
