package statefile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// unflushed returns how many pages of a file are not on disk yet.
func unflushed(t *testing.T, f *os.File) uint64 {
	t.Helper()
	var all unix.CachestatRange // of no length: to the end
	var pages unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &all, &pages, 0); err != nil {
		t.Skipf("this kernel does not report what is on disk (cachestat, Linux 6.5): %v", err)
	}
	return pages.Dirty + pages.Writeback
}

// Other tests read written data back from memory. After a loss of power only flushed data exist.
func TestNothingIsLeftToTheSystemToWriteDown(t *testing.T) {
	dir := t.TempDir()
	control, err := os.Create(filepath.Join(dir, "control"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = control.Close() }()
	if _, err := control.WriteString("not flushed\n"); err != nil {
		t.Fatal(err)
	}
	if unflushed(t, control) == 0 {
		t.Skip("the file system of the temporary directory does not report what is on disk")
	}
	f, _ := open(t, dir)
	check := func(when string) {
		t.Helper()
		f.writing.Lock()
		defer f.writing.Unlock()
		n := unflushed(t, f.file)
		for range 10 {
			// the pages may be marked as written a moment later; without a flush the system writes
			// them after seconds
			if n == 0 {
				return
			}
			time.Sleep(time.Millisecond)
			n = unflushed(t, f.file)
		}
		t.Errorf("%s %d pages are not on disk", when, n)
	}
	check("written anew,")
	for i := range 20 {
		put(t, f, "photos", fmt.Sprint(i))
		check("after a line was added,")
	}
}
