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
	"time"
)

// process is one run of the server program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; valid after done is closed
	// wanted is set before this package sends a signal: the end that follows is no crash.
	wanted atomic.Bool
	// logFrom is the offset in the error log at which this run begins.
	logFrom int64
}

// ErrDirInUse is the cause of [Start]'s error if a server already runs in Config.Dir.
var ErrDirInUse = errors.New("another server runs in this directory")

// startProcess starts path with args. env is added to the environment of this process. The new
// process has a group of its own, so Ctrl-C on the terminal reaches only this process, which
// decides when the server ends. The server dies with this process, whatever kills it.
func startProcess(path string, args, env []string, p paths) (*process, error) {
	proc := &process{cmd: exec.Command(path, args...), done: make(chan struct{}), logFrom: p.logSize()}
	// Output before the server opens its log belongs into the log, too.
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
	// A killed MySQL server leaves this file, and the next one would end if any process had the id
	// in it. The directory's lock proves that no process has the socket.
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

// run starts the process and waits for it. It locks its thread until then. The kernel sends the
// parent-death signal when the forking *thread* ends. Go ends a thread when a goroutine that locked
// it returns without unlocking it. No other goroutine runs on this thread, so that cannot happen.
// See PR_SET_PDEATHSIG in prctl(2) and golang.org/issue/27505.
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

// signal ends the process with sig. It is no error if the process has ended already.
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

// copyLasts is for how long a copy of a lock may be open: a process that is started at the same
// moment has all files of this one until it runs its program.
const copyLasts = 3 * time.Second

// lockDir takes the lock of a server's directory, since two servers on one data directory would
// wait for each other for minutes. The lock belongs to the open file, which the server inherits. So
// it lasts as long as a server runs there, whoever started it.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		// It does not wait, so no signal interrupts it.
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Since(begun) > copyLasts {
			break
		}
	}
	if err != nil {
		f.Close() //nolint:errcheck // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrDirInUse)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}
