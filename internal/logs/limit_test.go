package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// openLimited opens a log with the given limits in a file.
func openLimited(t *testing.T, l limits) (log *Log, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	log, err := open(Options{Level: "debug", JSON: true, Output: path}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() }) // a second Close
	return log, path
}

// written counts the lines of each event, and those left out.
func written(t *testing.T, path string) (lines, omitted map[string]int) {
	t.Helper()
	lines, omitted = make(map[string]int), make(map[string]int)
	for line := range strings.Lines(read(t, path)) {
		if !strings.HasSuffix(line, "\n") {
			break // the line is incomplete
		}
		var fields struct {
			Event, Of, Logger, Level string
			Lines                    int
		}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if fields.Event == "lines left out" {
			omitted[fields.Level+" "+fields.Logger+" "+fields.Of] += fields.Lines
			continue
		}
		lines[fields.Event]++
	}
	return lines, omitted
}

func TestEqualLinesAreLeftOutAndCounted(t *testing.T) {
	l, path := openLimited(t, limits{window: time.Hour, equal: 3, event: 10})
	proxy := l.Logger().Named("proxy")
	for i := range 20 { // client and error do not make the lines different
		proxy.With(logfield.Conn(uint32(i)), logfield.User("app")).Warn("equal", logfield.Err(fmt.Errorf("error %d", i)))
	}
	proxy.With(logfield.User("other")).Warn("equal")
	for i := range 20 {
		proxy.Info("many", logfield.Sequence(fmt.Sprint(i)))
		proxy.Info("codes", logfield.Code(uint16(i%5)))
		proxy.Info("statements", zap.ByteString(logfield.NameStatement, []byte{'a' + byte(i%3)}))
		proxy.Debug("debug")
		proxy.Info(logfield.EventAudit)
	}
	for range 50 {
		l.Logger().Error("error")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines, omitted := written(t, path)
	for event, want := range map[string]int{"equal": 4, "many": 10, "codes": 10, "statements": 9, "debug": 20, logfield.EventAudit: 20, "error": 30} {
		if lines[event] != want {
			t.Errorf("%s: got %d lines, want %d", event, lines[event], want)
		}
	}
	want := map[string]int{"warn proxy equal": 17, "info proxy many": 10, "info proxy codes": 10, "info proxy statements": 11, "error  error": 20}
	if fmt.Sprint(omitted) != fmt.Sprint(want) {
		t.Errorf("left out: got %v, want %v", omitted, want)
	}
}

// TestWhatWasLeftOutIsToldWithoutAnotherLine waits for the end of a window without further lines.
// The count is logged, and lines are written again.
func TestWhatWasLeftOutIsToldWithoutAnotherLine(t *testing.T) {
	l, path := openLimited(t, limits{window: 50 * time.Millisecond, equal: 1, event: 10})
	const all = 5000
	for range all {
		l.Logger().Warn("equal")
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		lines, omitted := written(t, path)
		if sum := lines["equal"] + omitted["warn  equal"]; sum == all && omitted["warn  equal"] > 0 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("got %v and %v left out, want %d in all", lines, omitted, all)
		}
	}
	before, _ := written(t, path)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		l.Logger().Warn("equal")
		if lines, _ := written(t, path); lines["equal"] > before["equal"] {
			break
		} else if time.Now().After(end) {
			t.Fatal("nothing is written any more")
		}
	}
}

// TestTheLimiterIsBounded writes about ever new subjects, as an attacker without a login can.
func TestTheLimiterIsBounded(t *testing.T) {
	l, path := openLimited(t, limits{window: time.Hour, equal: 3, event: 10})
	for i := range 100_000 {
		l.Logger().Info("guessed", logfield.User(fmt.Sprint(i)))
	}
	for i := range 10 * maxLimited {
		l.Logger().Info(fmt.Sprint("event ", i))
	}
	l.limit.mu.Lock()
	events, equal := len(l.limit.events), 0
	for _, lines := range l.limit.events {
		equal += len(lines.equal)
	}
	l.limit.mu.Unlock()
	if events > maxLimited+1 || equal > events*10 {
		t.Errorf("got %d events and %d subjects in memory, want at most %d and ten for each", events, equal, maxLimited+1)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, omitted := written(t, path); omitted["info  guessed"] != 100_000-10 || omitted["info  others"] == 0 {
		t.Errorf("left out: got %v", omitted)
	}
}

// TestNoLineIsLostBetweenWindows writes from many goroutines: every line is written or counted.
func TestNoLineIsLostBetweenWindows(t *testing.T) {
	l, path := openLimited(t, limits{window: time.Millisecond, equal: 2, event: 5})
	const writers, each = 4, 2000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				l.Logger().Warn("line", zap.String("table", fmt.Sprint(w)), logfield.Err(errors.New("x")))
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines, omitted := written(t, path)
	if sum := lines["line"] + omitted["warn  line"]; sum != writers*each {
		t.Errorf("got %d lines and %d left out, want %d in all", lines["line"], omitted["warn  line"], writers*each)
	}
}

// Completed changes are always written. Refused ones are limited for each user, so that one user
// hides nothing of another's.
func TestRefusedChangesAreLimitedForEachUser(t *testing.T) {
	l, path := openLimited(t, limits{window: time.Hour, equal: 3, event: 10})
	audit := func(user, statement, outcome string) {
		l.Logger().Named("proxy").With(logfield.User(user)).Info(logfield.EventAudit, zap.String("statement", statement), zap.String("outcome", outcome))
	}
	for i := range 1000 {
		audit("app", fmt.Sprintf("DROP SEQUENCE s%d", i), "failed")
		audit("web", "DROP SEQUENCE s", "failed")
		audit("root", "FLUSH SEQUENCES", "done")
	}
	audit("root", "DROP SEQUENCE s", "failed")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	log := read(t, path)
	for text, want := range map[string]int{
		`"user":"app","statement":"DROP`: 10, `"user":"web","statement":"DROP`: 3, `"user":"root","statement":"DROP`: 1, `"outcome":"done"`: 1000,
		`"of":"audit","lines":990,"user":"app"`: 1, `"of":"audit","lines":997,"user":"web"`: 1, `"lines left out"`: 2,
	} {
		if got := strings.Count(log, text); got != want {
			t.Errorf("%s: got %d lines, want %d", text, got, want)
		}
	}
}

// Fields are cut to a bound, whatever an error contains.
func TestTheTextsOfALineAreCut(t *testing.T) {
	for _, json := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "log")
		l, err := Open(Options{Level: "info", JSON: json, Output: path})
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("ä", 1<<20)
		l.Logger().With(zap.String("sequence", long)).Info("long", zap.String("statement", long), logfield.Err(errors.New(long)), zap.String("why", "short"))
		l.Logger().Info("panics", logfield.Err(brokenError{}))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(read(t, path), "\n")
		if len(line) > 3*maxField+1000 || strings.Count(line, "ä...") != 3 || !strings.Contains(line, "short") {
			t.Errorf("a line of %d bytes: %.200q", len(line), line)
		}
		if !strings.Contains(read(t, path), "panics") {
			t.Error("the line of an error that has no text is missing")
		}
	}
}

// brokenError has no text.
type brokenError struct{}

func (brokenError) Error() string { panic("no text") }
