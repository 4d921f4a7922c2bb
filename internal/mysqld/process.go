package mysqld

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
)

// process is one run of the server program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone
	err  error         // how it ended; valid once done is closed
	// wanted is set before the first signal of ours: the end that follows
	// is no crash.
	wanted atomic.Bool
	// logFrom is where this run's part of the error log begins.
	logFrom int64
}

// ErrDirInUse is what [Start] wraps when a server already runs in Config.Dir.
var ErrDirInUse = errors.New("another server runs in this directory")

// startProcess starts path with args, and env beside the environment of this process. The process
// is in a group of its own, so that a Ctrl-C on the terminal reaches only us and we decide when it
// ends, and it dies with us whatever kills us.
func startProcess(path string, args, env []string, p paths) (*process, error) {
	proc := &process{cmd: exec.Command(path, args...), done: make(chan struct{}), logFrom: p.logSize()}
	// What the server says before it has opened its log belongs there too.
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor
	proc.cmd.Stdout, proc.cmd.Stderr = log, log
	lock, err := lockDir(p.dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close() //nolint:errcheck // the process has its own descriptor
	proc.cmd.ExtraFiles = []*os.File{lock}
	// Left by a MySQL server that was killed: the next one would end if some process
	// had the number in it. That none has the socket is what our lock says.
	if err := os.Remove(p.socket + ".lock"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	proc.cmd.Dir = p.dir
	proc.cmd.Env = append(os.Environ(), env...)
	proc.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(proc.cmd.SysProcAttr)

	started := make(chan error)
	go proc.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return proc, nil
}

// run starts the process and waits for it. It keeps its thread all the time:
// the kernel sends the parent-death signal when the *thread* that forked ends,
// and Go ends a thread when a goroutine that locked it returns without
// unlocking. On this thread nobody else can do that. See PR_SET_PDEATHSIG in
// prctl(2) and golang.org/issue/27505.
func (proc *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(proc.done)

	if err := proc.cmd.Start(); err != nil {
		started <- err
		return
	}
	release := guardChild(proc.cmd.Process.Pid)
	started <- nil
	proc.err = proc.cmd.Wait()
	removeClockRemains(proc.cmd.Process.Pid)
	release()
}

// signal ends the process with sig; one that is already gone is no error.
func (proc *process) signal(sig os.Signal) error {
	if proc.running() {
		proc.wanted.Store(true)
	}
	err := proc.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (proc *process) running() bool {
	select {
	case <-proc.done:
		return false
	default:
		return true
	}
}

// lockDir takes the lock of a server's directory. Two servers on one data
// directory would wait for each other for minutes. The lock belongs to the open
// file, which the server inherits: it is held exactly as long as a server runs
// there, whoever started it.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrDirInUse)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}
