//go:build unix

package statefile

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
)

// full is a device that answers every write with ENOSPC.
const full = "/dev/full"

// fill makes the next write to the file fail as on a full disk. With again, the next attempt to
// write it anew fails, too.
func fill(t *testing.T, f *File, again bool) {
	t.Helper()
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.file != nil {
		_ = f.file.Close()
		device, err := os.OpenFile(full, os.O_RDWR, 0)
		if err != nil {
			t.Skipf("this system has no %s: %v", full, err)
		}
		f.file = device
	}
	if again {
		fillNew(t, f.dir)
	}
}

// fillNew makes the next attempt to write a file anew fail as on a full disk.
func fillNew(t *testing.T, dir string) {
	t.Helper()
	if err := os.Symlink(full, filepath.Join(dir, newName)); err != nil {
		t.Fatal(err)
	}
}

func TestFullDiskFailsWritesUntilThereIsSpace(t *testing.T) {
	dir := t.TempDir()
	f, logs := open(t, dir)
	put(t, f, "a", "1")
	failed := func(err error) {
		t.Helper()
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "state file "+f.path+" cannot be written") {
			t.Errorf("got %v, want ENOSPC and the name of the file", err)
		}
		if got := onDisk(t, dir); got["a"] != "1" || !maps.Equal(got, f.All()) {
			t.Errorf("the file has %q and Get gives %q, want the value before", got, f.All())
		}
	}
	fill(t, f, true)
	failed(f.Wait(f.Put("a", "2")))
	failed(f.Wait(f.Put("a", "2")))
	fillNew(t, dir)
	failed(f.Ready())
	if err := f.Ready(); err != nil {
		t.Errorf("with space again: %v", err)
	}
	put(t, f, "a", "1")
	fill(t, f, false)
	failed(f.Wait(f.Put("a", "2")))
	put(t, f, "a", "3")
	if got := onDisk(t, dir); got["a"] != "3" {
		t.Errorf("with space again the file has %q, want 3", got)
	}
	for text, want := range map[string]int{"state file cannot be written": 2, "state file can be written again": 2} {
		if got := logs.FilterMessageSnippet(text).Len(); got != want {
			t.Errorf("%q was logged %d times, want %d", text, got, want)
		}
	}

	// A proxy can start on a full disk, and reads everything that was kept.
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	fillNew(t, dir)
	f, _ = open(t, dir)
	if got, _ := f.Get("a"); got != "3" {
		t.Errorf("got %q, want 3", got)
	}
	put(t, f, "a", "4")
}

// The lock belongs to every process with the descriptor, such as a successor.
func TestLockIsHandedOverWithItsDescriptor(t *testing.T) {
	dir := t.TempDir()
	f, _ := open(t, dir)
	fd, err := syscall.Dup(int(f.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	handed := os.NewFile(uintptr(fd), "lock")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("got %v, want that the directory is in use", err)
	}
	if err := handed.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}
