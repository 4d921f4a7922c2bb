//go:build unix

package logs

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// filesUpTo makes files fail beyond size, like a disk that becomes full: the part that fits is
// written.
func filesUpTo(t *testing.T, size uint64) (undo func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = size
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	}
}

func TestAFullDiskLeavesNoTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var stderr bytes.Buffer
	l := openLog(t, Options{JSON: true, Output: path, Stderr: &stderr})
	l.Logger().Info("before")
	whole := read(t, path)
	undo := filesUpTo(t, uint64(len(whole)+20))
	l.Logger().Info("torn")
	l.Logger().Info("torn again")
	undo()
	if got := read(t, path); got != whole {
		t.Errorf("on the full disk: got %q, want %q", got, whole)
	}
	if !strings.Contains(stderr.String(), "lines are lost") {
		t.Errorf("stderr: got %q, want that lines are lost", stderr.String())
	}
	l.Logger().Info("after")
	got := read(t, path)
	if want := "before,log lines lost,after"; strings.Join(events(t, got), ",") != want || !strings.Contains(got, `"lines":2`) {
		t.Errorf("got %s, want %s with 2 lines", got, want)
	}
}

// If another process has written behind a torn line, the line is not removed.
func TestATornLineStaysWhereAnotherHasWrittenBehindIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	o, err := openOutput(path, os.Stderr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	const torn, others = `{"event":"to`, "of another\n"
	if _, err := o.file.WriteString(torn); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(others); err != nil {
		t.Fatal(err)
	}
	if o.takeBack(len(torn)) {
		t.Error("the torn line is said to be gone")
	}
	if got := read(t, path); got != torn+others {
		t.Errorf("got %q, want %q", got, torn+others)
	}
}
