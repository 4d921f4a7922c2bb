package mysqld

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// ClockEnv is the environment variable with the path of libfaketime, if that is not in a usual
// place. "off" means that it is not used.
const ClockEnv = "SEQPROXY_TEST_FAKETIME"

// ClockLibrary returns the path of the library that gives a server a clock of its own, or "":
// https://github.com/wolfcw/libfaketime
func ClockLibrary() string {
	if runtime.GOOS != "linux" {
		return ""
	}
	named := os.Getenv(ClockEnv)
	if named == "off" {
		return ""
	}
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	for _, place := range []string{named, filepath.Join("/usr/lib", triplet, "faketime/libfaketimeMT.so.1"), "/usr/lib64/faketime/libfaketimeMT.so.1"} {
		if info, err := os.Stat(place); err == nil && info.Mode().IsRegular() {
			return place
		}
	}
	return ""
}

// clockEnv lets the library read a server's clock from a file every second. It changes the wall
// clock only, not the monotonic clock or the times of files.
func clockEnv(library, file string) []string {
	preload := library
	if others := os.Getenv("LD_PRELOAD"); others != "" {
		preload += ":" + others
	}
	return []string{
		"LD_PRELOAD=" + preload, "FAKETIME_TIMESTAMP_FILE=" + file, "FAKETIME_CACHE_DURATION=0",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1",
		// without this it changes the monotonic clock, too, and timed waits end at once
		"FAKETIME_FORCE_MONOTONIC_FIX=0",
	}
}

// SetClock sets the wall clock of a server with Config.ClockLibrary ahead of the machine's, or back
// with a negative time, in whole seconds. The server sees that within two seconds. It stays so over
// Restart.
func (s *Server) SetClock(ahead time.Duration) error {
	if s.cfg.ClockLibrary == "" {
		return fmt.Errorf("the server in %s has no clock of its own", s.paths.dir)
	}
	return s.paths.writeClock(ahead)
}

// writeClock replaces the whole file, since the library may read it at any time.
func (p paths) writeClock(ahead time.Duration) error {
	next := p.clock + ".next"
	err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", int64(ahead/time.Second)), 0o600)
	if err == nil {
		err = os.Rename(next, p.clock)
	}
	if err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	return nil
}

// removeClockRemains removes the shared memory that the library leaves of a killed process. It
// exists for child processes with the same clock.
func removeClockRemains(pid int) {
	for _, name := range []string{"sem.faketime_sem_", "faketime_shm_"} {
		os.Remove(filepath.Join("/dev/shm", name+strconv.Itoa(pid))) //nolint:errcheck // after an orderly end it is gone already
	}
}
