// Package process names a process so that others on its machine can tell whether it is dead.
//
// Start from [Name].
package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A proxy that was killed leaves its entry among the proxies. Whoever is started after it on the
// same machine can tell that it is dead, and removes the entry, so that a restart that goes down
// needs nobody's help after a crash.

// Name says which process this is, of all there ever were: the machine's boot, the namespace
// of process numbers, the number, and when it was started, since numbers are used again. It is
// empty if the system does not tell.
func Name() string {
	machine, pid := place(), os.Getpid()
	started, ok := Started(pid)
	if machine == "" || !ok {
		return ""
	}
	return fmt.Sprintf("%s %d %s", machine, pid, started)
}

// place is where process numbers mean the same.
func place() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return "" // it shows the numbers of another namespace
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}

// Started is when a process was started, by the kernel's clock; false if there is no such
// process, it has ended, or the system hides it.
func Started(pid int) (string, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	// https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: the second field, in brackets,
	// may hold anything.
	_, rest, _ := strings.Cut(string(stat)[strings.LastIndexByte(string(stat), ')')+1:], " ")
	fields := strings.Fields(rest)
	const started = 22 - 3
	if len(fields) <= started {
		return "", false
	}
	return fields[started], true
}

// IsDead reports whether a process by its Name is certainly dead. It is false of one
// elsewhere.
func IsDead(name string) bool {
	fields := strings.Fields(name)
	if len(fields) != 4 || fields[0]+" "+fields[1] != place() {
		return false
	}
	pid, err := strconv.Atoi(fields[2])
	if err != nil {
		return false
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	started, ok := Started(pid)
	return ok && started != fields[3] // where it is not ok it may be hidden (hidepid)
}
