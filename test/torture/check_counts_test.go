package torture

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"seqproxy/test/mysqltest"
)

func TestCountersThatDoNotAddUpAreFound(t *testing.T) {
	reserved := `{"event":"numbers reserved","sequence":"photos","first":1,"reserved_up_to":10,"reserved":10}`
	again := `{"event":"numbers reserved","sequence":"users","first":11,"reserved_up_to":15,"reserved":5}`
	ticks := `{"event":"numbers reserved","sequence":"snow#w3","first":1,"reserved_up_to":2000,"reserved":2000}`
	end := func(counts string) string { return `{"event":"stopped",` + counts + `}` }
	for _, c := range []struct {
		name  string
		lines []string
		got   receipts
		want  string
	}{
		{"all is said", []string{reserved, again, end(`"reserved":15,"given":3,"given_back":7,"passed_over":4,"outcome_unknown":1`)}, receipts{numbers: 3}, ""},
		{"more than was logged, as of unknown outcome", []string{reserved, end(`"reserved":15,"given":3,"given_back":7,"passed_over":0,"outcome_unknown":5`)}, receipts{numbers: 3}, ""},
		{"an answer that did not arrive", []string{reserved, end(`"reserved":10,"given":4,"given_back":6`)}, receipts{numbers: 3, unsure: 1}, ""},
		{"a number that is nowhere", []string{reserved, end(`"reserved":10,"given":3,"given_back":6`)}, receipts{numbers: 3}, "that makes 9"},
		{"one too many", []string{reserved, end(`"reserved":10,"given":3,"given_back":8`)}, receipts{numbers: 3}, "that makes 11"},
		{"a reservation that is not counted", []string{reserved, again, end(`"reserved":10,"given":3,"given_back":7`)}, receipts{numbers: 3}, "logged reservations of 15"},
		{"given to nobody", []string{reserved, end(`"reserved":10,"given":5,"given_back":5`)}, receipts{numbers: 3, unsure: 1}, "it gave 5 numbers"},
		{"received and not given", []string{reserved, end(`"reserved":10,"given":2,"given_back":8`)}, receipts{numbers: 3, unsure: 1}, "it gave 2 numbers"},
		{"keys of reserved ticks", []string{reserved, ticks, end(`"reserved":14,"given":7,"given_back":7`)}, receipts{numbers: 7, uncounted: 4}, ""},
		{"killed", []string{reserved, again}, receipts{numbers: 3, unsure: 1}, ""},
		{"killed in the middle of a line", []string{reserved, again[:60]}, receipts{numbers: 3, unsure: 1}, ""},
		{"killed, and gave what it did not have", []string{reserved}, receipts{numbers: 11}, "clients received 11 numbers"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(`{"event":"listening"}`+"\n"+strings.Join(c.lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := readCounts(path)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if text := strings.Join(read.wrong(c.got), "\n"); c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
		if killed := strings.HasPrefix(c.name, "killed"); killed != (read.end == nil) {
			t.Errorf("%s: the line at its end: got %+v", c.name, read.end)
		}
	}
}

// Real servers, processes that are killed and stopped, and a number that a client has not reported.
func TestTheCountersOfProcessesAreWhatClientsReceived(t *testing.T) {
	s, end := newScenario(t, mysqltest.Program(t))
	defer end()
	s.take(0, 12)
	s.take(1, 7)
	s.crash(0)
	s.take(0, 12)
	s.take(1, 12)
	for _, p := range s.w.proxies {
		s.must(p.end(syscall.SIGTERM, endsWithin))
	}
	sum, found, err := s.w.checkCounts(s.ops)
	s.must(err)
	if len(found) > 0 {
		t.Error(strings.Join(found, "\n"))
	}
	if sum.processes != 3 || sum.killed != 1 || sum.counted.Given != 31 || sum.counted.Reserved <= 31 || sum.rest == 0 || sum.rest > 15 {
		t.Errorf("got %+v, want the counters of two processes, and a rest of a third", sum)
	}
	_, found, err = s.w.checkCounts(slices.Delete(slices.Clone(s.ops), len(s.ops)-1, len(s.ops)))
	s.must(err)
	if text := strings.Join(found, "\n"); !strings.Contains(text, "COUNT: proxy 1, process 1: it gave 19 numbers; clients received 18") {
		t.Errorf("without one that was received: got %q", text)
	}
}
