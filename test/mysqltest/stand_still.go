package mysqltest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// StandStill stops a process by SIGSTOP until goOn is called, or the test ends. It returns when all
// threads of the process stand still. That takes a moment, in which the process may still answer.
func StandStill(t testing.TB, pid int) (goOn func()) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn = sync.OnceFunc(func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Errorf("have process %d go on: %v", pid, err)
		}
	})
	t.Cleanup(goOn)
	for begin := time.Now(); !standsStill(t, pid); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("process %d does not stand still a minute after SIGSTOP", pid)
		}
	}
	return goOn
}

// standsStill reports whether all threads of a process have stopped.
func standsStill(t testing.TB, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		if state, err := os.ReadFile(thread); err == nil && !bytes.Contains(state, []byte(") T ")) {
			return false
		}
	}
	return true
}
