//go:build unix && !linux

package mysqld

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// dieWithParent does nothing here: guardChild is used instead.
func dieWithParent(*syscall.SysProcAttr) {}

// guardChild kills the process pid when this process ends. A shell reads from a pipe whose other
// end only this process has, so it gets end-of-file however this process ends. release ends the
// shell. Call it right after waiting for pid, before the system can reuse the id. Without a shell
// there is no guard, and the child survives if this process is killed.
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
		w.Close()          //nolint:errcheck // nobody reads from it any more
	}
}
