//go:build unix && !linux

package mysqld

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// dieWithParent has no counterpart here; guardChild does the work.
func dieWithParent(*syscall.SysProcAttr) {}

// guardChild kills the process pid when we are gone. A shell waits on a pipe of
// which only we hold the other end, so it reads end-of-file when we die, however
// we die. release ends the shell and must be called as soon as pid was waited
// for, before its number can be given to somebody else. Without a shell there
// is no guard, and an orphan is left only where we are killed.
func guardChild(pid int) (release func()) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	defer r.Close() //nolint:errcheck // the shell has its own descriptor
	cmd := exec.Command("/bin/sh", "-c", `read -r _; kill -9 "$1"`, "sh", strconv.Itoa(pid))
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		w.Close() //nolint:errcheck // nobody reads it
		return func() {}
	}
	return func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // killed: the status says nothing
		w.Close()          //nolint:errcheck // nobody reads it any more
	}
}
