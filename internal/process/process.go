// Package process names a process so that others on its machine can tell whether it is dead.
//
// Start at [Name].
package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A proxy that was killed leaves its entry among the proxies. A later proxy on the same machine
// recognises that, and removes the entry. So a restart that goes down needs no help after a crash.

// Name identifies this process among all there ever were: the boot of the machine, the namespace of
// process numbers, the number, and the time of the start, since numbers are used again. It is empty
// if the system hides one of them.
func Name() string {
	machine, pid := place(), os.Getpid()
	started, ok := Started(pid)
	if machine == "" || !ok {
		return ""
	}
	return fmt.Sprintf("%s %d %s", machine, pid, started)
}

// place identifies the boot and the namespace, in which process numbers are unique.
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

// Started returns when a process was started, by the kernel's clock; false if there is no such
// process, it has ended, or the system hides it.
func Started(pid int) (string, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	// https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: the second field, in brackets,
	// may contain anything.
	_, rest, _ := strings.Cut(string(stat)[strings.LastIndexByte(string(stat), ')')+1:], " ")
	fields := strings.Fields(rest)
	const started = 22 - 3 // field 22; rest begins with field 3
	if len(fields) <= started {
		return "", false
	}
	return fields[started], true
}

// IsDead reports whether a process is certainly dead, by its Name. It is false for one on another
// machine.
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
	return ok && started != fields[3] // without ok it may be hidden (hidepid)
}
