package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// checkPlatform returns an error if this machine lacks something that the measurement needs.
func checkPlatform() error { return nil }

// cpuTime returns the user and system CPU time of all threads of a process, including those that
// have ended. It reads the process's CPU clock (clock_getcpuclockid(3)). That is utime + stime of
// /proc/PID/stat, without the rounding to ticks of 10 ms. In a sandbox that refuses the clock it
// reads the file.
func cpuTime(pid int) (time.Duration, error) {
	const schedClock = 2 // CPUCLOCK_SCHED of the kernel's posix-timers_types.h
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &ts); err == nil {
		return time.Duration(ts.Nano()), nil
	}
	return statTime(pid)
}

// userHz is the unit of /proc/PID/stat, which is 100 on every architecture that Go runs on.
const userHz = 100

func statTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	ticks, err := parseStat(stat)
	if err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ticks) * time.Second / userHz, nil
}

// parseStat returns utime + stime from /proc/PID/stat, see proc_pid_stat(5). The second field is
// the program's name, which may contain spaces and parentheses.
func parseStat(stat []byte) (uint64, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime = 14 - 3, 15 - 3 // the first field here is number 3
	if len(fields) <= stime {
		return 0, errors.New("stat line is too short")
	}
	u, err := strconv.ParseUint(fields[utime], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("utime: %w", err)
	}
	s, err := strconv.ParseUint(fields[stime], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("stime: %w", err)
	}
	return u + s, nil
}

// residentBytes returns the resident memory of a process. smaps_rollup counts pages. VmRSS of newer
// kernels adds counters of all CPUs, and may be wrong by some hundred KB.
func residentBytes(pid int) (int64, error) {
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)); err == nil {
		return parseKB(text, "Rss:")
	}
	return statusKB(pid, "VmRSS:")
}

// peakBytes returns the greatest resident memory since resetPeak. If that was refused, it is since
// the start of the process.
func peakBytes(pid int) (int64, error) { return statusKB(pid, "VmHWM:") }

// resetPeak sets the value of peakBytes to the present memory, see proc_pid_clear_refs(5).
func resetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("reset peak memory: %w", err)
	}
	return nil
}

func statusKB(pid int, key string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("memory: %w", err)
	}
	return parseKB(text, key)
}

// parseKB finds "key 123 kB" at the start of a line and returns bytes.
func parseKB(text []byte, key string) (int64, error) {
	for line := range strings.Lines(string(text)) {
		rest, found := strings.CutPrefix(line, key)
		if !found {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("memory: %s %w", key, err)
		}
		return kb << 10, nil
	}
	return 0, fmt.Errorf("memory: no %q (the process has ended?)", key)
}

// openFiles returns how many file descriptors a process holds.
func openFiles(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, fmt.Errorf("open files: %w", err)
	}
	return len(entries), nil
}

// affinity has the CPUs that this process was allowed to use, and the one that it is pinned to.
type affinity struct {
	before unix.CPUSet
	cpu    int
}

// pinSelf moves all threads of this process to one CPU, as taskset does. restore undoes it.
// Processes started from now on inherit it. A Go program reads the number of CPUs at its start, so
// targets of pinned rows are started after this.
func pinSelf() (*affinity, error) {
	a := &affinity{cpu: -1}
	if err := unix.SchedGetaffinity(0, &a.before); err != nil {
		return nil, fmt.Errorf("pin to one CPU: %w", err)
	}
	// The last CPU: the first one often serves the interrupts.
	for cpu := range len(a.before) * 64 {
		if a.before.IsSet(cpu) {
			a.cpu = cpu
		}
	}
	var one unix.CPUSet
	one.Set(a.cpu)
	if err := setAffinity(&one); err != nil {
		return nil, errors.Join(fmt.Errorf("pin to one CPU: %w", err), a.restore())
	}
	return a, nil
}

func (a *affinity) restore() error {
	if err := setAffinity(&a.before); err != nil {
		return fmt.Errorf("unpin: %w", err)
	}
	return nil
}

// setAffinity sets the CPUs of all threads of this process. A new thread inherits them from the
// thread that starts it. So it repeats until a pass finds no new thread.
func setAffinity(set *unix.CPUSet) error {
	done := map[int]bool{}
	for {
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		fresh := false
		for _, e := range entries {
			tid, err := strconv.Atoi(e.Name())
			if err != nil || done[tid] {
				continue
			}
			if err := unix.SchedSetaffinity(tid, set); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			done[tid], fresh = true, true
		}
		if !fresh {
			return nil
		}
	}
}

// raiseFileLimit raises the limit of open files to the hard limit, for this process and its
// children. 1000 sessions are 2000 files in a proxy.
func raiseFileLimit() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	limit.Cur = limit.Max
	// After Setrlimit, Go does not give the original limit to child processes.
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	return nil
}

// machine describes the hardware and its present load.
func machine() string {
	var parts []string
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				parts = append(parts, strings.TrimSpace(value))
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if total, err := parseKB(text, "MemTotal:"); err == nil {
			parts = append(parts, fmt.Sprintf("%d GiB", (total+1<<29)>>30))
		}
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err == nil {
		parts = append(parts, "Linux "+unix.ByteSliceToString(uts.Release[:]))
	}
	return strings.Join(parts, ", ")
}

// loadAverage returns the load of the last minute, or "" if it is not known.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
