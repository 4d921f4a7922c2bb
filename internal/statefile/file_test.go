package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func open(t *testing.T, dir string) (*File, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	f, err := Open(dir, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, logs
}

func put(t *testing.T, f *File, key, value string) {
	t.Helper()
	if err := f.Wait(f.Put(key, value)); err != nil {
		t.Fatalf("Put(%q, %q): %v", key, value, err)
	}
}

// onDisk returns what the next process would read if this one were killed now.
func onDisk(t *testing.T, dir string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	values, torn, err := decode(data)
	if err != nil || torn > 0 {
		t.Fatalf("the file is damaged: %v, %d bytes torn", err, torn)
	}
	return values
}

func TestWhatWasWrittenIsThereWithoutAnOrderlyEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	f, _ := open(t, dir)
	want := make(map[string]string)
	for i, key := range []string{"a", "", "with\nline\tend", "\x00\xff\x80 no text", "中", `"quoted" = "`, "a"} {
		want[key] = fmt.Sprint("value ", i, key)
		put(t, f, key, want[key])
		if got := onDisk(t, dir); !maps.Equal(got, want) {
			t.Fatalf("after key %q the file has %q, want %q", key, got, want)
		}
	}
	if got := f.All(); !maps.Equal(got, want) {
		t.Errorf("All is %q, want %q", got, want)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Wait(f.Put("b", "")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
	if err := f.Ready(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
	again, _ := open(t, dir)
	if got := again.All(); !maps.Equal(got, want) {
		t.Errorf("the next process has %q, want %q", got, want)
	}
}

func TestFileStaysInProportionToWhatItKeeps(t *testing.T) {
	dir := t.TempDir()
	f, _ := open(t, dir)
	for i := range 5000 {
		put(t, f, fmt.Sprint("key ", i%10), fmt.Sprint("a value that makes the line longer than it would have to be ", i))
	}
	info, err := os.Stat(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(spare + 10_000); info.Size() > limit {
		t.Errorf("the file has %d bytes for 10 values, want at most %d", info.Size(), limit)
	}
	if got := onDisk(t, dir); len(got) != 10 || !maps.Equal(got, f.All()) {
		t.Errorf("the file has %q, want %q", got, f.All())
	}
}

func TestWritersAtOneTimeShareTheDisk(t *testing.T) {
	dir := t.TempDir()
	f, _ := open(t, dir)
	var writers sync.WaitGroup
	for w := range 20 {
		writers.Go(func() {
			for i := range 20 {
				if err := f.Wait(f.Put(fmt.Sprint(w), fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
				if got, _ := f.Get(fmt.Sprint(w)); got != fmt.Sprint(i) {
					t.Errorf("writer %d has %q after it wrote %d", w, got, i)
				}
			}
		})
	}
	writers.Wait()
	if got := onDisk(t, dir); len(got) != 20 || got["7"] != "19" {
		t.Errorf("got %q, want 19 of each of 20", got)
	}
	lines := bytes.Count(read(t, f.path), []byte("\n"))
	if lines > 400 {
		t.Errorf("400 writes made %d lines, want no more", lines)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A crash leaves the start of the last line, or any bytes of it, and the lines before count. Any
// other damage is refused.
func TestTornEndIsLeftOutAndDamageIsRefused(t *testing.T) {
	dir := t.TempDir()
	f, _ := open(t, dir)
	put(t, f, "a", "1")
	put(t, f, "b", "2")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, _ = open(t, dir) // now the lines of a and b belong to the rewritten part
	put(t, f, "a", "3")
	before := len(read(t, f.path))
	put(t, f, "b", "4")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	good := read(t, f.path)
	firstLine := bytes.IndexByte(good, '\n') + 1
	base := firstLine + bytes.IndexByte(good[firstLine:], '\n') + 1
	base += bytes.IndexByte(good[base:], '\n') + 1

	check := func(what string, data []byte, want map[string]string) {
		t.Helper()
		if err := os.WriteFile(f.path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		core, logs := observer.New(zap.WarnLevel)
		f, err := Open(dir, zap.New(core))
		if want == nil {
			if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, fileName)) || !strings.Contains(err.Error(), "move it away") {
				t.Fatalf("%s: got %v, want an error with the file and the way out", what, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer func() { _ = f.Close() }()
		if got := f.All(); !maps.Equal(got, want) {
			t.Fatalf("%s: got %q, want %q", what, got, want)
		}
		if logged := logs.FilterMessage("state file had a torn end").Len() == 1; logged != (len(want) > 0 && want["b"] == "2") {
			t.Fatalf("%s: it was logged: %v", what, logged)
		}
		put(t, f, "c", "5")
		if got := onDisk(t, dir); got["c"] != "5" || got["b"] != want["b"] {
			t.Fatalf("%s: the file has %q after one more write", what, got)
		}
	}
	whole, torn := map[string]string{"a": "3", "b": "4"}, map[string]string{"a": "3", "b": "2"}
	check("nothing wrong", good, whole)
	for end := before + 1; end < len(good); end++ {
		check(fmt.Sprintf("cut after %d of %d bytes", end, len(good)), good[:end], torn)
	}
	for at := before; at < len(good)-1; at++ {
		zeros := bytes.Clone(good)
		clear(zeros[at : len(zeros)-1]) // only the line end reached the disk
		check(fmt.Sprintf("zeros from %d", at), zeros, torn)
	}
	check("zeros behind", append(bytes.Clone(good[:before]), make([]byte, 4096)...), torn)
	for at := range before - 1 {
		// Not the line end at before-1: without it the last two lines are one, which may be torn.
		flipped := bytes.Clone(good)
		flipped[at] ^= 1
		check(fmt.Sprintf("bit of byte %d of %q", at, good), flipped, nil)
	}
	for end := range base {
		check(fmt.Sprintf("the whole file cut after %d bytes", end), good[:end], nil)
	}
	check("a newer version", []byte("seqproxy state 2, lines: 0, 12345678\n"), nil)
	check("another file", []byte("[mysqld]\n"), nil)
}

func TestDirectoryBelongsToOneProcess(t *testing.T) {
	dir := t.TempDir()
	first, _ := open(t, dir)
	if second, err := Open(dir, zap.NewNop()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s is in use by process %d on ", dir, os.Getpid())) {
		t.Errorf("got %v, %v; want an error that names the directory and process %d", second, err, os.Getpid())
	}
	put(t, first, "a", "1") // as before
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if third, _ := open(t, dir); third.All()["a"] != "1" {
		t.Errorf("after Close got %q", third.All())
	}
	if f, err := Open(filepath.Join(dir, "no", "such"), zap.NewNop()); err == nil {
		t.Errorf("got %v in a directory whose parent is missing, want an error", f)
	}
	if f, err := Open(filepath.Join(dir, fileName), zap.NewNop()); err == nil {
		t.Errorf("got %v in a file, want an error", f)
	}
}
