package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

func openLog(t *testing.T, o Options) *Log {
	t.Helper()
	if o.Level == "" {
		o.Level = "info"
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// events returns the events of a log in JSON. Each line has to be an object.
func events(t *testing.T, text string) (events []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		fields := make(map[string]any)
		if err := json.Unmarshal([]byte(line), &fields); err != nil || !strings.HasSuffix(line, "\n") {
			t.Errorf("no object on a line: %q, %v", line, err)
			continue
		}
		events = append(events, fields[logfield.NameEvent].(string))
	}
	return events
}

func TestLinesHaveTheFixedNames(t *testing.T) {
	var out bytes.Buffer
	l := openLog(t, Options{JSON: true, Stderr: &out})
	l.Logger().Debug("not this")
	l.Logger().Named("proxy").With(logfield.Conn(7)).Warn("slow", logfield.Duration(1234567890), logfield.Err(errors.New("a\nb")))
	want := regexp.MustCompile(`^\{"level":"warn","ts":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","logger":"proxy","event":"slow","conn":7,"duration_ms":1234.568,"err":"a\\nb"\}\n$`)
	if got := out.String(); !want.MatchString(got) {
		t.Errorf("got %q, want %v", got, want)
	}

	out.Reset()
	l = openLog(t, Options{Stderr: &out})
	l.Logger().Named("proxy").With(logfield.Conn(7)).Warn("slow", logfield.Err(errors.New("a\nb")))
	want = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)\tWARN\tproxy\tslow\t\{"conn": 7, "err": "a\\nb"\}\n$`)
	if got := out.String(); !want.MatchString(got) {
		t.Errorf("for people: got %q, want %v", got, want)
	}

	out.Reset()
	if err := l.SetLevel("error"); err != nil {
		t.Fatal(err)
	}
	l.Logger().Warn("not this")
	l.Logger().With(logfield.Conn(7)).Warn("nor this")
	l.Logger().Error("this")
	if got := out.String(); strings.Contains(got, "not") || strings.Contains(got, "nor") || !strings.Contains(got, "this") {
		t.Errorf("after a change of the level: got %q", got)
	}
	if err := l.SetLevel("loud"); err == nil || !strings.Contains(err.Error(), "loud") {
		t.Errorf("a level that there is not: got %v", err)
	}
}

func TestTheFileIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	path, moved := filepath.Join(dir, "log"), filepath.Join(dir, "log.1")
	l := openLog(t, Options{JSON: true, Output: path})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&^0o640 != 0 {
		t.Errorf("the file: got %v, %v, want rights of at most 0640", info.Mode(), err)
	}
	l.Logger().Info("one")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	l.Logger().Info("two") // between the two steps of a rotation
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	l.Logger().Info("three")
	if got, want := strings.Join(events(t, read(t, moved)), ","), "one,two"; got != want {
		t.Errorf("the file before: got %s, want %s", got, want)
	}
	if got, want := strings.Join(events(t, read(t, path)), ","), "log file opened again,three"; got != want {
		t.Errorf("the new file: got %s, want %s", got, want)
	}

	// Lines that others append stay. A file that is copied and truncated has no hole.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"event":"another's"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	l.Logger().Info("four")
	if got := events(t, read(t, path)); len(got) != 4 || got[2] != "another's" {
		t.Errorf("with the line of another: got %q", got)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	l.Logger().Info("five")
	if got, want := strings.Join(events(t, read(t, path)), ","), "five"; got != want {
		t.Errorf("truncated: got %s, want %s", got, want)
	}
}

func TestAFileThatCannotBeOpenedAgainIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path, moved := filepath.Join(dir, "log"), dir+".old"
	l := openLog(t, Options{JSON: true, Output: path})
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil || !strings.Contains(err.Error(), "the directory "+dir+" does not exist") {
		t.Errorf("without the directory: got %v", err)
	}
	l.Logger().Info("goes on")
	if got, want := strings.Join(events(t, read(t, filepath.Join(moved, "log"))), ","), "log file kept,goes on"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatCannotBeALogFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                           "is a directory",
		fifo:                          "is a pipe",
		filepath.Join(dir, "no", "x"): "the directory " + filepath.Join(dir, "no") + " does not exist",
	} {
		if l, err := Open(Options{Level: "info", Output: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", path, l, err, want)
		}
	}
}

// TestAFullDiskStopsNothing writes to a device that is always full, and later to a file.
func TestAFullDiskStopsNothing(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no device that is always full")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	l := openLog(t, Options{JSON: true, Output: path, Stderr: &stderr})
	for range 3 {
		l.Logger().Info("lost")
	}
	if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "no space left on device") {
		t.Errorf("stderr: got %q, want one line with the cause", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	l.Logger().Info("kept")
	got := read(t, path)
	if want := "log lines lost,log file opened again,kept"; strings.Join(events(t, got), ",") != want || !strings.Contains(got, `"lines":3`) {
		t.Errorf("got %s, want %s with 3 lines", got, want)
	}
}

// fitful writes as many bytes as there is room for, like a disk that becomes full.
type fitful struct {
	bytes.Buffer
	room int
}

func (f *fitful) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	f.Buffer.Write(b[:n])
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func TestATornLineIsEnded(t *testing.T) {
	out := &fitful{room: 20}
	l := openLog(t, Options{JSON: true, Stderr: out})
	l.Logger().Info("torn")
	l.Logger().Info("lost")
	out.room = 1 << 20
	l.Logger().Info("kept")
	torn, rest, _ := strings.Cut(out.String(), "\n")
	if got, want := strings.Join(events(t, rest), ","), "log lines lost,kept"; len(torn) != 20 || got != want || !strings.Contains(rest, `"lines":2`) {
		t.Errorf("got %q behind %q, want %s with 2 lines", rest, torn, want)
	}
}

// TestRotationLosesNoLine rotates the file while many goroutines write.
func TestRotationLosesNoLine(t *testing.T) {
	const writers, each, rotations = 4, 500, 20
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	l := openLog(t, Options{Level: "debug", JSON: true, Output: path})
	var wg sync.WaitGroup
	var done atomic.Int32
	for w := range writers {
		wg.Go(func() {
			defer done.Add(1)
			for i := range each {
				l.Logger().Debug("line", zap.Int("lines", w*each+i))
			}
		})
	}
	names := []string{path}
	for i := 0; i < rotations || done.Load() < writers; i++ {
		if i < rotations {
			old := filepath.Join(dir, "old"+string(rune('a'+i)))
			if err := os.Rename(path, old); err != nil {
				t.Fatal(err)
			}
			names = append(names, old)
		}
		if err := l.Reopen(); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	seen := make(map[int]int)
	for _, name := range names {
		for line := range strings.Lines(read(t, name)) {
			var fields struct {
				Event string
				Lines int
			}
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			if fields.Event == "line" {
				seen[fields.Lines]++
			}
		}
	}
	for i := range writers * each {
		if seen[i] != 1 {
			t.Fatalf("line %d is there %d times", i, seen[i])
		}
	}
}

func TestNothingIsWrittenAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := openLog(t, Options{JSON: true, Output: path})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Logger().Info("late")
	if err := l.Reopen(); err == nil {
		t.Error("a closed log was opened again")
	}
	if got := read(t, path); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}
