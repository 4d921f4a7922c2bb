package mysqld

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The wall clock of a running server jumps forward and back, and keeps its offset when the server
// is killed and started again. The monotonic clock does not change. No file of the library remains.
func TestTheClockOfAServerJumps(t *testing.T) {
	library := ClockLibrary()
	if library == "" {
		t.Skipf("libfaketime is missing: install it (scripts/deps.sh faketime), or name the file in %s", ClockEnv)
	}
	s := start(t, Config{ClockLibrary: library})
	remains := func(pid int) []string {
		found, err := filepath.Glob(fmt.Sprintf("/dev/shm/*faketime_*_%d", pid))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	shows := func(ahead time.Duration) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			var is time.Duration
			if micros, err := time.ParseDuration(query(t, s.Addr(), "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))") + "us"); err != nil {
				t.Fatal(err)
			} else {
				is = time.Until(time.UnixMicro(micros.Microseconds()))
			}
			if (is - ahead).Abs() < 20*time.Second {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the clock is ahead by %v, want %v", is, ahead)
			}
		}
	}
	shows(0)
	for _, ahead := range []time.Duration{3 * time.Hour, -90 * time.Minute, time.Minute} {
		if err := s.SetClock(ahead); err != nil {
			t.Fatal(err)
		}
		shows(ahead)
	}
	if got := query(t, s.Addr(), "SELECT SLEEP(0.1)"); got != "0" {
		// SLEEP ends by itself, and not at once with an error.
		t.Errorf("SLEEP: got %s, want 0", got)
	}
	pid := s.PID()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if found := remains(pid); len(found) > 0 {
		t.Errorf("after a kill: got the files %v, want none", found)
	}
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	shows(time.Minute)
	if err := s.SetClock(0); err != nil {
		t.Fatal(err)
	}
	shows(0)
	pid = s.PID()
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.Crashed(); err != nil {
		t.Error(err)
	}
	if found := remains(pid); len(found) > 0 {
		t.Errorf("after a stop: got the files %v, want none", found)
	}
	if err := start(t, Config{}).SetClock(time.Hour); err == nil {
		t.Error("setting the clock of a server without the library: got no error, want one")
	}
}

func TestTheClockLibraryCanBeLeftOut(t *testing.T) {
	t.Setenv(ClockEnv, "off")
	if got := ClockLibrary(); got != "" {
		t.Errorf("got %s, want none", got)
	}
	file := filepath.Join(t.TempDir(), "libfaketimeMT.so.1")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(ClockEnv, file)
	if got := ClockLibrary(); got != file && got != "" { // on Linux only
		t.Errorf("got %s, want %s", got, file)
	}
}
